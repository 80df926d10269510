//! What is left of an established connection under a flood of Hellos.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::ours;
use super::transfer::{Transfer, confine};
use crate::common::{ROUNDS, median};

/// Bytes of a transfer, which takes several times as long as a server needs to notice a flood.
const BYTES: usize = 1_000_000_000;
const LEAST: f64 = 0.8;
/// Hellos a second, where the flood is not as large as the machine can send.
const RATE_PER_S: f64 = 200_000.0;

/// A flood, each Hello with another key and from the next source.
struct Flood {
    name: &'static str,
    sources: Vec<Ipv4Addr>,
    per_s: f64,
}

/// A transfer in calm and one under each flood in turns; all threads share the same processors.
pub(super) fn table(page: &mut String) {
    let one = || vec![Ipv4Addr::LOCALHOST];
    // Networks of 256 addresses, as the server counts them.
    let many = || (0..=255).map(|network| Ipv4Addr::new(127, 1, network, 1)).collect();
    let floods = [
        Flood { name: "from one network", sources: one(), per_s: RATE_PER_S },
        Flood { name: "from 256 networks", sources: many(), per_s: RATE_PER_S },
        Flood { name: "from one network, as many as it sends", sources: one(), per_s: f64::INFINITY },
        Flood { name: "from 256 networks, as many as it sends", sources: many(), per_s: f64::INFINITY },
    ];
    let rounds: Vec<(Transfer, Vec<(Transfer, f64)>)> =
        (0..ROUNDS).map(|_| (ours::transfer(BYTES, |_| {}), floods.iter().map(under).collect())).collect();
    let _ = writeln!(
        page,
        "\nA transfer of {} GB under a flood of Hellos, which a third thread sends on the same processors. The last column is \
         the throughput per second of processor time that the ends get, relative to a calm transfer of the same round \
         (at least {LEAST} wanted).\n\n\
         | flood | Hellos/s | throughput | per processor second |\n| --- | ---: | ---: | ---: |",
        BYTES / 1_000_000_000,
    );
    for (i, flood) in floods.iter().enumerate() {
        let of = |value: fn(&Transfer, &Transfer, f64) -> f64| {
            median(rounds.iter().map(|(calm, floods)| value(calm, &floods[i].0, floods[i].1)))
        };
        let _ = writeln!(
            page,
            "| {} | {:.0} | {:.2} | {:.2} |",
            flood.name,
            of(|_, _, hellos_per_s| hellos_per_s),
            of(|calm, flooded, _| flooded.gb_per_s() / calm.gb_per_s()),
            of(|calm, flooded, _| calm.cpu_s_per_gb() / flooded.cpu_s_per_gb()),
        );
    }
}

/// A transfer under a flood, and how many Hellos were sent a second.
fn under(flood: &Flood) -> (Transfer, f64) {
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let (connected, address) = mpsc::channel();
    let transfer = thread::scope(|scope| {
        let (over, sent) = (&over, &sent);
        scope.spawn(move || flood.send(address.recv().expect("the transfer begins"), over, sent));
        let transfer = ours::transfer(BYTES, move |server| {
            connected.send(server).expect("the flood waits for it");
        });
        over.store(true, Ordering::Relaxed);
        transfer
    });
    let hellos_per_s = sent.into_inner() as f64 / transfer.took.as_secs_f64();
    (transfer, hellos_per_s)
}

impl Flood {
    /// Sends Hellos until the transfer is over.
    fn send(&self, server: SocketAddr, over: &AtomicBool, sent: &AtomicU64) {
        confine();
        let bind = |source| UdpSocket::bind((source, 0)).expect("a port is free");
        let sockets: Vec<UdpSocket> = self.sources.iter().copied().map(bind).collect();
        let begin = Instant::now();
        let mut hello = [0; 224];
        hello[..8].copy_from_slice(b"QvnQ5XlH");
        for (number, socket) in (1_u64..).zip(sockets.iter().cycle()) {
            while number as f64 > self.per_s * begin.elapsed().as_secs_f64() {
                thread::sleep(Duration::from_micros(100));
            }
            if over.load(Ordering::Relaxed) {
                return;
            }
            hello[40..48].copy_from_slice(&number.to_le_bytes());
            // Where the kernel takes no more, the next one may fit.
            _ = socket.send_to(&hello, server);
            sent.store(number, Ordering::Relaxed);
        }
    }
}
