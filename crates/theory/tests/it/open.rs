//! Open stations by formula: compared with simulation, and by the laws that relate them.
//!
//! Seeds are fixed. Each comparison with simulation allows twice the half-width of a 95 % interval by Student's t with at
//! least nine degrees of freedom: a false alarm in about 700 when a seed is changed.

use kendall_simulation::{StopRule, simulate, simulate_network};
use kendall_station::{
    Answer, Arrivals, By, Class, Discipline, Estimate, Law, Network, Node, Part, Routes, Servers, Station,
};
use kendall_theory::batch::{self, Inputs};
use kendall_theory::{NoFormula, TwoMoments, formula, network_formula, quantiles, split};
use proptest::prelude::*;

fn station(arrivals: Arrivals, service: Law, servers: u32) -> Station {
    Station::new(arrivals, service, Servers::new(servers).unwrap())
}

fn exponential(mean_s: f64) -> Law {
    Law::Exponential { mean_s }
}

fn hyperexponential() -> Law {
    Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] }
}

fn class(name: &str, share: f64, weight: f64, service: Option<Law>) -> Class {
    Class { name: name.into(), share, weight, service }
}

/// Classes a, b and c, the first the most urgent, of mean service 0.4, 0.5 and 0.8.
fn ranked(discipline: Discipline, rate_per_s: f64, servers: u32) -> Station {
    let classes = vec![
        class("a", 0.3, 4.0, Some(Law::Constant { mean_s: 0.4 })),
        class("b", 0.5, 2.0, Some(exponential(0.5))),
        class("c", 0.2, 1.0, Some(Law::Uniform { low_s: 0.0, high_s: 1.6 })),
    ];
    let plain = station(Arrivals::poisson(rate_per_s), exponential(1.0), servers);
    Station { discipline, classes, ..plain }
}

fn approximate(answer: &Answer) -> bool {
    matches!(&answer.by, By::Formula { approximate: Some(_), .. })
}

/// Within twice the interval, plus the error of the formula.
fn near(what: &str, found: Estimate, formula: f64, off: f64) {
    let (low, high) = found.interval.unwrap_or_else(|| panic!("{what} has no interval"));
    let width = 2.0 * (high - found.value).max(found.value - low) + off * formula + 1e-12;
    assert!(
        (found.value - formula).abs() <= width,
        "{what}: {} ± {width}, by formula {formula}",
        found.value
    );
}

fn compare(station: &Station, seed: u64, off: f64) {
    let stop = StopRule::Steady { max_customers: 100_000, relative_half_width: None };
    let (exact, found) = (formula(station).unwrap(), simulate(station, stop, seed).unwrap());
    assert_eq!(approximate(&exact), off > 0.0, "{station}: {:?}", exact.by);
    let check = |what: &str, found: Estimate, exact: Estimate| {
        near(&format!("{station} {:?} {what}", station.discipline), found, exact.value, off);
    };
    check("response", found.response.mean_s, exact.response.mean_s);
    check("waiting", found.waiting.mean_s, exact.waiting.mean_s);
    check("utilisation", found.utilisation, exact.utilisation);
    check("loss", found.lost, exact.lost);
    if station.discipline != Discipline::PreemptivePriority {
        check("chance to wait", found.p_wait, exact.p_wait);
    }
    for (found, exact) in found.classes.iter().zip(&exact.classes) {
        check(&found.name, found.response.mean_s, exact.response.mean_s);
    }
    for quantile in exact.response.quantiles.iter().filter(|_| off == 0.0) {
        let Some(found) = found.response.quantile(quantile.p) else { continue };
        // The histogram resolves 0.1 %.
        let slack = 2.0 * found.half_width() + 0.001 * found.value;
        let error = (found.value - quantile.value_s.value).abs();
        assert!(error <= slack, "{station} p = {}: {found:?} {quantile:?}", quantile.p);
    }
}

#[test]
fn simulation_agrees_with_every_exact_formula() {
    let poisson = Arrivals::poisson;
    let gaps = |gap: Law| Arrivals::Open { gap };
    let stations = [
        station(poisson(2.4), Law::Constant { mean_s: 1.0 }, 3),
        station(poisson(1.5), Law::Erlang { shape: 3, mean_s: 1.0 }, 2),
        station(poisson(1.8), hyperexponential(), 3),
        station(gaps(Law::Uniform { low_s: 0.0, high_s: 2.0 }), exponential(0.8), 1),
        station(Arrivals::constant(2.5), exponential(1.0), 3),
        station(gaps(Law::LogNormal { mean_s: 0.5, scv: 4.0 }), exponential(0.7), 2),
        Station {
            discipline: Discipline::ShortestRemaining,
            ..station(poisson(0.8), Law::Uniform { low_s: 0.0, high_s: 2.0 }, 1)
        },
        Station { discipline: Discipline::ShortestRemaining, ..station(poisson(0.8), exponential(1.0), 1) },
        ranked(Discipline::Priority, 1.5, 1),
        ranked(Discipline::PreemptivePriority, 1.5, 1),
        ranked(Discipline::CMu, 1.5, 1),
    ];
    for (station, seed) in stations.iter().zip(1..) {
        compare(station, seed, 0.0);
    }
    for (discipline, seed) in [(Discipline::Priority, 21), (Discipline::PreemptivePriority, 22)] {
        let alike = |class: Class| Class { service: None, ..class };
        let mixed = ranked(discipline, 2.4, 3);
        let classes = mixed.classes.iter().cloned().map(alike).collect();
        compare(&Station { classes, ..mixed }, seed, 0.0);
    }
}

fn rule() -> StopRule {
    StopRule::Steady { max_customers: 100_000, relative_half_width: None }
}

/// Jackson's theorem (1957), with feedback, several servers and two ways in.
#[test]
fn a_network_by_formula_is_the_network_by_simulation() {
    let node =
        |name: &str, mean_s, servers| Node::new(name, exponential(mean_s), Servers::new(servers).unwrap());
    let ways = |ways: &[(&str, f64)]| ways.iter().map(|&(to, chance)| (to.to_owned(), chance)).collect();
    let network = Network {
        nodes: vec![
            Node { arrivals: Some(Arrivals::poisson(3.0)), ..node("web", 0.1, 1) },
            node("db", 0.3, 2),
            Node { arrivals: Some(Arrivals::poisson(1.0)), ..node("disk", 0.1, 1) },
        ],
        routing: Routes::from([
            ("web".into(), ways(&[("db", 0.6), ("disk", 0.2)])),
            ("db".into(), ways(&[("web", 0.5)])),
            ("disk".into(), ways(&[("disk", 0.3)])),
        ]),
        population: None,
        classes: Vec::new(),
    };
    let (exact, found) =
        (network_formula(&network).unwrap(), simulate_network(&network, rule(), 41).unwrap());
    near("response", found.overall.response.mean_s, exact.response_s, 0.0);
    near("in the network", found.overall.in_system, exact.in_system, 0.0);
    for (exact, found) in exact.nodes.iter().zip(&found.nodes) {
        let answer = found.answer.as_ref().unwrap();
        near(&exact.name, answer.response.mean_s, exact.response_s, 0.0);
        near(&exact.name, answer.waiting.mean_s, exact.waiting_s, 0.0);
        near(&exact.name, answer.utilisation, exact.utilisation, 0.0);
        near(&exact.name, found.visits, exact.visits, 0.0);
    }
    let inputs = r#"{"lam": [3, 0, 1], "mu": [10, 3.3333333333333335, 10], "m": [1, 2, 1],
        "P": [[0, 0.6, 0.2], [0.5, 0, 0], [0, 0, 0.3]]}"#;
    let row = |quantity: &str| batch::value("jackson", &Inputs::read(inputs).unwrap(), quantity).unwrap();
    let same = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    same(row("R_mean"), exact.response_s);
    same(row("L"), exact.in_system);
    for (i, node) in exact.nodes.iter().enumerate() {
        same(row(&format!("X_{i}")), node.throughput_per_s);
        same(row(&format!("U_{i}")), node.utilisation);
        same(row(&format!("L_{i}")), node.in_station);
    }
}

/// Divided requests are a station of one fast server; at the crossover both ways take the same time.
#[test]
fn dividing_requests_agrees_with_simulation() {
    let service = Law::Uniform { low_s: 0.0, high_s: 1.0 };
    let whole = station(Arrivals::poisson(3.0), service.clone(), 4);
    let overhead = 0.1;
    let by = split(&whole, overhead).unwrap();
    let fast = station(Arrivals::poisson(3.0), service.scaled((1.0 + 3.0 * overhead) / 4.0), 1);
    for (station, answer, off, seed) in [(&fast, &by.together, 0.0, 51), (&whole, &by.apart, 0.01, 52)] {
        let found = simulate(station, rule(), seed).unwrap();
        near("divided or not", found.response.mean_s, answer.as_ref().unwrap().response.mean_s.value, off);
    }
    let rate = by.crossover_per_s.unwrap();
    let at = |rate: f64| {
        let there = split(&station(Arrivals::poisson(rate), service.clone(), 4), overhead).unwrap();
        let mean =
            |way: Result<Answer, NoFormula>| way.map_or(f64::INFINITY, |answer| answer.response.mean_s.value);
        (mean(there.together), mean(there.apart))
    };
    let (together, apart) = at(0.99 * rate);
    assert!(together < apart, "{together} {apart}");
    let (together, apart) = at(1.01 * rate);
    assert!(together > apart, "{together} {apart}");
}

/// The error is that of the labels, or that of the arrivals.
#[test]
fn simulation_is_near_every_approximation() {
    let uniform = || Law::Uniform { low_s: 0.0, high_s: 2.0 };
    let stations = [
        (station(Arrivals::poisson(2.4), uniform(), 3), 0.01),
        (station(Arrivals::poisson(2.4), Law::LogNormal { mean_s: 1.0, scv: 3.0 }, 3), 0.05),
        (station(Arrivals::Open { gap: Law::Erlang { shape: 2, mean_s: 1.25 } }, uniform(), 1), 0.05),
        (station(Arrivals::Open { gap: Law::Erlang { shape: 2, mean_s: 0.5 } }, uniform(), 3), 0.25),
        (ranked(Discipline::Priority, 4.5, 3), 0.05),
        (ranked(Discipline::PreemptivePriority, 4.5, 3), 0.15),
    ];
    for ((station, off), seed) in stations.iter().zip(31..) {
        compare(station, seed, *off);
    }
}

/// The sum of ρ·W does not depend on the order of classes (Kleinrock 1965).
#[test]
fn priorities_conserve_work() {
    let orders: [[f64; 3]; 4] = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 1.0]];
    let sums: Vec<f64> = orders
        .iter()
        .map(|weights| {
            let mut station = ranked(Discipline::Priority, 1.7, 1);
            station.classes.iter_mut().zip(weights).for_each(|(class, &weight)| class.weight = weight);
            let answer = formula(&station).unwrap();
            let work = station.classes.iter().zip(&answer.classes);
            work.map(|(class, found)| {
                class.share * class.service.as_ref().unwrap().mean_s() * found.waiting.mean_s.value
            })
            .sum()
        })
        .collect();
    for sum in &sums {
        assert!((sum / sums[0] - 1.0).abs() < 1e-12, "{sums:?}");
    }
}

/// Equal weights have no effect, and one class's answer is the station's.
#[test]
fn equal_priorities_are_order_of_arrival() {
    for discipline in [Discipline::Priority, Discipline::PreemptivePriority] {
        let mut station = ranked(discipline, 1.5, 1);
        station.classes.iter_mut().for_each(|class| class.weight = 2.0);
        let fifo = formula(&Station { discipline: Discipline::Fifo, ..station.clone() }).unwrap();
        assert_eq!(formula(&station).unwrap(), fifo);
    }
}

/// The urgent class is not affected by others that it interrupts.
#[test]
fn a_class_that_interrupts_all_others_is_alone() {
    for servers in [1, 3] {
        let rate = 1.5 * f64::from(servers);
        let station_of_all = ranked(Discipline::PreemptivePriority, rate, servers);
        let answer = formula(&station_of_all).unwrap();
        let own = station(Arrivals::poisson(0.3 * rate), Law::Constant { mean_s: 0.4 }, servers);
        assert_eq!(answer.classes[0].response, formula(&own).unwrap().response);
    }
}

#[test]
fn an_urgent_class_keeps_up_where_another_does_not() {
    let why = formula(&ranked(Discipline::PreemptivePriority, 2.2, 1)).unwrap_err();
    let NoFormula::UnstableClasses { keeping, growing, .. } = why else { panic!("{why}") };
    assert_eq!((keeping.join(" "), growing.join(" ")), ("a b".into(), "c".into()));
}

/// Between constant and exponential service lies all that varies less than that; and Kingman's bound is above.
#[test]
fn approximations_lie_where_they_must() {
    for scv in [0.1, 0.5, 0.9] {
        let of = TwoMoments::new(5.0, 1.0, Servers::new(6).unwrap(), 1.0, scv).unwrap();
        for wait_s in [of.interpolation_s(), of.kimura_s(), of.allen_cunneen_s(), of.whitt_s()] {
            assert!(wait_s < of.exponential_s() && wait_s > 0.9 * of.constant_s(), "{scv}: {wait_s}");
        }
    }
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![
        Just(exponential(1.0)),
        Just(Law::Constant { mean_s: 1.0 }),
        (2u32..6).prop_map(|shape| Law::Erlang { shape, mean_s: 1.0 }),
        (0.05..0.95f64, 0.1..1.0f64, 1.0..9.0f64)
            .prop_map(|(p, a, b)| Law::Hyperexponential { parts: vec![(p, a), (1.0 - p, b)] }.with_mean(1.0)),
        (0.1..0.99f64).prop_map(|low_s| Law::Uniform { low_s, high_s: 2.0 - low_s }),
        (0.1..8.0f64).prop_map(|scv| Law::LogNormal { mean_s: 1.0, scv }),
        (2.1..9.0f64).prop_map(|shape| Law::Pareto { shape, mean_s: 1.0 }),
        (0.0..0.9f64).prop_map(|zero| {
            let part = |probability, of| Part { probability, of };
            let parts =
                vec![part(zero + 0.05, Law::Constant { mean_s: 0.0 }), part(0.95 - zero, exponential(1.0))];
            Law::Mixture { parts }.with_mean(1.0)
        }),
    ]
}

fn utilisation() -> impl Strategy<Value = f64> {
    prop_oneof![0.01..0.95f64, (1.0..9.0f64).prop_map(|digits| 1.0 - 10f64.powf(-digits))]
}

fn sound(answer: &Answer) -> bool {
    let summaries = [&answer.response, &answer.waiting].into_iter();
    let classes = answer.classes.iter().flat_map(|class| [&class.response, &class.waiting]);
    let sound = |value: f64| value.is_finite() && value >= 0.0;
    summaries.chain(classes).all(|times| {
        sound(times.mean_s.value)
            && times.variance_s2.is_none_or(sound)
            && times.quantiles.iter().all(|quantile| sound(quantile.value_s.value))
            && times.quantiles.is_sorted_by(|a, b| a.value_s.value <= b.value_s.value)
    }) && sound(answer.in_system.value)
        && (0.0..=1.0).contains(&answer.p_wait.value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever the station: no negative number, no NaN, Little's law; and more load, or a server less, is more wait.
    #[test]
    fn every_open_station_has_a_sound_answer(service in law(), gap in law(), rho in utilisation(), servers in 1u32..9) {
        let rate = |rho: f64, servers: u32| rho * f64::from(servers);
        let streams = |rate: f64| [Arrivals::poisson(rate), Arrivals::Open { gap: gap.with_mean(1.0 / rate) }];
        for (i, arrivals) in streams(rate(rho, servers)).into_iter().enumerate() {
            let answer = formula(&station(arrivals, service.clone(), servers)).unwrap();
            prop_assert!(sound(&answer), "{answer:?}");
            let product = answer.throughput_per_s.value * answer.response.mean_s.value;
            prop_assert!((product / answer.in_system.value - 1.0).abs() < 1e-9);
            // Next to saturation neither the load nor the slack is known better than to a few digits.
            if rho > 0.999 {
                continue;
            }
            let wait = |rate: f64, servers: u32| {
                let arrivals = streams(rate)[i].clone();
                formula(&station(arrivals, service.clone(), servers)).unwrap().waiting.mean_s.value
            };
            let more = wait(rate(f64::midpoint(rho, 1.0), servers), servers);
            prop_assert!(more >= answer.waiting.mean_s.value * (1.0 - 1e-9), "{more}");
            let another = wait(rate(rho, servers), servers + 1);
            // If hardly any request waits, two approximations may cross by hundredths of the service time.
            let crossing = 0.02 * service.mean_s();
            prop_assert!(another <= answer.waiting.mean_s.value * (1.0 + 1e-9) + crossing, "{another}");
        }
    }

    #[test]
    fn every_order_of_classes_has_a_sound_answer(rho in utilisation(), servers in 1u32..5, weights in prop::array::uniform3(1u8..4)) {
        for discipline in [Discipline::Priority, Discipline::PreemptivePriority, Discipline::CMu] {
            let mut station = ranked(discipline, 1.0, servers);
            station.classes.iter_mut().zip(weights).for_each(|(class, weight)| class.weight = f64::from(weight));
            let service_s = station.service_overall().mean_s();
            station.arrivals = Arrivals::poisson(rho * f64::from(servers) / service_s);
            let answer = formula(&station).unwrap();
            prop_assert!(sound(&answer), "{answer:?}");
        }
    }
}

/// Any quantile, not only those of an answer, and each where the survival function says.
#[test]
fn any_quantile_can_be_asked_for() {
    for station in [
        station(Arrivals::poisson(2.4), Law::Constant { mean_s: 1.0 }, 3),
        station(Arrivals::poisson(0.7), Law::Uniform { low_s: 0.0, high_s: 2.0 }, 1),
        station(Arrivals::constant(2.5), exponential(1.0), 3),
        station(Arrivals::poisson(1.8), hyperexponential(), 3),
    ] {
        for p in [0.2, 0.6666, 0.98, 0.9999] {
            let (response_s, waiting_s) = quantiles(&station, p).unwrap();
            // Where there is an atom the survival function jumps over the level.
            let crosses = |at: &dyn Fn(f64) -> f64, t_s: f64| {
                let level = 1.0 - p;
                at(t_s * (1.0 + 1e-3)) <= level && (t_s == 0.0 || at(t_s * (1.0 - 1e-3)) >= level)
            };
            let response = |t_s| kendall_theory::response_survival(&station, t_s).unwrap();
            assert!(crosses(&response, response_s), "{station} {p}: {response_s}");
            let waiting = |t_s| kendall_theory::waiting_survival(&station, t_s).unwrap();
            assert!(crosses(&waiting, waiting_s), "{station} {p}: {waiting_s}");
        }
    }
}

/// Many servers, close to saturation, and still no numerical trouble.
#[test]
fn a_hundred_thousand_servers_are_answered() {
    for (servers, slack) in [(100_000u32, 1e-9), (100_000, 1e-2), (1000, 1e-6), (2, 1e-9)] {
        let rate = f64::from(servers) * (1.0 - slack);
        for law in
            [Law::Constant { mean_s: 1.0 }, Law::Uniform { low_s: 0.0, high_s: 2.0 }, hyperexponential()]
        {
            let law = law.with_mean(1.0);
            let answer = formula(&station(Arrivals::poisson(rate), law.clone(), servers)).unwrap();
            assert!(sound(&answer), "{servers} {slack} {}: {answer:?}", law.name());
        }
    }
}
