//! How many customers a second the simulator of networks runs, on one thread.
//!
//! ```sh
//! cargo run --release --example network_speed
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use kendall_simulation::{StopRule, simulate, simulate_network};
use kendall_station::{Arrivals, Discipline, Law, Network, Node, Routes, Servers, Station};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let customers = 1_000_000;
    for discipline in [Discipline::Fifo, Discipline::Priority, Discipline::ProcessorSharing] {
        let node = |name, mean_s, servers| Node {
            discipline,
            ..Node::new(name, Law::Exponential { mean_s }, Servers::new(servers).expect("a positive number"))
        };
        let web = Node { arrivals: Some(Arrivals::poisson(3.2)), ..node("web", 0.5, 2) };
        let network = Network {
            nodes: vec![web, node("db", 0.25, 1)],
            routing: Routes::from([("web".into(), BTreeMap::from([("db".into(), 1.0)]))]),
            population: None,
            classes: Vec::new(),
        };
        let begun = Instant::now();
        let answer = simulate_network(&network, StopRule::customers(customers), 1)?;
        let two_s = begun.elapsed().as_secs_f64();
        let station = Station::new(
            Arrivals::poisson(3.2),
            Law::Exponential { mean_s: 0.5 },
            Servers::new(2).expect("two"),
        );
        // A capacity that is never reached, so that the general loop for stations runs.
        let station = Station { discipline, capacity: Some(1_000_000), ..station };
        let begun = Instant::now();
        simulate(&station, StopRule::customers(customers), 1)?;
        let one_s = begun.elapsed().as_secs_f64();
        println!(
            "{:20} two nodes {:6.2} million customers/s, one plain station {:6.2}; response {:.4} s",
            discipline.name(),
            answer.counts.arrived as f64 / two_s / 1e6,
            customers as f64 / one_s / 1e6,
            answer.overall.response.mean_s.value,
        );
    }
    Ok(())
}
