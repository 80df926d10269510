//! What must hold for any input, as functions of bytes: `cargo test` runs them on seeds and on random bytes, and the programs
//! in the folder `fuzz` at the root hand them to libFuzzer.

mod endpoint;
mod layer;
mod parsers;
mod sealed;

use kendall_testbed::fuzz::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "packet", seeds: parsers::packet_seeds, run: parsers::packet },
    Target { name: "message", seeds: parsers::message_seeds, run: parsers::message },
    Target { name: "sealed", seeds: sealed::seeds, run: sealed::sealed },
    Target { name: "layer", seeds: layer::seeds, run: layer::layer },
    Target { name: "endpoint", seeds: endpoint::seeds, run: endpoint::endpoint },
];

/// A field of the recorded session.
pub(crate) fn recorded(label: &str) -> Vec<u8> {
    let session = include_str!("../../../testdata/session.txt");
    let line = session.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(' ')).expect(label);
    (0..line.len()).step_by(2).map(|i| u8::from_str_radix(&line[i..i + 2], 16).unwrap()).collect()
}
