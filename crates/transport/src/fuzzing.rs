//! What must hold for any request of the transport laboratory, and for flows as users write them.

use kendall_flows::LinkDirection;
use kendall_testbed::fuzz::Target;

use crate::flows::source::{Flow, read_connections, read_contenders, read_flows};
use crate::protocol::{HEAD_BYTES, Head, MOST_BYTES};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "transport-request", seeds: request_seeds, run: request },
    Target { name: "transport-flows", seeds: flow_seeds, run: flows },
];

/// Nine bytes are a request in one way, whose length is bounded.
fn request(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<HEAD_BYTES>() else { return };
    let Ok(head) = Head::decode(bytes) else { return };
    let (Head::Send(length) | Head::Echo(length) | Head::Take(length)) = head;
    assert!(length <= MOST_BYTES);
    assert_eq!(head.encode(), *bytes);
}

fn request_seeds() -> Vec<Vec<u8>> {
    [Head::Send(1), Head::Echo(300), Head::Take(MOST_BYTES)].map(|head| head.encode().to_vec()).to_vec()
}

/// A run has a bounded number of flows, and each is read again as it is shown.
fn flows(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(flows) = read_flows(text) {
        assert!((1..=64).contains(&flows.len()));
    }
    for Flow { source, way, .. } in read_contenders(text).into_iter().flatten() {
        let way = if way == LinkDirection::Up { "up:" } else { "" };
        let again: Flow = format!("{way}{source}").parse().expect("it is shown as it is written");
        assert_eq!(again.source, source);
    }
    for source in read_connections(text).into_iter().flatten() {
        assert_eq!(source.to_string().parse(), Ok(source));
    }
}

fn flow_seeds() -> Vec<Vec<u8>> {
    ["2xtcp,curve+1.5,ssh,2xup:quic+1", "curve,up:tcp"].map(Vec::from).to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
