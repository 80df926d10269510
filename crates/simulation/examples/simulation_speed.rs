//! How many customers the simulator serves in a second, by kind of station.

use std::time::Instant;

use kendall_simulation::{StopRule, simulate};
use kendall_station::{Arrivals, Discipline, Kind, Law, Servers, Station};

fn main() {
    let service = Law::Exponential { mean_s: 0.25 };
    let three = Servers::new(3).expect("three is not zero");
    let fifo = Station::new(Arrivals::poisson(10.0), service.clone(), three);
    let closed = Arrivals::Closed { population: 20, think: Law::Exponential { mean_s: 1.0 } };
    // Of squared coefficient of variation 4: its index falls, so a waiting customer can overtake the one in
    // service.
    let varied = Kind::Hyperexponential.law(0.25, Some(4.0)).expect("H2 can vary so");
    let aging = Station::new(Arrivals::poisson(3.2), varied, Servers::MIN);
    let stations = [
        ("next-free instants", fifo.clone()),
        ("events, room", Station { capacity: Some(50), ..fifo.clone() }),
        ("events, closed", Station { arrivals: closed, ..fifo.clone() }),
        ("events", Station { discipline: Discipline::Lifo, ..fifo.clone() }),
        ("events, preemption", Station { discipline: Discipline::ShortestRemaining, ..fifo.clone() }),
        ("events, Gittins", Station { discipline: Discipline::Gittins, ..fifo.clone() }),
        ("events, overtaking", Station { discipline: Discipline::Gittins, ..aging }),
        ("virtual time", Station { discipline: Discipline::ProcessorSharing, ..fifo }),
    ];
    for (way, station) in stations {
        let customers = if way == "events, overtaking" { 200_000 } else { 10_000_000 };
        let start = Instant::now();
        simulate(&station, StopRule::customers(customers), 1).expect("the station is stable");
        let per_s = customers as f64 / start.elapsed().as_secs_f64();
        println!("{:<20} {:>8.2} M customers/s   {station}", way, per_s / 1e6);
    }
}
