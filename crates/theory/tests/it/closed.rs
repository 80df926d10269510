//! The laws of closed populations, by formula, by network and by simulation.

use std::time::Instant;

use kendall_simulation::{StopRule, simulate};
use kendall_station::{Arrivals, Class, Discipline, Law, Servers, Station};
use kendall_theory::closed::{
    ClosedError, ClosedNetwork, ClosedStation, InteractiveCheck, MultiClass, Serving,
};
use kendall_theory::{NoFormula, engset, formula, response_survival, waiting_survival};
use proptest::prelude::*;

fn servers(servers: u32) -> Servers {
    Servers::new(servers).unwrap()
}

fn one(m: u32, think_s: f64, demand_s: f64, users: u64) -> ClosedNetwork {
    ClosedNetwork { think_s, stations: vec![ClosedStation::servers("cpu", demand_s, servers(m))], users }
}

fn station(m: u32, think_s: f64, service_s: f64, users: u32) -> Station {
    let arrivals = Arrivals::Closed { population: users, think: Law::Constant { mean_s: think_s } };
    Station::new(arrivals, Law::Exponential { mean_s: service_s }, servers(m))
}

/// m workers, a think time and some hundred users: where the usual recursion returns negative times. The values are from
/// rational arithmetic.
#[test]
fn several_servers_and_hundreds_of_users_are_right_to_nine_digits() {
    let table = [
        (4, 5.0, 0.2, 100, 0.473_453_896_334_446_6),
        (4, 5.0, 0.2, 150, 2.500_010_649_210_636_4),
        (4, 5.0, 0.2, 200, 5.0),
        (16, 5.0, 0.8, 150, 2.500_402_748_922_596_6),
        (16, 5.0, 0.8, 400, 15.0),
        (64, 1.0, 1.0, 300, 3.6875),
    ];
    for (m, think_s, demand_s, users, exact_s) in table {
        let network = one(m, think_s, demand_s, users).solve().unwrap();
        let formula = formula(&station(m, think_s, demand_s, users as u32)).unwrap();
        for found_s in [network.response_s, formula.response.mean_s.value] {
            assert!((found_s / exact_s - 1.0).abs() < 1e-9, "{m} {users}: {found_s} for {exact_s}");
        }
    }
}

fn network() -> impl Strategy<Value = ClosedNetwork> {
    let serving = prop_oneof![
        3 => Just(Serving::Servers(Servers::MIN)),
        3 => (2u32..50).prop_map(|m| Serving::Servers(servers(m))),
        1 => Just(Serving::Delay),
        1 => proptest::collection::vec(0.1..3.0f64, 1..6).prop_map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            Serving::Rates(rates)
        }),
    ];
    let station = (prop_oneof![1 => Just(0.0), 9 => 1e-6..2.0f64], serving)
        .prop_map(|(demand_s, serving)| ClosedStation { name: "station".into(), demand_s, serving });
    let stations = proptest::collection::vec(station, 1..6);
    (prop_oneof![Just(0.0), 1e-3..50.0f64], stations, 1u64..400)
        .prop_map(|(think_s, stations, users)| ClosedNetwork { think_s, stations, users })
        .prop_filter("someone must need some time", |network| network.validate().is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// N = X·(R + Z), the bounds hold, throughput never falls with more users, and nothing is negative or not a number.
    #[test]
    fn the_laws_of_closed_loops_hold(network in network()) {
        let answer = network.solve().unwrap();
        let users = network.users as f64;
        let (x, response_s) = (answer.throughput_per_s, answer.response_s);
        prop_assert!(x > 0.0 && x.is_finite() && response_s >= 0.0 && response_s.is_finite(), "{x} {response_s}");
        prop_assert!((x * (response_s + network.think_s) / users - 1.0).abs() < 1e-9, "{answer:?}");
        let bounds = network.bounds().unwrap();
        let (low, high) = bounds.throughput_per_s;
        prop_assert!(x >= low * (1.0 - 1e-9) && x <= high * (1.0 + 1e-9), "{low} {x} {high}");
        if let Some((low, high)) = bounds.balanced_throughput_per_s {
            prop_assert!(x >= low * (1.0 - 1e-9) && x <= high * (1.0 + 1e-9), "balanced {low} {x} {high}");
        }
        for station in &answer.stations {
            prop_assert!(station.queue >= 0.0 && (0.0..=1.0).contains(&station.utilisation), "{station:?}");
            prop_assert!(station.response_s >= station.demand_s * 1e-3 - 1e-12 && station.response_s.is_finite());
        }
        let rising = ClosedNetwork { users: network.users + 1, ..network.clone() }.solve().unwrap();
        prop_assert!(rising.throughput_per_s >= x * (1.0 - 1e-9));
    }

    /// If no request waits, several servers are a delay; and rates that express the same are equivalent.
    #[test]
    fn a_server_for_each_user_is_a_delay(network in network(), users in 1u64..40) {
        let replaced = |serving: &dyn Fn() -> Serving| {
            let mut network = ClosedNetwork { users, ..network.clone() };
            for station in &mut network.stations {
                if let Serving::Servers(_) = station.serving {
                    station.serving = serving();
                }
            }
            network.solve().unwrap()
        };
        let delays = replaced(&|| Serving::Delay);
        let plenty = replaced(&|| Serving::Servers(servers(40)));
        let rates = replaced(&|| Serving::Rates((1..=40).map(f64::from).collect()));
        for found in [plenty, rates] {
            prop_assert!((found.throughput_per_s / delays.throughput_per_s - 1.0).abs() < 1e-9);
            for (a, b) in found.stations.iter().zip(&delays.stations) {
                prop_assert!((a.queue - b.queue).abs() <= 1e-9 * users as f64);
            }
        }
    }

    /// Single servers by convolution, forced by a rate of one that never changes, equal those of mean value analysis.
    #[test]
    fn convolution_is_mean_value_analysis(demands in proptest::collection::vec(1e-4..1.0f64, 1..6), think_s in 0.0..20.0f64, users in 1u64..300) {
        let with = |serving: Serving| {
            let station = |&demand_s| ClosedStation { name: "s".into(), demand_s, serving: serving.clone() };
            ClosedNetwork { think_s, stations: demands.iter().map(station).collect(), users }.solve().unwrap()
        };
        let exact = with(Serving::Servers(Servers::MIN));
        // The log domain handles falling rates, even if they are never reached.
        let mut never_there = vec![1.0; 400];
        never_there.push(0.5);
        let mut others = vec![with(Serving::Rates(vec![1.0])), with(Serving::Rates(vec![1.0; 3]))];
        if users < 60 {
            others.push(with(Serving::Rates(never_there)));
        }
        for found in others {
            prop_assert!((found.throughput_per_s / exact.throughput_per_s - 1.0).abs() < 1e-10);
            for (a, b) in found.stations.iter().zip(&exact.stations) {
                prop_assert!((a.queue - b.queue).abs() <= 1e-9 * b.queue, "{} {}", a.queue, b.queue);
            }
        }
    }

    /// One station: the network and the birth–death chain agree.
    #[test]
    fn one_station_is_a_network_of_one(m in 1u32..300, users in 1u32..500, think_s in 0.0..30.0f64) {
        let chain = formula(&station(m, think_s, 0.3, users)).unwrap();
        let network = one(m, think_s, 0.3, u64::from(users)).solve().unwrap();
        prop_assert!((chain.throughput_per_s.value / network.throughput_per_s - 1.0).abs() < 1e-10);
        prop_assert!((chain.response.mean_s.value / network.response_s - 1.0).abs() < 1e-10);
        prop_assert!((chain.in_system.value / network.stations[0].queue - 1.0).abs() < 1e-10);
    }

    /// The mean and the variance are integrals of the survival function; and the quantiles are where it says.
    #[test]
    fn the_tail_of_one_station_has_the_mean(m in 1u32..9, users in 1u32..40, think_s in 0.0..5.0f64, room in 0u64..20) {
        let station = Station { capacity: Some(u64::from(m) + room), ..station(m, think_s, 0.3, users) };
        let answer = formula(&station).unwrap();
        let end_s = 5.0 * answer.response.quantile(0.999).unwrap().value;
        let steps = 2000;
        let step_s = end_s / f64::from(steps);
        let integral = |of: &dyn Fn(f64) -> f64| {
            let weight = |i| if i == 0 || i == steps { 1.0 } else if i % 2 == 1 { 4.0 } else { 2.0 };
            (0..=steps).map(|i| weight(i) * of(f64::from(i) * step_s)).sum::<f64>() * step_s / 3.0
        };
        let response = |t_s| response_survival(&station, t_s).unwrap();
        let mean_s = integral(&response);
        prop_assert!((mean_s / answer.response.mean_s.value - 1.0).abs() < 1e-6);
        let second = integral(&|t_s| 2.0 * t_s * response(t_s));
        prop_assert!(((second - mean_s * mean_s) / answer.response.variance_s2.unwrap() - 1.0).abs() < 1e-4);
        for quantile in &answer.response.quantiles {
            prop_assert!((response(quantile.value_s.value) - (1.0 - quantile.p)).abs() < 1e-9);
        }
        for quantile in answer.waiting.quantiles.iter().filter(|quantile| quantile.value_s.value > 0.0) {
            prop_assert!((waiting_survival(&station, quantile.value_s.value).unwrap() - (1.0 - quantile.p)).abs() < 1e-9);
        }
    }

    /// Equal classes are one class, and each has its share of it.
    #[test]
    fn classes_that_are_alike_are_one(demands in proptest::collection::vec(1e-3..1.0f64, 1..4), think_s in 0.1..5.0f64, a in 1u32..12, b in 1u32..12) {
        let stations = demands.iter().map(|&demand_s| ClosedStation::single("s", demand_s)).collect();
        let one = ClosedNetwork { think_s, stations, users: u64::from(a + b) };
        let two = MultiClass {
            demands_s: demands.iter().map(|&demand_s| vec![demand_s; 2]).collect(),
            think_s: vec![think_s; 2],
            users: vec![a, b],
        };
        let exact = one.solve().unwrap();
        for (both, alone) in [
            (two.exact().unwrap(), exact.throughput_per_s),
            (two.schweitzer().unwrap(), one.schweitzer().unwrap().throughput_per_s),
        ] {
            let total: f64 = both.throughput_per_s.iter().sum();
            prop_assert!((total / alone - 1.0).abs() < 1e-9, "{}: {total} {alone}", both.source);
            prop_assert!((both.throughput_per_s[0] / total * f64::from(a + b) / f64::from(a) - 1.0).abs() < 1e-9);
        }
    }

    /// Linearizer is Schweitzer's approximation corrected: it is nearer to the exact value, or both are very near.
    #[test]
    fn linearizer_is_nearer(rows in proptest::collection::vec((1e-2..1.0f64, 1e-2..1.0f64), 1..4), think in (0.0..5.0f64, 0.0..5.0f64), users in (1u32..20, 1u32..20)) {
        let classes = MultiClass {
            demands_s: rows.iter().map(|&(a, b)| vec![a, b]).collect(),
            think_s: vec![think.0, think.1],
            users: vec![users.0, users.1],
        };
        let exact = classes.exact().unwrap();
        let off = |found: &[f64]| {
            let each = found.iter().zip(&exact.throughput_per_s).map(|(found, exact)| (found / exact - 1.0).abs());
            each.fold(0.0, f64::max)
        };
        let (linearizer, schweitzer) = (classes.linearizer().unwrap(), classes.schweitzer().unwrap());
        prop_assert!(off(&linearizer.throughput_per_s) <= (0.8 * off(&schweitzer.throughput_per_s)).max(2e-3));
    }
}

/// Users, servers and demands of any size: an answer that makes sense, and none that takes long.
#[test]
fn a_million_users_and_a_hundred_thousand_servers_are_no_trouble() {
    let begun = Instant::now();
    for users in [1, 999, 100_000, 1_000_000] {
        for m in [1, 4, 1000, 100_000] {
            for (think_s, service_s) in
                [(0.0, 1.0), (5.0, 0.2), (1e6, 1.0), (100.0, 1e-9), (1e-9, 10.0), (9.0, 1.0)]
            {
                let formula = formula(&station(m, think_s, service_s, users)).unwrap();
                let network = one(m, think_s, service_s, u64::from(users)).solve().unwrap();
                let x = formula.throughput_per_s.value;
                let what = format!("{users} {m} {think_s} {service_s}: {x} {}", network.throughput_per_s);
                assert!((network.throughput_per_s / x - 1.0).abs() < 1e-9, "{what}");
                assert!(x > 0.0 && x <= f64::from(m) / service_s * (1.0 + 1e-12), "{what}");
                for summary in [&formula.response, &formula.waiting] {
                    assert!(summary.mean_s.value >= 0.0 && summary.variance_s2.unwrap() >= 0.0, "{what}");
                    assert!(summary.quantiles.iter().all(|quantile| quantile.value_s.value >= 0.0), "{what}");
                    assert!(
                        summary.quantiles.is_sorted_by(|a, b| a.value_s.value <= b.value_s.value),
                        "{what}"
                    );
                }
            }
        }
    }
    println!("{:?}", begun.elapsed());
}

/// Several stations that bind, or nearly, at a million users: Little's law and the bounds are to the last digits.
#[test]
fn balanced_stations_are_no_trouble_for_a_million_users() {
    let stations = |list: &[(f64, u32)]| {
        list.iter().map(|&(demand_s, m)| ClosedStation::servers("s", demand_s, servers(m))).collect()
    };
    for list in [
        &[(1.0, 4), (0.25, 1), (0.1, 1)][..],
        &[(1.0, 4), (0.25, 1), (0.25, 1), (2.0, 8)],
        &[(1000.0, 1000), (1.0, 1)],
        &[(900.0, 1000), (5.0, 6)],
        &[(40_000.0, 100_000), (0.39, 1)],
    ] {
        for think_s in [0.0, 1000.0, 1e6] {
            let begun = Instant::now();
            let network = ClosedNetwork { think_s, stations: stations(list), users: 1_000_000 };
            let answer = network.solve().unwrap();
            let placed: f64 = answer.stations.iter().map(|station| station.queue).sum();
            let implied = placed + answer.throughput_per_s * think_s;
            assert!((implied / 1e6 - 1.0).abs() < 1e-9, "{list:?} {think_s}: {implied}");
            let (low, high) = network.bounds().unwrap().throughput_per_s;
            assert!(answer.throughput_per_s >= low && answer.throughput_per_s <= high * (1.0 + 1e-12));
            println!("{list:?} {think_s}: {:?}", begun.elapsed());
        }
    }
}

/// Crowds of two classes, beyond what is exact: each class adds up, no station does more than it can, and what binds is
/// busy all the time.
#[test]
fn crowds_of_classes_add_up() {
    for demands_s in [
        vec![vec![0.05, 0.1], vec![0.02, 0.2], vec![0.08, 0.01]],
        vec![vec![1.0, 1.0], vec![1.0, 1.0]],
        vec![vec![1.0, 2.0], vec![2.0, 1.01]],
    ] {
        let classes = MultiClass { demands_s, think_s: vec![1.0, 5.0], users: vec![1_000_000, 500_000] };
        for answer in [classes.solve().unwrap(), classes.schweitzer().unwrap()] {
            for class in 0..2 {
                let implied =
                    answer.throughput_per_s[class] * (answer.response_s[class] + classes.think_s[class]);
                let users = f64::from(classes.users[class]);
                assert!((implied / users - 1.0).abs() < 1e-6, "{}: {implied}", answer.source);
            }
            let busiest = answer.utilisation.iter().copied().fold(0.0, f64::max);
            assert!(busiest <= 1.0 + 1e-6 && busiest > 0.999, "{}: {:?}", answer.source, answer.utilisation);
        }
    }
}

/// A server that thrashes: two stable states, and still the sum of both.
#[test]
fn rates_that_fall_are_added_up_too() {
    let rates = vec![1.0, 2.0, 3.0, 2.0, 1.0, 0.5];
    let stations =
        vec![ClosedStation { name: "db".into(), demand_s: 0.5, serving: Serving::Rates(rates.clone()) }];
    let network = ClosedNetwork { think_s: 2.0, stations, users: 9 };
    // The birth–death chain, state by state.
    let rate = |n: usize| rates[n.min(rates.len()) - 1] / 0.5;
    let mut p = vec![1.0];
    for n in 1..=9 {
        p.push(p[n - 1] * (10 - n) as f64 / 2.0 / rate(n));
    }
    let exact = (1..=9).map(|n| p[n] * rate(n)).sum::<f64>() / p.iter().sum::<f64>();
    let answer = network.solve().unwrap();
    assert!((answer.throughput_per_s / exact - 1.0).abs() < 1e-12, "{} {exact}", answer.throughput_per_s);
    let crowd = ClosedNetwork { users: 100_000, ..network };
    assert!(matches!(crowd.solve(), Err(ClosedError::FallingRates { .. })));
}

/// The interval of each run is one of 95 %; with eight comparisons of three standard errors, roughly, a false alarm has
/// a chance of 2 %, and the seed is fixed.
#[test]
fn the_simulation_agrees() {
    for (m, think, room) in [
        (3, Law::Exponential { mean_s: 1.0 }, None),
        (3, Law::Constant { mean_s: 1.0 }, None),
        (2, Law::Uniform { low_s: 0.0, high_s: 3.0 }, Some(5)),
        (2, Law::Exponential { mean_s: 0.5 }, Some(2)),
    ] {
        let arrivals = Arrivals::Closed { population: 12, think: think.clone() };
        let mut closed = Station::new(arrivals, Law::Exponential { mean_s: 0.4 }, servers(m));
        closed.capacity = room;
        let exact = formula(&closed).unwrap();
        let found = simulate(&closed, StopRule::customers(200_000), 3).unwrap();
        for (exact, found) in [
            (exact.response.mean_s, found.response.mean_s),
            (exact.waiting.mean_s, found.waiting.mean_s),
            (exact.throughput_per_s, found.throughput_per_s),
            (exact.utilisation, found.utilisation),
            (exact.lost, found.lost),
            (exact.p_wait, found.p_wait),
            (exact.response.quantile(0.95).unwrap(), found.response.quantile(0.95).unwrap()),
        ] {
            let near = 1.6 * found.half_width() + 1e-9;
            assert!(
                (found.value - exact.value).abs() <= near,
                "{} {room:?}: {found:?} for {exact:?}",
                think.name()
            );
        }
    }
}

/// Shared servers ask nothing of the law of service.
#[test]
fn sharing_takes_any_service_and_order_does_not() {
    let general = Station { service: Law::Uniform { low_s: 0.0, high_s: 0.8 }, ..station(2, 1.0, 0.4, 9) };
    assert!(matches!(formula(&general), Err(NoFormula::ClosedService { .. })));
    // The order of service matters once sizes or classes are known, also with exponential service.
    let shortest = Station { discipline: Discipline::ShortestRemaining, ..station(2, 1.0, 0.4, 9) };
    assert!(matches!(formula(&shortest), Err(NoFormula::Discipline(_))));
    let class = |name: &str, weight| Class { name: name.into(), share: 0.5, weight, service: None };
    let ranked = Station {
        discipline: Discipline::Priority,
        classes: vec![class("a", 1.0), class("b", 2.0)],
        ..station(2, 1.0, 0.4, 9)
    };
    assert!(formula(&ranked).is_err() && waiting_survival(&ranked, 1.0).is_err());
    let shared = Station { discipline: Discipline::ProcessorSharing, ..general.clone() };
    let exact = formula(&station(2, 1.0, 0.4, 9)).unwrap();
    let answer = formula(&shared).unwrap();
    assert_eq!(answer.response.mean_s, exact.response.mean_s);
    let found = simulate(&shared, StopRule::customers(200_000), 4).unwrap().response.mean_s;
    assert!((found.value - exact.response.mean_s.value).abs() < 1.6 * found.half_width(), "{found:?}");
    // With a server for each user no request waits, so any distribution works.
    let plenty = Station { servers: servers(9), ..general };
    let answer = formula(&plenty).unwrap();
    assert_eq!((answer.p_wait.value, answer.waiting.mean_s.value), (0.0, 0.0));
    assert!((answer.response.quantile(0.5).unwrap().value - 0.4).abs() < 1e-12);
}

#[test]
fn engset_loses_as_a_closed_station_without_waiting_does() {
    let lossy = Station { capacity: Some(3), ..station(3, 5.0, 1.0, 10) };
    let answer = formula(&lossy).unwrap();
    let found = engset(10, servers(3), 0.2);
    assert!((answer.lost.value / found.call_congestion - 1.0).abs() < 1e-12);
    assert!((answer.utilisation.value * 3.0 / found.busy - 1.0).abs() < 1e-12);
    // Call congestion is the time congestion that one source less makes.
    assert!((found.call_congestion / engset(9, servers(3), 0.2).time_congestion - 1.0).abs() < 1e-12);
    assert_eq!(engset(3, servers(3), 0.2).call_congestion, 0.0);
    // Ever more sources with ever less to ask are a Poisson stream.
    let many = engset(1_000_000, servers(10), 7e-6);
    assert!((many.call_congestion / kendall_theory::erlang_b(10, 7.0) - 1.0).abs() < 1e-4);
}

#[test]
fn invalid_networks_are_rejected() {
    let why = |network: ClosedNetwork| network.solve().unwrap_err().to_string();
    assert_eq!(why(one(1, 1.0, 1.0, 0)), "a closed network needs at least one user");
    assert!(why(one(1, -1.0, 1.0, 3)).contains("think time is -1 s"));
    assert!(why(one(1, 1.0, f64::NAN, 3)).contains("demand at the station \"cpu\" is NaN s"));
    assert!(why(one(1, 0.0, 0.0, 3)).contains("infinitely many"));
    assert!(why(one(2, 1.0, 1.0, u64::MAX)).contains("use the bounds"));
    let of = |rates: Vec<f64>| {
        let stations =
            vec![ClosedStation { name: "a".into(), demand_s: 1.0, serving: Serving::Rates(rates) }];
        ClosedNetwork { think_s: 1.0, stations, users: 5 }
    };
    assert!(why(of(vec![])).contains("needs at least one"));
    assert!(why(of(vec![1.0, 0.0])).contains("above zero"));
    assert!(one(2, 1.0, 1.0, 3).schweitzer().unwrap_err().to_string().contains("not a single server"));
    let classes = MultiClass { demands_s: vec![vec![1.0]], think_s: vec![1.0; 2], users: vec![1, 1] };
    assert!(classes.exact().unwrap_err().to_string().contains("a station with 1 demands for 2 classes"));
    let crowd = MultiClass { demands_s: vec![vec![1.0; 4]], think_s: vec![1.0; 4], users: vec![1000; 4] };
    assert!(matches!(crowd.exact(), Err(ClosedError::States { .. })));
    assert!(crowd.solve().unwrap().source.starts_with("Linearizer"));
}

/// The chat server of study D, backed by MySQL: threads, requests per second and response in µs. One row violates the law
/// of closed loops, and the row of 40 threads matches the response that is labelled 45.
#[test]
fn published_rows_that_contradict_themselves_are_found() {
    let rows = [
        (1.0, 20.79, 48_032.0),
        (2.0, 27.53, 72_585.0),
        (5.0, 62.65, 79_763.0),
        (10.0, 89.72, 111_472.0),
        (15.0, 104.70, 143_315.0),
        (18.0, 108.09, 166_693.0),
        (20.0, 112.11, 178_480.0),
        (30.0, 115.47, 260_227.0),
        (35.0, 117.22, 320_779.0),
        (40.0, 117.62, 380_646.0),
        (50.0, 118.49, 423_090.0),
    ];
    let odd: Vec<(f64, f64)> = rows
        .iter()
        .map(|&(users, throughput, response_us)| {
            InteractiveCheck::new(users, throughput, response_us * 1e-6, 0.0)
        })
        .filter(|check| !check.holds())
        .map(|check| (check.users, (check.ratio() * 1000.0).round() / 1000.0))
        .collect();
    assert_eq!(odd, [(35.0, 1.074), (40.0, 1.119)]);
    assert_eq!(InteractiveCheck::new(40.0, 117.62, 0.380_646, 0.0).implied_users.round(), 45.0);
}
