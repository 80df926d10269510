//! What is left of an established connection under a flood of Hellos.

use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::{Transfer, confine, ours};
use crate::{ROUNDS, median};

/// Bytes of a transfer, which takes several times as long as a server needs to notice a flood.
const BYTES: usize = 1_000_000_000;
const LEAST: f64 = 0.8;

/// Transfers in turns, without and with the flood; all threads share the same processors.
pub(super) fn row(page: &mut String) {
    let rounds: Vec<(Transfer, Transfer, f64)> = (0..ROUNDS)
        .map(|_| {
            let calm = ours::transfer(BYTES, |_| {});
            let (flooded, hellos) = under_flood();
            let hellos_per_s = hellos as f64 / flooded.took.as_secs_f64();
            (calm, flooded, hellos_per_s)
        })
        .collect();
    let _ = writeln!(
        page,
        "\nUnder a flood of {:.0} Hellos/s, as many as a third thread sends on the same processors, a transfer reaches {:.2} times its \
         calm throughput, and {:.2} times (at least {LEAST} wanted) its calm throughput per second of processor time that the ends get.",
        median(rounds.iter().map(|round| round.2)),
        median(rounds.iter().map(|(calm, flooded, _)| flooded.gb_per_s() / calm.gb_per_s())),
        median(rounds.iter().map(|(calm, flooded, _)| calm.cpu_s_per_gb() / flooded.cpu_s_per_gb())),
    );
}

/// A transfer under a flood, and how many Hellos were sent.
fn under_flood() -> (Transfer, u64) {
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let (connected, address) = mpsc::channel();
    let transfer = thread::scope(|scope| {
        let (over, sent) = (&over, &sent);
        scope.spawn(move || flood(address.recv().expect("the transfer begins"), over, sent));
        let transfer = ours::transfer(BYTES, move |server| {
            connected.send(server).expect("the flood waits for it");
        });
        over.store(true, Ordering::Relaxed);
        transfer
    });
    (transfer, sent.into_inner())
}

/// Sends Hellos, each with another key, until the transfer is over.
fn flood(server: SocketAddr, over: &AtomicBool, sent: &AtomicU64) {
    confine();
    let socket = UdpSocket::bind((server.ip(), 0)).expect("a port is free");
    let mut hello = [0; 224];
    hello[..8].copy_from_slice(b"QvnQ5XlH");
    for number in 1_u64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        hello[40..48].copy_from_slice(&number.to_le_bytes());
        // Where the kernel takes no more, the next one may fit.
        _ = socket.send_to(&hello, server);
        sent.store(number, Ordering::Relaxed);
    }
}
