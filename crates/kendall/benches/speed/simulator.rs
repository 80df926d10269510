//! How many customers a second the simulator serves.

use std::fmt::Write as _;
use std::time::Instant;

use kendall_solve::{StopRule, simulate};
use kendall_station::{Arrivals, Discipline, Law, Servers, Station};

use crate::{ROUNDS, median};

const CUSTOMERS: u64 = 20_000_000;

/// How many customers a second the simulator serves.
pub(crate) fn section(page: &mut String) {
    page.push_str(
        "\n## The simulator\n\nOne thread, ρ = 0.8. FIFO with room for all has a loop of its own; everything else goes \
         through the general event loop.\n\n| station | customers | million customers per second | against M/M/3 |\n| --- | ---: | ---: | ---: |\n",
    );
    let station = |discipline, capacity| Station {
        discipline,
        capacity,
        ..Station::new(
            Arrivals::poisson(2.4),
            Law::Exponential { mean_s: 1.0 },
            Servers::new(3).expect("3 > 0"),
        )
    };
    let stations = [
        (station(Discipline::Fifo, None), CUSTOMERS),
        (station(Discipline::Fifo, Some(20)), CUSTOMERS / 4),
        (station(Discipline::PreemptivePriority, None), CUSTOMERS / 4),
        (station(Discipline::ProcessorSharing, None), CUSTOMERS / 4),
        (station(Discipline::ShortestRemaining, None), CUSTOMERS / 4),
    ];
    let mut first = None;
    for (station, customers) in stations {
        let rates = (0..ROUNDS).map(|round| {
            let start = Instant::now();
            let answer = simulate(&station, StopRule::customers(customers), round as u64);
            answer.expect("the station is stable");
            customers as f64 / start.elapsed().as_secs_f64()
        });
        let rate = median(rates);
        let ratio = rate / *first.get_or_insert(rate);
        let _ = writeln!(page, "| {station} | {customers} | {:.1} | {ratio:.2} |", rate / 1e6);
    }
}
