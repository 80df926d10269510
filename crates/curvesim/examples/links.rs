//! How the congestion controls use links: share of what the protocol can carry, queueing delay, losses.
//!
//! `cargo run --release -p kendall-curvesim --example links`. Everything is simulated, so the table is the same on every machine.

use curvecp::congestion::Algorithm;
use kendall_curvesim::{Measured, bulk};

fn main() {
    let links = [
        ("10 Mbit/s, 20 ms, 100 ms deep", 10.0, "delay=10ms queue=125k"),
        (
            "10 Mbit/s, 20 ms, 120 ms deep, which holds the reference's 128 blocks",
            10.0,
            "delay=10ms queue=150k",
        ),
        ("100 Mbit/s, 20 ms, 100 ms deep", 100.0, "delay=10ms queue=1250k"),
        ("10 Mbit/s, 20 ms, 1 % lost", 10.0, "delay=10ms queue=125k loss=1%"),
        ("100 Mbit/s, 20 ms, 1 % lost", 100.0, "delay=10ms queue=1250k loss=1%"),
        ("10 Mbit/s, 0.4 ms, 24 ms deep", 10.0, "delay=200us queue=30k"),
    ];
    for (name, mbit_per_s, link) in links {
        println!("{name}");
        for algorithm in Algorithm::ALL {
            print_row(algorithm.name(), &bulk(link, mbit_per_s, &[algorithm], [5, 35], 1));
        }
    }
    println!("two flows, 10 Mbit/s, 20 ms, 100 ms deep");
    for pair in [
        [Algorithm::Cubic, Algorithm::Cubic],
        [Algorithm::Bbr, Algorithm::Bbr],
        [Algorithm::Cubic, Algorithm::Bbr],
        [Algorithm::Cubic, Algorithm::ChicagoPolled],
    ] {
        let name = format!("{} + {}", pair[0].name(), pair[1].name());
        print_row(&name, &bulk("delay=10ms queue=125k", 10.0, &pair, [10, 100], 1));
    }
}

fn print_row(name: &str, measured: &Measured) {
    let shares: Vec<String> =
        measured.shares.iter().map(|share| format!("{:5.1} %", share * 100.0)).collect();
    let lost = measured.lost * 100.0;
    println!(
        "  {name:<18} {:<18} {:7.2} ms in queue  {lost:5.2} % lost",
        shares.join(" "),
        measured.queue_ms
    );
}
