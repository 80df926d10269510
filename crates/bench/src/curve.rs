//! CurveCP beside QUIC on the loopback interface: one stream, both ends on the same two processors. And what a server sustains:
//! ten thousand connections, and a flood of Hellos; what its ciphers and handshakes cost, and how long a client waits for them.

mod boxes;
mod crowd;
pub(crate) mod first_byte;
mod flood;
mod handshakes;
mod ours;
mod quic;
mod transfer;

use std::fmt::Write as _;

use crate::common::{ROUNDS, median};
use transfer::{BYTES, Transfer};

/// Seconds that a transfer of this many bytes takes over one stream, from memory into nothing.
pub(crate) fn raw_stream(bytes: usize) -> f64 {
    ours::transfer(bytes, |_| {}).took.as_secs_f64()
}

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## CurveCP\n\n");
    beside_quic(page);
    boxes::table(page);
    handshakes::row(page);
    first_byte::row(page);
    crowd::row(page);
    flood::table(page);
}

fn beside_quic(page: &mut String) {
    let Some(identity) = quic::Identity::new() else {
        page.push_str("Not compared with QUIC: openssl is not installed, which makes its certificate.\n");
        return;
    };
    let rounds: Vec<[Transfer; 2]> =
        (0..ROUNDS).map(|_| [ours::transfer(BYTES, |_| {}), quic::transfer(&identity)]).collect();
    page.push_str(
        "1 GB over one stream on the loopback interface; each end is a thread with its own runtime, both on the same two \
         processors. quinn has its default transport configuration, segmented sends included, but windows of 16 MiB; both have \
         socket buffers of 4 MiB.\n\n\
         | | GB/s | sender, CPU s/GB | receiver, CPU s/GB | both |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for (side, name) in ["curve", "quinn"].into_iter().enumerate() {
        let of = |value: fn(&Transfer) -> f64| median(rounds.iter().map(|round| value(&round[side])));
        let gb = BYTES as f64 / 1e9;
        let _ = writeln!(
            page,
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} |",
            of(Transfer::gb_per_s),
            of(|one| one.sender_cpu.as_secs_f64()) / gb,
            of(|one| one.receiver_cpu.as_secs_f64()) / gb,
            of(Transfer::cpu_s_per_gb),
        );
    }
    let ratio =
        |value: fn(&Transfer) -> f64| median(rounds.iter().map(|[ours, quic]| value(ours) / value(quic)));
    let _ = writeln!(
        page,
        "\ncurve has {:.2} times quinn's throughput (at least 1.5 wanted) at {:.2} times its processor time (at most 0.6).",
        ratio(Transfer::gb_per_s),
        ratio(Transfer::cpu_s_per_gb),
    );
}
