//! The simulator compared with formulas, with the reference table, and with the laws that every station obeys.
//!
//! Seeds are fixed, so a test passes or fails once and for all. Each comparison allows twice the half-width of a 95 %
//! interval by Student's t with at least nine degrees of freedom: a false alarm in about 700 when a seed is changed.

use crate::table::{Row, rows};
use kendall_simulation::{SimulationError, StopRule, simulate, simulate_traced};
use kendall_station::{
    Answer, Arrivals, Attendance, By, Class, Discipline, Estimate, Law, Part, Servers, Station,
};
use kendall_stats::random;
use kendall_theory::{NoFormula, formula};

const RUN: StopRule = StopRule::Steady { max_customers: 300_000, relative_half_width: None };

fn station(arrivals: Arrivals, service: Law, servers: u32) -> Station {
    Station::new(arrivals, service, Servers::new(servers).unwrap())
}

fn run(station: &Station, seed: u64) -> Answer {
    simulate(station, RUN, seed).unwrap_or_else(|error| panic!("{station}: {error}"))
}

/// Within twice the interval, which must be there.
fn near(what: &str, found: Estimate, exact: f64) {
    let (low, high) = found.interval.unwrap_or_else(|| panic!("{what} has no interval"));
    // A share's interval may be cut at 0 or 1 on one side.
    let width = 2.0 * (high - found.value).max(found.value - low);
    assert!(
        (found.value - exact).abs() <= width + 1e-12,
        "{what}: {} ± {width}, exactly {exact}",
        found.value
    );
}

fn hyperexponential() -> Law {
    Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] }
}

/// Users who stay are a closed population. Those who join and leave send requests while they are there.
#[test]
fn users_over_time_follow_their_target_number() {
    let attended = |points: &[(f64, f64)], think: Law, service: Law| {
        station(Arrivals::Attended(Attendance { points: points.to_vec(), think }), service, 1)
    };
    let runs = StopRule::Runs { customers: 1_000_000, runs: 30 };
    let exponential = |mean_s| Law::Exponential { mean_s };
    let stay = attended(&[(0.0, 5.0), (2000.0, 5.0)], exponential(1.0), exponential(0.2));
    let closed = Arrivals::Closed { population: 5, think: exponential(1.0) };
    let exact = formula(&station(closed, exponential(0.2), 1)).unwrap();
    near("the mean response", simulate(&stay, runs, 1).unwrap().response.mean_s, exact.response.mean_s.value);
    assert_eq!(formula(&stay), Err(NoFormula::Attended));
    assert_eq!(simulate(&stay, RUN, 1), Err(SimulationError::NoSteadyState { ends_s: 2000.0 }));

    let constant = |mean_s| Law::Constant { mean_s };
    let points = [(0.0, 1.0), (10.0, 1.0), (10.0, 3.0), (20.0, 3.0), (20.0, 1.0), (30.0, 1.0)];
    let mut seen = Vec::new();
    let come_and_go = attended(&points, constant(0.1), constant(0.05));
    simulate_traced(&come_and_go, runs, 1, &mut |one| seen.push((one.arrival_s, one.departure_s))).unwrap();
    let here = |at_s: f64| seen.iter().filter(|(from_s, to_s)| *from_s <= at_s && at_s < *to_s).count();
    assert!(seen.iter().all(|(from_s, _)| *from_s < 30.0));
    // All runs are alike, because nothing is random: each has the same number in the system.
    let most = |from: u32, to: u32| (from..to).map(|i| here(f64::from(i) * 0.01 + 0.005)).max().unwrap() / 30;
    assert_eq!((most(0, 1000), most(2020, 3000)), (1, 1));
    assert!((2..=3).contains(&most(1000, 2000)));
    // Alone a round takes 0.15 s.
    let alone = seen.iter().filter(|(from_s, _)| *from_s < 10.0).count() / 30;
    assert!((65..=67).contains(&alone), "{alone}");
}

#[test]
fn it_agrees_with_every_formula() {
    let exponential = Law::Exponential { mean_s: 0.5 };
    let stations = [
        station(Arrivals::poisson(1.4), exponential.clone(), 1),
        station(Arrivals::poisson(4.5), exponential.clone(), 3),
        station(Arrivals::poisson(30.0), exponential.clone(), 18),
        Station { capacity: Some(8), ..station(Arrivals::poisson(7.0), exponential.clone(), 3) },
        Station { capacity: Some(4), ..station(Arrivals::poisson(6.0), Law::Constant { mean_s: 0.5 }, 4) },
        station(Arrivals::poisson(1.4), Law::Constant { mean_s: 0.5 }, 1),
        station(Arrivals::poisson(0.5), hyperexponential(), 1),
        station(Arrivals::poisson(0.7), Law::Uniform { low_s: 0.0, high_s: 2.0 }, 1),
        Station {
            discipline: Discipline::ProcessorSharing,
            ..station(Arrivals::poisson(1.4), exponential.clone(), 1)
        },
        Station { discipline: Discipline::Lifo, ..station(Arrivals::poisson(1.4), exponential, 1) },
    ];
    for (station, seed) in stations.iter().zip(1..) {
        let (exact, found) = (formula(station).unwrap(), run(station, seed));
        let check =
            |what: &str, found, exact: Estimate| near(&format!("{station} {what}"), found, exact.value);
        check("response", found.response.mean_s, exact.response.mean_s);
        check("waiting", found.waiting.mean_s, exact.waiting.mean_s);
        check("throughput", found.throughput_per_s, exact.throughput_per_s);
        check("utilisation", found.utilisation, exact.utilisation);
        check("number", found.in_system, exact.in_system);
        check("chance to wait", found.p_wait, exact.p_wait);
        check("loss", found.lost, exact.lost);
        for quantile in &exact.response.quantiles {
            let Some(found) = found.response.quantile(quantile.p) else { continue };
            // The histogram resolves 0.1 %.
            let slack = 2.0 * found.half_width() + 0.001 * found.value;
            let error = (found.value - quantile.value_s.value).abs();
            assert!(error <= slack, "{station} p = {}: {found:?} {quantile:?}", quantile.p);
        }
        if !exact.response.quantiles.is_empty() {
            assert!(found.response.quantile(0.99).is_some(), "{station}: too few quantiles");
        }
    }
}

fn classes(row: &Row, services: impl Fn(usize) -> Law) -> (f64, Vec<Class>) {
    let rates = row.numbers("lam");
    let total: f64 = rates.iter().sum();
    let class = |(i, rate): (usize, &f64)| Class {
        name: i.to_string(),
        share: rate / total,
        weight: 1.0 / (1.0 + i as f64),
        service: Some(services(i)),
    };
    (total, rates.iter().enumerate().map(class).collect())
}

#[test]
fn priorities_are_those_of_the_table() {
    let models = [
        ("mg1_priority_nonpreemptive", Discipline::Priority, 6),
        ("mg1_priority_preemptive_resume", Discipline::PreemptivePriority, 5),
        ("mmm_priority_nonpreemptive", Discipline::Priority, 4),
        ("mmm_priority_preemptive_resume", Discipline::PreemptivePriority, 3),
    ];
    for (model, discipline, count) in models {
        let rows = rows(model);
        assert_eq!(rows.len(), count, "rows of {model}");
        for row in &rows {
            let service = |i: usize| match row.optional("mu") {
                Some(mu) => Law::exponential_rate(mu),
                None => {
                    let (mean_s, second) = (row.numbers("ES")[i], row.numbers("ES2")[i]);
                    let scv = second / (mean_s * mean_s) - 1.0;
                    if scv == 0.0 { Law::Constant { mean_s } } else { Law::Exponential { mean_s } }
                }
            };
            let (rate, classes) = classes(row, service);
            let servers = row.optional("m").map_or(1, |m| m as u32);
            let station =
                Station { classes, discipline, ..station(Arrivals::poisson(rate), service(0), servers) };
            let answer = run(&station, 5);
            let class = &answer.classes[row.number("cls") as usize];
            let found = if row.quantity == "R_mean" { &class.response } else { &class.waiting };
            near(&format!("{row:?}"), found.mean_s, row.value);
        }
    }
}

#[test]
fn sharing_is_that_of_the_table() {
    let rows = rows("mgm_ps");
    assert_eq!(rows.len(), 5);
    for row in rows {
        let service = match row.text("service") {
            "exp mean 1" => Law::Exponential { mean_s: 1.0 },
            "det 1" => Law::Constant { mean_s: 1.0 },
            "H2 .9@.5 .1@5.5" => hyperexponential(),
            other => panic!("unknown law {other}"),
        };
        let fifo = station(Arrivals::poisson(row.number("lam")), service, row.number("m") as u32);
        let shared = Station { discipline: Discipline::ProcessorSharing, ..fifo };
        near(&format!("{row:?}"), run(&shared, 6).response.mean_s, row.value);
    }
}

#[test]
fn a_closed_population_is_that_of_the_table() {
    let rows = rows("mm_m_finite_source");
    assert_eq!(rows.len(), 9);
    for row in rows {
        let think = Law::Exponential { mean_s: row.number("Z") };
        let arrivals = Arrivals::Closed { population: row.number("N") as u32, think };
        let station = station(arrivals, Law::Exponential { mean_s: row.number("S") }, row.number("m") as u32);
        let answer = run(&station, 7);
        let found = match row.quantity.as_str() {
            "throughput" => answer.throughput_per_s,
            "R_mean" => answer.response.mean_s,
            "utilisation" => answer.utilisation,
            other => panic!("no simulation of {other}"),
        };
        near(&format!("{row:?}"), found, row.value);
    }
}

/// Little's law over the time after the warm-up; what it cuts in two at the edges is below 3 %.
#[test]
fn little_and_the_balance_of_work_hold_under_every_discipline() {
    for discipline in Discipline::ALL {
        for capacity in [None, Some(5)] {
            let class =
                |name: &str, share, weight, service| Class { name: name.into(), share, weight, service };
            let station = Station {
                discipline,
                capacity,
                classes: vec![
                    class("short", 0.7, 2.0, None),
                    class("long", 0.3, 1.0, Some(hyperexponential())),
                ],
                ..station(Arrivals::poisson(2.4), Law::Exponential { mean_s: 0.5 }, 2)
            };
            let answer = simulate(&station, StopRule::customers(20_000), 8).unwrap();
            let product = answer.throughput_per_s.value * answer.response.mean_s.value;
            let number = answer.in_system.value;
            assert!((product / number - 1.0).abs() < 0.03, "{discipline}: {product} {number}");
            let parts: f64 = answer.classes.iter().map(|class| class.throughput_per_s.value).sum();
            assert!((parts / answer.throughput_per_s.value - 1.0).abs() < 1e-9, "{discipline}");
            if capacity.is_none() {
                near(discipline.name(), answer.utilisation, 2.4 * (0.7 * 0.5 + 0.3) / 2.0);
                assert_eq!(answer.lost.value, 0.0);
            } else {
                assert!(answer.lost.value > 0.0, "{discipline}");
            }
        }
    }
}

/// With equal exponential service the order cannot change how many are present.
#[test]
fn the_order_does_not_change_the_number_present() {
    let exact = formula(&station(Arrivals::poisson(4.8), Law::Exponential { mean_s: 0.5 }, 3)).unwrap();
    for discipline in Discipline::ALL {
        if discipline == Discipline::ShortestRemaining {
            continue; // Only this order is given the sizes.
        }
        let class = |name: &str, weight| Class { name: name.into(), share: 0.5, weight, service: None };
        let station = Station {
            discipline,
            classes: vec![class("a", 1.0), class("b", 3.0)],
            ..station(Arrivals::poisson(4.8), Law::Exponential { mean_s: 0.5 }, 3)
        };
        near(discipline.name(), run(&station, 9).in_system, exact.in_system.value);
    }
}

/// Among all orders, shortest remaining has the least mean response, on any one server and for any sizes; Gittins the
/// least among those that do not know them, and below FIFO where service varies more than an exponential.
#[test]
fn disciplines_with_more_information_wait_less() {
    let mean = |discipline| {
        let station = Station { discipline, ..station(Arrivals::poisson(0.7), hyperexponential(), 1) };
        simulate(&station, StopRule::customers(30_000), 10).unwrap().response.mean_s.value
    };
    let (shortest, gittins, fifo) =
        (mean(Discipline::ShortestRemaining), mean(Discipline::Gittins), mean(Discipline::Fifo));
    let sharing = mean(Discipline::ProcessorSharing);
    assert!(
        shortest < gittins && gittins < sharing && sharing < fifo,
        "{shortest} {gittins} {sharing} {fifo}"
    );
}

/// A distribution of two values: a request that has outlived the shorter one yields to those that may not.
#[test]
fn gittins_serves_laws_with_atoms() {
    let law = Law::Mixture {
        parts: vec![
            Part { probability: 0.8, of: Law::Constant { mean_s: 0.5 } },
            Part { probability: 0.2, of: Law::Constant { mean_s: 4.0 } },
        ],
    };
    let mean = |discipline| {
        let station = Station { discipline, ..station(Arrivals::poisson(0.6), law.clone(), 1) };
        simulate(&station, StopRule::customers(30_000), 11).unwrap().response.mean_s.value
    };
    assert!(mean(Discipline::Gittins) < mean(Discipline::Fifo));
}

#[test]
fn the_same_seed_gives_the_same_answer_and_another_another() {
    for discipline in [Discipline::Fifo, Discipline::Gittins, Discipline::ProcessorSharing] {
        let station =
            Station { discipline, ..station(Arrivals::poisson(1.0), Law::Exponential { mean_s: 0.5 }, 1) };
        let answer = |seed| simulate(&station, StopRule::customers(5000), seed).unwrap();
        assert_eq!(answer(1), answer(1), "{discipline}");
        assert_ne!(answer(1).response, answer(2).response, "{discipline}");
    }
}

/// A trace is run unchanged: two customers at a time, one server, constant service.
#[test]
fn a_trace_is_served_to_its_last_request() {
    for discipline in [Discipline::Fifo, Discipline::Lifo, Discipline::ProcessorSharing] {
        let instants_s: Vec<f64> = (1..=1000).map(|i| f64::from(i / 2) * 10.0).collect();
        let arrivals = Arrivals::Trace { instants_s: instants_s.into() };
        let station = Station { discipline, ..station(arrivals, Law::Constant { mean_s: 1.0 }, 1) };
        let answer = run(&station, 12);
        assert!(matches!(answer.by, By::Simulation { customers: 1000, .. }), "{discipline}: {:?}", answer.by);
        let mean = answer.response.mean_s.value;
        // The first and the last are alone; of each other pair one waits for the other, or both share.
        let exact = match discipline {
            Discipline::ProcessorSharing => (998.0 * 2.0 + 2.0) / 1000.0,
            _ => (499.0 * 3.0 + 2.0) / 1000.0,
        };
        assert!((mean - exact).abs() < 1e-9, "{discipline}: {mean} {exact}");
    }
}

#[test]
fn an_unstable_station_is_rejected_with_its_growth() {
    let unstable = station(Arrivals::poisson(20.0), Law::exponential_rate(4.0), 3);
    let Err(SimulationError::Unstable { rho, growth_per_s, reached, customers }) =
        simulate(&unstable, RUN, 13)
    else {
        panic!("20 per second on a station for 12")
    };
    assert!((rho - 20.0 / 12.0).abs() < 1e-12 && customers > 50_000);
    // λ − mµ = 8 per second; over that long a run the noise is far below 5 %.
    assert!((growth_per_s / 8.0 - 1.0).abs() < 0.05, "{growth_per_s}");
    assert!(reached > 10_000);
    let finite = Station { capacity: Some(10), ..unstable };
    near("M/M/3/10", run(&finite, 13).lost, formula(&finite).unwrap().lost.value);
}

#[test]
fn it_stops_when_it_is_precise_enough() {
    let easy = station(Arrivals::poisson(2.0), Law::Exponential { mean_s: 0.2 }, 2);
    let rule = StopRule::Steady { max_customers: 2_000_000, relative_half_width: Some(0.02) };
    let answer = simulate(&easy, rule, 14).unwrap();
    assert!(answer.response.mean_s.half_width() <= 0.02 * answer.response.mean_s.value);
    assert!(matches!(answer.by, By::Simulation { customers, .. } if customers < 500_000), "{:?}", answer.by);
}

/// Sixty runs, each with an interval of 95 %: fewer than 50 hits happen once in a thousand.
#[test]
fn the_interval_has_its_coverage() {
    let busy = station(Arrivals::poisson(1.6), Law::Exponential { mean_s: 0.5 }, 1);
    let exact = formula(&busy).unwrap().response.mean_s.value;
    let hits = (0..60)
        .filter(|&seed| {
            simulate(&busy, StopRule::customers(100_000), seed).unwrap().response.mean_s.contains(exact)
        })
        .count();
    assert!(hits >= 50, "{hits} of 60");
}

/// If the order ignores weights, requests of all classes wait alike; otherwise the weighted response is the classes' own, each by its
/// share and weight.
#[test]
fn the_weighted_response_adds_up_over_the_classes() {
    let class = |name: &str, share, weight| Class { name: name.into(), share, weight, service: None };
    let classes = vec![class("1", 0.7, 1.0), class("5", 0.3, 5.0)];
    let exponential = Law::Exponential { mean_s: 0.5 };
    for discipline in [Discipline::Fifo, Discipline::PreemptivePriority] {
        let station = Station {
            classes: classes.clone(),
            discipline,
            ..station(Arrivals::poisson(1.6), exponential.clone(), 1)
        };
        assert!((station.mean_weight() - 2.2).abs() < 1e-12);
        let answer = run(&station, 12);
        let weighted_s = answer.weighted_response_s.unwrap();
        let share = |i: usize| answer.classes[i].throughput_per_s.value / answer.throughput_per_s.value;
        let cost = |i: usize| share(i) * classes[i].weight * answer.classes[i].response.mean_s.value;
        assert!((weighted_s.value / (cost(0) + cost(1)) - 1.0).abs() < 1e-9);
        match formula(&station) {
            Ok(exact) => near("weighted", weighted_s, exact.weighted_response_s.unwrap().value),
            Err(_) => assert!(weighted_s.value < 0.9 * 2.2 * answer.response.mean_s.value),
        }
        let beyond = answer.clone().delayed(0.25, station.mean_weight());
        let moved_s = beyond.weighted_response_s.unwrap().value - weighted_s.value;
        assert!((moved_s - 0.25 * 2.2).abs() < 1e-12);
    }
}

/// Priorities of an exponential law: k has the share e^(−λ(k−1)) − e^(−λk), and 16 what is left; its weight is k.
fn priorities(lambda: f64) -> Vec<Class> {
    let tail = |k: u32| if k == 16 { 0.0 } else { (-lambda * f64::from(k)).exp() };
    let class = |k: u32| Class {
        name: k.to_string(),
        share: tail(k - 1) - tail(k),
        weight: f64::from(k),
        service: None,
    };
    (1..=16).map(class).collect()
}

/// Searches whose answer is uniform in their range, one at a time and one every 1/0.95 mean services, 500 from an empty
/// station.
fn searches(discipline: Discipline, lambda: f64) -> Station {
    let arrivals = Arrivals::Open { gap: Law::Constant { mean_s: 1.0 / 0.95 } };
    let service = Law::Uniform { low_s: 0.0, high_s: 2.0 };
    Station { discipline, classes: priorities(lambda), ..station(arrivals, service, 1) }
}

fn score(station: &Station) -> Estimate {
    let rule = StopRule::Runs { customers: 500, runs: 240 };
    simulate(station, rule, 3).unwrap().weighted_response_s.unwrap()
}

/// The table of another simulator, of 10 to 20 runs of 500, in mean services. Means of so few runs vary by some 10 % and
/// as much again is possible; ratios of the same requests vary by 2 %.
#[test]
fn the_order_of_service_agrees_with_another_simulator() {
    let table =
        [(Discipline::Fifo, 6.35), (Discipline::PreemptivePriority, 4.85), (Discipline::Gittins, 4.81)];
    let fifo = score(&searches(Discipline::Fifo, 1.0)).value;
    for (discipline, wanted) in table {
        let found = score(&searches(discipline, 1.0));
        assert!(found.half_width() < 0.06 * found.value, "{discipline} {found:?}");
        assert!((found.value / wanted - 1.0).abs() < 0.2, "{discipline}: {} for {wanted}", found.value);
        let (ratio, known) = (found.value / fifo, wanted / table[0].1);
        assert!((ratio / known - 1.0).abs() < 0.04, "{discipline}: {ratio} of FIFO for {known}");
    }
}

/// Gittins knows the law of a class. Of a uniform law its order is that of weight over remaining range, which
/// `kendall-station` tests; of as many measured times as a trial has, it is worth the same to 2 %.
#[test]
fn gittins_with_measured_times_agrees_with_their_law() {
    let mut rng = random::stream(4, random::Purpose::Service, 0);
    let uniform = Law::Uniform { low_s: 0.0, high_s: 2.0 };
    let samples_s = (0..500).map(|_| uniform.sample(&mut rng)).collect();
    // To the same mean, for at this utilisation a per cent more work is a tenth more waiting.
    let measured = Law::empirical(samples_s).unwrap().with_mean(1.0);
    let [exact, found] = [uniform, measured].map(|service| {
        let score =
            |discipline| score(&Station { service: service.clone(), ..searches(discipline, 1.0) }).value;
        score(Discipline::Gittins) / score(Discipline::Fifo)
    });
    assert!((found / exact - 1.0).abs() < 0.02, "{found} of FIFO for {exact}");
}

/// Runs of a stable station begin empty, so they wait less than in the steady state; runs of an overloaded one have an
/// answer at all; and every request of each run is in it.
#[test]
fn runs_are_finite_and_from_empty() {
    let exponential = Law::Exponential { mean_s: 0.5 };
    let busy = station(Arrivals::poisson(1.8), exponential.clone(), 1);
    let overloaded = station(Arrivals::poisson(4.0), exponential.clone(), 1);
    let shared = Station {
        discipline: Discipline::ProcessorSharing,
        ..station(Arrivals::poisson(4.0), exponential, 1)
    };
    let rule = StopRule::Runs { customers: 40, runs: 100 };
    let runs = |station: &Station| simulate(station, rule, 5).unwrap();
    assert!(runs(&busy).response.mean_s.value < 0.8 * formula(&busy).unwrap().response.mean_s.value);
    for station in [&busy, &overloaded, &shared] {
        let answer = runs(station);
        assert!(
            matches!(answer.by, By::Simulation { customers: 4000, runs: Some(100), .. }),
            "{:?}",
            answer.by
        );
        let product = answer.throughput_per_s.value * answer.response.mean_s.value;
        assert!((product / answer.in_system.value - 1.0).abs() < 1e-9, "Little's law");
        assert_eq!(answer, runs(station));
    }
    // A single request never waits.
    let alone = simulate(&overloaded, StopRule::Runs { customers: 1, runs: 400 }, 6).unwrap();
    assert!(alone.waiting.mean_s.value < 1e-12);
    near("alone", alone.response.mean_s, 0.5);
}
