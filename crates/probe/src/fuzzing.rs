//! What must hold for any files of procfs, replies of the kernel about sockets, and maps of generated code.

use kendall_testbed::fuzz::Target;

use crate::proc::parse;
use crate::profile::perf_map::PerfMap;
use crate::sockets;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "probe-proc", seeds: proc_seeds, run: read_proc },
    Target { name: "probe-sockets", seeds: socket_seeds, run: read_sockets },
    Target { name: "probe-perf-map", seeds: map_seeds, run: read_map },
];

/// Each file is read or left out, and a number has as many digits as fit.
fn read_proc(text: &[u8]) {
    assert!(parse::numbers(text).count() <= text.len());
    let _ = (parse::schedstat(text), parse::stat(text).is_some_and(|stat| parse::has_ended(&stat)));
    let _ =
        (parse::field(text, b"Threads"), parse::net_dev(text), parse::counter(text, b"Tcp:", b"RetransSegs"));
    let _ = (parse::pressure(text), parse::cores(text), parse::call(text));
}

fn proc_seeds() -> Vec<Vec<u8>> {
    [
        "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 2 0 5 6 7 8 20 0 3 0 9 0 0",
        "123 45 6\nThreads:\t3\n",
        "a\nb\n  lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n eth0:7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n",
        "Tcp: InSegs RetransSegs\nTcp: 5 6\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 total=9\n",
        "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2\n",
        "202 0x7f0 0x80 0x0 0x1 0x2 0x3 0x7ffc 0x7f",
        "running",
    ]
    .map(Vec::from)
    .to_vec()
}

/// A dump has at most a socket for each header in it.
fn read_sockets(dump: &[u8]) {
    let mut found = Vec::new();
    let _ = sockets::decode(dump, &mut found);
    assert!(found.len() <= dump.len() / 16);
}

fn socket_seeds() -> Vec<Vec<u8>> {
    let mut message = vec![0; 16 + 72 + 4 + 160];
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&20_u16.to_ne_bytes());
    message[88..90].copy_from_slice(&164_u16.to_ne_bytes());
    message[90..92].copy_from_slice(&2_u16.to_ne_bytes());
    vec![[message.clone(), message].concat()]
}

/// A name is that of a piece of code that holds the address.
fn read_map(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let map = PerfMap::parse(text);
    for address in [0, 0x7f00, 0x7f10, u64::MAX] {
        assert!(map.name(address).is_none_or(|name| name.len() <= text.len() && !name.contains([';', '\n'])));
    }
}

fn map_seeds() -> Vec<Vec<u8>> {
    vec![b"7f00 10 py::main:/a.py\n7f10 0x20 b c\nffffffffffffffff ff d\n".to_vec()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
