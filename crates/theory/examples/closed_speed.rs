//! How long closed models take: `cargo run --release -p kendall-theory --example closed_speed`.

use std::time::Instant;

use kendall_station::{Arrivals, Law, Servers, Station};
use kendall_theory::closed::{ClosedNetwork, ClosedStation, MultiClass};
use kendall_theory::formula;

fn main() {
    println!("{:<58} {:>12} {:>14} {:>10}", "model", "X, 1/s", "R, s", "time, ms");
    for (servers, think_s, service_s, users) in [
        (4, 5.0, 0.2, 100),
        (4, 5.0, 0.2, 150),
        (4, 5.0, 0.2, 200),
        (16, 5.0, 0.8, 150),
        (16, 5.0, 0.8, 400),
        (64, 1.0, 1.0, 300),
        (1000, 9.0, 1.0, 1_000_000),
        (100_000, 9.0, 1.0, 1_000_000),
    ] {
        one_station(servers, think_s, service_s, users);
    }
    network("3 single servers", 10.0, &[(0.05, 1), (0.03, 1), (0.08, 1)]);
    network("4 servers, 2 single servers", 10.0, &[(1.0, 4), (0.25, 1), (0.1, 1)]);
    network("two stations of several servers, both full", 0.0, &[(1.0, 4), (2.0, 8), (0.25, 1)]);
    network("1,000 servers and 8 servers", 1e3, &[(990.0, 1000), (8.0, 8)]);
    network("100,000 servers and a single server", 1e6, &[(40_000.0, 100_000), (0.4, 1)]);
    classes();
}

fn one_station(servers: u32, think_s: f64, service_s: f64, population: u32) {
    let arrivals = Arrivals::Closed { population, think: Law::Exponential { mean_s: think_s } };
    let servers = Servers::new(servers).expect("the table has no station without servers");
    let station = Station::new(arrivals, Law::Exponential { mean_s: service_s }, servers);
    let begun = Instant::now();
    let answer = formula(&station).expect("M/M/m//N has a formula");
    let name = format!("one station, quantiles too: m {servers}, Z {think_s}, S {service_s}, N {population}");
    line(&name, answer.throughput_per_s.value, answer.response.mean_s.value, begun);
}

fn network(name: &str, think_s: f64, stations: &[(f64, u32)]) {
    let station = |&(demand_s, servers): &(f64, u32)| {
        let servers = Servers::new(servers).expect("the table has no station without servers");
        ClosedStation::servers("station", demand_s, servers)
    };
    let stations = stations.iter().map(station).collect();
    let network = ClosedNetwork { think_s, stations, users: 1_000_000 };
    let begun = Instant::now();
    let answer = network.solve().expect("the table has possible networks only");
    line(&format!("{name}, N 1,000,000"), answer.throughput_per_s, answer.response_s, begun);
}

fn classes() {
    let demands_s = vec![vec![0.05, 0.1], vec![0.02, 0.2], vec![0.08, 0.01]];
    for users in [vec![100, 100], vec![1_000_000, 500_000]] {
        let name = format!("two classes, three stations, N {users:?}");
        let classes = MultiClass { demands_s: demands_s.clone(), think_s: vec![1.0, 5.0], users };
        let begun = Instant::now();
        let answer = classes.solve().expect("the classes are possible");
        line(
            &format!("{name}: {}", &answer.source[..10]),
            answer.throughput_per_s[0],
            answer.response_s[0],
            begun,
        );
    }
}

fn line(name: &str, throughput_per_s: f64, response_s: f64, begun: Instant) {
    let time_ms = begun.elapsed().as_secs_f64() * 1e3;
    println!("{name:<58} {throughput_per_s:>12.6} {response_s:>14.8} {time_ms:>10.2}");
}
