//! How often the simulator's intervals hold, and that its answers depend on the seed alone.

use std::num::NonZeroUsize;
use std::thread;

use kendall_simulation::{Fate, StopRule, Traced, processors, simulate, simulate_on, simulate_traced};
use kendall_station::{Arrivals, By, Class, Discipline, Kind, Law, Servers, Station};
use kendall_theory::formula;

fn station(rate_per_s: f64, service: Law, servers: u32) -> Station {
    Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
}

fn unit() -> Law {
    Law::Exponential { mean_s: 1.0 }
}

fn two_classes() -> Vec<Class> {
    let class = |name: &str, weight| Class { name: name.into(), share: 0.5, weight, service: None };
    vec![class("urgent", 3.0), class("patient", 1.0)]
}

/// How many of 200 runs of `customers` have the exact mean in their interval. The runs are shared by all threads.
fn hits(station: &Station, exact: f64, customers: u64) -> u64 {
    const RUNS: u64 = 200;
    let threads = processors().get() as u64;
    let rule = StopRule::customers(customers);
    let hit = |&seed: &u64| {
        simulate_on(NonZeroUsize::MIN, station, rule, seed).unwrap().response.mean_s.contains(exact)
    };
    thread::scope(|scope| {
        let part = |first: u64| (first..RUNS).step_by(threads as usize).filter(hit).count() as u64;
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

/// 200 runs of each station, each with an interval of 95 % for the mean response. Were the true coverage 95 %, fewer
/// than 178 hits would come in one of 2000 tests of a station; from 200 intervals of 100 % one expects 200, so more
/// than 198, which happen once in 2000 as well, would say that they are too wide. Each run is of one to two
/// hundred relaxation times of its station.
#[test]
fn intervals_of_the_mean_cover_it_as_often_as_they_say() {
    let varied = Kind::Hyperexponential.law(1.0, Some(4.0)).unwrap();
    let of = |discipline| Station { discipline, classes: two_classes(), ..station(0.7, unit(), 1) };
    let sharing = Station { discipline: Discipline::ProcessorSharing, ..station(0.7, varied.clone(), 1) };
    // M/G/1 under processor sharing, and M/M/1 in any order that does not know sizes: 1/(1 − ρ).
    let alike = Some(1.0 / (1.0 - 0.7));
    let cases = [
        (station(0.5, unit(), 1), None, 6_000),
        (station(0.8, unit(), 1), None, 25_000),
        (station(0.9, unit(), 1), None, 60_000),
        (station(0.95, unit(), 1), None, 150_000),
        (station(2.4, unit(), 3), None, 25_000),
        (station(0.8, Law::Constant { mean_s: 1.0 }, 1), None, 20_000),
        (station(0.7, varied, 1), None, 30_000),
        (sharing, alike, 12_000),
        (of(Discipline::Priority), alike, 10_000),
        (of(Discipline::PreemptivePriority), alike, 10_000),
    ];
    let found = cases.map(|(station, exact, customers)| {
        let exact = exact.unwrap_or_else(|| formula(&station).unwrap().response.mean_s.value);
        (hits(&station, exact, customers), station.to_string())
    });
    assert!(found.iter().all(|(hits, _)| (178..=198).contains(hits)), "of 200: {found:?}");
}

/// Work is divided by what is asked, not by who does it.
#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let rules = [
        StopRule::Steady { max_customers: 900_000, relative_half_width: Some(0.01) },
        StopRule::customers(800_000),
        StopRule::Quantile { p: 0.9, relative_half_width: 0.05, max_customers: 900_000 },
        StopRule::Runs { customers: 50, runs: 150 },
    ];
    for discipline in [Discipline::Fifo, Discipline::ShortestRemaining, Discipline::ProcessorSharing] {
        let station = Station { discipline, ..station(0.4, unit(), 1) };
        for rule in rules {
            let on = |threads| simulate_on(NonZeroUsize::new(threads).unwrap(), &station, rule, 3).unwrap();
            let alone = on(1);
            assert_eq!(alone, on(2), "{station} {rule:?}");
            assert_eq!(alone, on(5), "{station} {rule:?}");
        }
    }
}

#[test]
fn it_stops_when_a_quantile_is_known_well_enough() {
    let easy = station(0.5, unit(), 1);
    let rule =
        |relative_half_width| StopRule::Quantile { p: 0.99, relative_half_width, max_customers: 4_000_000 };
    let customers = |relative_half_width: f64| {
        let answer = simulate(&easy, rule(relative_half_width), 15).unwrap();
        let found = answer.response.quantile(0.99).unwrap();
        assert!(found.half_width() <= relative_half_width * found.value, "{found:?}");
        // Of exponential response: ln 100 / (1 − ρ). Three times the half-width of a 95 % interval by Student's t with
        // nine degrees of freedom or more: a false alarm in some ten thousand seeds.
        assert!((found.value - 2.0 * 100f64.ln()).abs() <= 3.0 * found.half_width(), "{found:?}");
        let By::Simulation { customers, .. } = answer.by else { panic!("it was simulated") };
        customers
    };
    assert!(customers(0.05) < customers(0.01));
}

fn traced(station: &Station, rule: StopRule) -> Vec<Traced> {
    let mut all = Vec::new();
    let answer = simulate_traced(station, rule, 4, &mut |customer| all.push(*customer)).unwrap();
    assert_eq!(answer, simulate(station, rule, 4).unwrap(), "{station}: a trace changes nothing");
    all
}

/// Every customer is reported once, its instants are in order, and the reports add up to the answer.
#[test]
fn a_trace_tells_every_customer_of_the_answer() {
    let rule = StopRule::Runs { customers: 60, runs: 40 };
    for discipline in Discipline::ALL {
        for capacity in [None, Some(4)] {
            let station = Station { discipline, capacity, classes: two_classes(), ..station(2.0, unit(), 2) };
            let mut all = traced(&station, rule);
            let answer = simulate(&station, rule, 4).unwrap();
            all.sort_by_key(|customer| (customer.run, customer.index));
            let numbers: Vec<(u64, u64)> =
                all.iter().map(|customer| (customer.run, customer.index)).collect();
            assert_eq!(numbers, (0..40).flat_map(|run| (0..60).map(move |i| (run, i))).collect::<Vec<_>>());
            let (served, lost): (Vec<&Traced>, Vec<&Traced>) =
                all.iter().partition(|customer| customer.fate == Fate::Served);
            for customer in &served {
                let started_s = customer.started_s.unwrap();
                assert!(customer.arrival_s <= started_s, "{customer:?}");
                assert!(started_s + customer.service_s <= customer.departure_s + 1e-9, "{customer:?}");
                let rest_s = customer.response_s() - customer.waiting_s - customer.service_s;
                assert!(rest_s.abs() < 1e-9, "{customer:?}");
            }
            assert!(lost.iter().all(|customer| customer.fate == Fate::Lost && customer.started_s.is_none()));
            assert!(
                all.windows(2)
                    .all(|pair| pair[0].run < pair[1].run || pair[0].arrival_s <= pair[1].arrival_s)
            );
            let mean_s =
                served.iter().map(|customer| customer.response_s()).sum::<f64>() / served.len() as f64;
            assert!((mean_s / answer.response.mean_s.value - 1.0).abs() < 1e-9, "{station}");
            assert!((lost.len() as f64 / all.len() as f64 - answer.lost.value).abs() < 1e-12, "{station}");
        }
    }
}

/// No work-conserving order of service makes or saves work: under one seed the busy time of all of them is the same, from an empty
/// station to an empty station, and at each instant so is the unfinished work.
#[test]
fn the_work_is_the_same_in_every_order() {
    let rule = StopRule::Runs { customers: 200, runs: 10 };
    let varied = Kind::Hyperexponential.law(1.0, Some(4.0)).unwrap();
    // Arrivals of FIFO's trace, in whose gaps the station of one server is looked at.
    let unfinished = |all: &[Traced], now_s: f64| -> f64 {
        // Through the instants at which the one server is free: work that came, less the time since that it was busy.
        let mut by_arrival: Vec<&Traced> = all.iter().filter(|customer| customer.run == 0).collect();
        by_arrival.sort_by_key(|customer| customer.index);
        let (mut work_s, mut last_s) = (0.0f64, 0.0);
        for customer in by_arrival.iter().take_while(|customer| customer.arrival_s <= now_s) {
            work_s = (work_s - (customer.arrival_s - last_s)).max(0.0) + customer.service_s;
            last_s = customer.arrival_s;
        }
        (work_s - (now_s - last_s)).max(0.0)
    };
    let of = |discipline| {
        let station = Station { discipline, classes: two_classes(), ..station(0.8, varied.clone(), 1) };
        let answer = simulate(&station, rule, 4).unwrap();
        (answer.utilisation.value / answer.throughput_per_s.value, traced(&station, rule))
    };
    let (busy_s, reference) = of(Discipline::Fifo);
    for discipline in Discipline::ALL {
        let (found_s, all) = of(discipline);
        assert!((found_s / busy_s - 1.0).abs() < 1e-9, "{discipline}: {found_s} {busy_s}");
        // The station becomes empty at the same instants in every order.
        let ends = |all: &[Traced]| -> Vec<f64> {
            let mut left: Vec<f64> = all
                .iter()
                .filter(|customer| customer.run == 0 && unfinished(all, customer.departure_s) < 1e-9)
                .map(|customer| customer.departure_s)
                .collect();
            left.sort_by(f64::total_cmp);
            left
        };
        let (mine, theirs) = (ends(&all), ends(&reference));
        assert_eq!(mine.len(), theirs.len(), "{discipline}");
        assert!(mine.iter().zip(&theirs).all(|(a, b)| (a - b).abs() < 1e-6), "{discipline}");
        assert!(mine.len() > 5, "several busy periods");
    }
}
