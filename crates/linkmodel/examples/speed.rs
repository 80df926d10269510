//! The number of packets per second of the model, by discipline, compared with a plain queue.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use kendall_linkmodel::{Ecn, Link, Packet, Settings};

const PACKETS: u64 = 400_000;
/// The fastest of this many runs counts: other work of the machine only slows a run down.
const RUNS: u32 = 15;

fn main() {
    println!("{:>7.1} M packets/s  a plain queue", fastest(plain_queue) / 1e6);
    for settings in [
        "",
        "delay=20ms",
        "rate=1gbit delay=1ms queue=150k",
        "rate=1gbit delay=1ms queue=150k aqm=codel",
        "rate=1gbit delay=1ms queue=150k aqm=fq-codel",
        "rate=1gbit delay=1ms jitter=500us normal queue=150k loss=1% burst 5 corrupt=0.1% duplicate=0.1% reorder=1%",
    ] {
        for logged in [false, true] {
            let settings_of = settings.parse().expect("the settings are valid");
            let per_s = fastest(|| packets_through(&settings_of, logged));
            let log = if logged { ", logged" } else { "" };
            println!("{:>7.1} M packets/s  {settings}{log}", per_s / 1e6);
        }
    }
}

/// Packets per second of the fastest run.
fn fastest(run: impl Fn()) -> f64 {
    let time_s = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    PACKETS as f64 / (0..RUNS).map(time_s).fold(f64::INFINITY, f64::min)
}

fn packet(item: u64) -> Packet<u64> {
    Packet { bytes: 1500, flow: item % 16, ecn: Ecn::NotCapable, item }
}

fn plain_queue() {
    let mut plain = VecDeque::new();
    for item in 0..PACKETS {
        plain.push_back((item as i64, packet(item)));
        if plain.len() > 100 {
            black_box(plain.pop_front());
        }
    }
}

/// Offers packets 5 % faster than a gigabit carries them, and takes out what is due after each.
fn packets_through(settings: &Settings, logged: bool) {
    let mut link = Link::new(settings, 1, 0).expect("the settings are valid");
    if logged {
        link = link.logged(10_000_000);
    }
    for item in 0..PACKETS {
        let now_ns = (item * 11_430) as i64;
        link.offer(now_ns, packet(item));
        while let Some(delivery) = link.poll(now_ns) {
            black_box(delivery);
        }
        if logged && item % 10_000 == 0 {
            link.drain_log(now_ns).for_each(|row| {
                black_box(row);
            });
        }
    }
}
