//! How many customers a second the simulator serves, beside other simulators of queues.

use std::env;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::Instant;

use kendall_simulation::{StopRule, processors, simulate_on};
use kendall_station::{Arrivals, Class, Discipline, Law, Servers, Station};

use crate::common::{ROUNDS, median};

const CUSTOMERS: u64 = 20_000_000;
/// Python's simulators keep a record of each customer, and are slower.
const THEIR_CUSTOMERS: u64 = 100_000;

/// The python that is asked for other simulators.
const PYTHON: &str = "PEERS_PYTHON";

const CIW: &str = "
import ciw, sys, time
customers = int(sys.argv[1])
network = ciw.create_network(
    arrival_distributions=[ciw.dists.Exponential(rate=2.4)],
    service_distributions=[ciw.dists.Exponential(rate=1.0)],
    number_of_servers=[3])
ciw.seed(1)
simulation = ciw.Simulation(network)
start = time.perf_counter()
simulation.simulate_until_max_customers(customers, method='Finish')
print(ciw.__version__, customers / (time.perf_counter() - start))
";

const SIMPY: &str = "
import random, simpy, sys, time
customers = int(sys.argv[1])
draw = random.Random(1)
environment = simpy.Environment()
servers = simpy.Resource(environment, capacity=3)
responses = []

def customer():
    arrival = environment.now
    with servers.request() as turn:
        yield turn
        yield environment.timeout(draw.expovariate(1.0))
    responses.append(environment.now - arrival)

def source():
    for _ in range(customers):
        yield environment.timeout(draw.expovariate(2.4))
        environment.process(customer())

environment.process(source())
start = time.perf_counter()
environment.run()
print(simpy.__version__, customers / (time.perf_counter() - start))
";

/// Our package: version, customers a second, then microseconds of a formula and milliseconds of the import.
const OURS: &str = "
import time
start = time.perf_counter()
import kendall
imported = time.perf_counter() - start
station = kendall.Station('M/M/3', arrival_rate=2.4, service_rate=1.0)
start = time.perf_counter()
station.simulate(10_000_000)
rate = 10_000_000 / (time.perf_counter() - start)
start = time.perf_counter()
for _ in range(2_000):
    station.formula()
print(kendall.__version__, rate, (time.perf_counter() - start) / 2_000 * 1e6, imported * 1e3)
";

/// How many customers a second the simulator serves.
pub(crate) fn section(page: &mut String) {
    page.push_str(
        "\n## The simulator\n\nThree servers, exponential gaps and services, ρ = 0.8; means, variances, quantiles, warm-up \
         and intervals included. One thread. FIFO with room for all needs no events; processor sharing runs in virtual \
         time; everything else goes through the general event loop. Two classes of equal share where the order needs \
         them.\n\n| station | customers | million customers per second | against M/M/3 |\n| --- | ---: | ---: | ---: |\n",
    );
    let alone = ours(page);
    together(page, alone);
    theirs(page, alone);
    from_python(page);
}

fn station(discipline: Discipline, capacity: Option<u64>, classes: usize) -> Station {
    let class = |i: usize| Class {
        name: i.to_string(),
        share: 1.0 / classes as f64,
        weight: 1.0 + i as f64,
        service: None,
    };
    let service = Law::Exponential { mean_s: 1.0 };
    let servers = Servers::new(3).expect("3 > 0");
    Station {
        discipline,
        capacity,
        classes: (0..classes).map(class).collect(),
        ..Station::new(Arrivals::poisson(2.4), service, servers)
    }
}

/// Customers a second of one simulation on this many threads.
fn rate_per_s(threads: NonZeroUsize, station: &Station, customers: u64, seed: u64) -> f64 {
    let start = Instant::now();
    simulate_on(threads, station, StopRule::customers(customers), seed).expect("the station is stable");
    customers as f64 / start.elapsed().as_secs_f64()
}

/// Writes one row for each way of running a station, and returns the rate of M/M/3.
fn ours(page: &mut String) -> f64 {
    let stations = [
        ("", station(Discipline::Fifo, None, 0), CUSTOMERS),
        (", two classes", station(Discipline::Fifo, None, 2), CUSTOMERS / 2),
        ("", station(Discipline::Fifo, Some(20), 0), CUSTOMERS / 4),
        ("", station(Discipline::Lifo, None, 0), CUSTOMERS / 4),
        (", two classes", station(Discipline::Priority, None, 2), CUSTOMERS / 4),
        (", two classes", station(Discipline::PreemptivePriority, None, 2), CUSTOMERS / 4),
        ("", station(Discipline::ProcessorSharing, None, 0), CUSTOMERS / 4),
        ("", station(Discipline::ShortestRemaining, None, 0), CUSTOMERS / 4),
        ("", station(Discipline::Gittins, None, 0), CUSTOMERS / 4),
    ];
    // In turns, so that a disturbance meets all of them.
    let mut rates = vec![Vec::new(); stations.len()];
    for round in 0..ROUNDS {
        for ((_, station, customers), rates) in stations.iter().zip(&mut rates) {
            rates.push(rate_per_s(NonZeroUsize::MIN, station, *customers, round as u64));
        }
    }
    let medians: Vec<f64> = rates.into_iter().map(|rates| median(rates.into_iter())).collect();
    for ((with, station, customers), rate) in stations.iter().zip(&medians) {
        let ratio = rate / medians[0];
        let _ = writeln!(page, "| {station}{with} | {customers} | {:.1} | {ratio:.2} |", rate / 1e6);
    }
    medians[0]
}

fn together(page: &mut String, alone: f64) {
    let fifo = station(Discipline::Fifo, None, 0);
    let all = median((0..ROUNDS).map(|round| rate_per_s(processors(), &fifo, CUSTOMERS, round as u64)));
    let ten_million_s =
        median((0..ROUNDS).map(|round| 1e7 / rate_per_s(processors(), &fifo, 10_000_000, round as u64)));
    let _ = writeln!(
        page,
        "\nOn {} threads M/M/3 does {:.1} million a second, {:.2} times what one does; ten million customers are answered in \
         {ten_million_s:.2} s.",
        processors(),
        all / 1e6,
        all / alone,
    );
}

/// The same M/M/3 by others, in turns with ours.
fn theirs(page: &mut String, alone: f64) {
    let fifo = station(Discipline::Fifo, None, 0);
    let _ = write!(
        page,
        "\nThe same M/M/3 by others, one thread each, in rounds with ours:\n\n\
         | | customers | thousand customers per second | kendall, thousand | ratio |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for (name, program) in [("Ciw", CIW), ("SimPy", SIMPY)] {
        let (mut mine, mut their, mut version) = (Vec::new(), Vec::new(), String::new());
        for round in 0..ROUNDS {
            mine.push(rate_per_s(NonZeroUsize::MIN, &fifo, CUSTOMERS / 2, round as u64));
            if let Some((found, rate)) = told(program) {
                version = found;
                their.push(rate);
            }
        }
        let _ = if their.is_empty() {
            writeln!(page, "| {name} | | not installed | {:.0} | |", alone / 1e3)
        } else {
            let (mine, their) = (median(mine.into_iter()), median(their.into_iter()));
            writeln!(
                page,
                "| {name} {version} | {THEIR_CUSTOMERS} | {:.1} | {:.0} | {:.0} |",
                their / 1e3,
                mine / 1e3,
                mine / their,
            )
        };
    }
}

/// The same M/M/3 through the Python package, on all processors, in rounds with the simulator itself.
fn from_python(page: &mut String) {
    let fifo = station(Discipline::Fifo, None, 0);
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let own = rate_per_s(processors(), &fifo, 10_000_000, round as u64);
        if let Some(words) = printed(OURS)
            && let [_, rate, formula_us, import_ms] = &words[..]
            && let (Ok(rate), Ok(formula_us), Ok(import_ms)) =
                (rate.parse(), formula_us.parse(), import_ms.parse())
        {
            rounds.push([own, rate, formula_us, import_ms]);
        }
    }
    let of = |place: usize| median(rounds.iter().map(move |round: &[f64; 4]| round[place]));
    let _ = if rounds.is_empty() {
        writeln!(page, "\nThe Python package is not installed: make wheel.")
    } else {
        writeln!(
            page,
            "\nFrom Python, ten million customers of M/M/3 take {:.2} times as long as here; a formula takes {:.0} µs, and the import {:.0} ms.",
            of(0) / of(1),
            of(2),
            of(3),
        )
    };
}

/// The version and the customers a second that a python program prints, if it runs.
fn told(program: &str) -> Option<(String, f64)> {
    let words = printed(program)?;
    Some((words.first()?.clone(), words.get(1)?.parse().ok()?))
}

/// What a python program prints, if it runs.
fn printed(program: &str) -> Option<Vec<String>> {
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".into());
    let output = Command::new(python).args(["-c", program, &THEIR_CUSTOMERS.to_string()]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}
