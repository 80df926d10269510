//! What must hold for any input, as functions of bytes: `cargo test` runs them on seeds and on random bytes, and the programs
//! in the folder `fuzz` at the root hand them to libFuzzer.

#![allow(dead_code, unreachable_pub, reason = "each program uses a part")]

mod endpoint;
mod layer;
mod parsers;
mod sealed;

/// A body and what it takes as input.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: [Target; 5] = [
    Target { name: "packet", run: parsers::packet, seeds: parsers::packet_seeds },
    Target { name: "message", run: parsers::message, seeds: parsers::message_seeds },
    Target { name: "sealed", run: sealed::sealed, seeds: sealed::seeds },
    Target { name: "layer", run: layer::layer, seeds: layer::seeds },
    Target { name: "endpoint", run: endpoint::endpoint, seeds: endpoint::seeds },
];

/// Runs the body of this name.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("there is a body of this name").run)(input);
}

/// An input read as a script: numbers, one after another, until it ends.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// A number of this many bytes; bytes that are missing are zeros.
    pub fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |number, i| number | u64::from(self.byte().unwrap_or(0)) << (8 * i))
    }

    /// The next bytes; fewer where the input ends.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// The next bytes, filled up with zeros.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }
}

/// A field of the recorded session.
pub fn recorded(label: &str) -> Vec<u8> {
    let session = include_str!("../../../testdata/session.txt");
    let line = session.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(' ')).expect(label);
    (0..line.len()).step_by(2).map(|i| u8::from_str_radix(&line[i..i + 2], 16).unwrap()).collect()
}
