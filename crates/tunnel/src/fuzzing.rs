//! What must hold for any message of a tunnel's peer, any packet, and any file of addresses.

use kendall_curve::curvecp::PublicKey;
use kendall_remote::frame;
use kendall_testbed::fuzz::{Script, Target, with_file};

use crate::addresses::{Addresses, Assigned, Pool};
use crate::protocol::{Answer, MTUS, Request};
use crate::{offload, packet};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "tunnel-messages", seeds: message_seeds, run: messages },
    Target { name: "tunnel-packets", seeds: packet_seeds, run: packets },
    Target { name: "tunnel-addresses", seeds: address_seeds, run: addresses },
];

/// What is read as a message is written and read again alike.
fn messages(body: &[u8]) {
    let mut out = Vec::new();
    if let Ok(request) = Request::decode(body) {
        request.encode(&mut out);
        assert_eq!(Request::decode(&out[frame::HEADER..]), Ok(request));
    }
    out.clear();
    if let Ok(answer) = Answer::decode(body) {
        assert!(MTUS.contains(&answer.mtu));
        answer.encode(&mut out);
        assert_eq!(Answer::decode(&out[frame::HEADER..]), Ok(answer));
    }
}

fn pool() -> Pool {
    let v4 = "10.77.0.0/24".parse().expect("it is a network");
    Pool::new(v4, "fd77::/64".parse().ok()).expect("it is large enough")
}

fn message_seeds() -> Vec<Vec<u8>> {
    let both = pool().client(3);
    let body = |assigned| {
        let mut out = Vec::new();
        Answer { mtu: 1500, joined_udp: true, assigned }.encode(&mut out);
        out.split_off(frame::HEADER)
    };
    vec![body(both), body(Assigned { v6: None, server_v6: None, ..both }), vec![1]]
}

/// A packet behind its offload header, of a peer with an MTU: one that a device takes is no longer than it may be, and joined
/// datagrams come apart into packets.
fn packets(input: &[u8]) {
    let mut script = Script(input);
    let mtu = MTUS.start() + script.number(2) as u16 % (MTUS.end() - MTUS.start() + 1);
    let header: [u8; offload::BYTES] = script.array();
    let mut bytes = script.0.to_vec();
    let known = packet::addresses(&bytes);
    packet::clamp_mss(&mut bytes, mtu, offload::is_partial(&header));
    assert_eq!(packet::addresses(&bytes), known);
    assert_eq!(bytes.len(), script.0.len());
    if known.is_none() || !offload::is_valid(&header, bytes.len(), mtu) {
        return;
    }
    if offload::is_joined_udp(&header) {
        offload::split_udp(&offload::from_wire(&header), &mut bytes, |_, part| {
            assert!(part.len() <= usize::from(mtu) && packet::addresses(part).is_some());
        });
    }
}

fn packet_seeds() -> Vec<Vec<u8>> {
    let datagrams = |kind: u8, mut packet: Vec<u8>| {
        packet.extend([0x30, 0x39, 0, 53, 0, 108, 0, 0]);
        packet.extend((0..100).collect::<Vec<u8>>());
        let start = packet.len() as u8 - 108;
        [vec![0, 0, 1, kind, start + 8, 0, 40, 0, start, 0, 6, 0], packet].concat()
    };
    let v4 = vec![0x45, 0, 0, 128, 0, 1, 0, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1];
    let v6 = [&[0x60, 0, 0, 0, 0, 108, 17, 64][..], &[0xfd; 16], &[0xfc; 16]].concat();
    // A SYN that announces segments of 1460 bytes.
    let syn = [
        &[0x45, 0, 0, 44, 0, 1, 0, 0, 64, 6, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1][..],
        &[0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 1, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4],
    ];
    vec![datagrams(5, v4), datagrams(5, v6), [vec![0; 12], syn.concat()].concat()]
}

/// A client of a file of addresses has the same addresses when the file is read again.
fn addresses(input: &[u8]) {
    with_file("addresses", input, |path| {
        let Ok(mut addresses) = Addresses::open(path, pool()) else { return };
        let key = PublicKey([7; 32]);
        let Ok(assigned) = addresses.of(&key, |_| true) else { return };
        let mut again = Addresses::open(path, pool()).expect("it has been written");
        assert_eq!(again.of(&key, |_| true).ok(), Some(assigned));
    });
}

fn address_seeds() -> Vec<Vec<u8>> {
    let line = |key: &str, number: u64| format!("{} {number}\n", key.repeat(32));
    vec![(line("07", 0) + "\n" + &line("ab", 4_294_967_295)).into(), line("01", 252).into()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
