//! What holds for every formula, whatever the numbers.

use kendall_station::{Arrivals, Class, Discipline, Law, Servers, Station};
use kendall_theory::{NoFormula, formula, response_survival, waiting_survival};
use proptest::prelude::*;

fn station(rate_per_s: f64, service: Law, servers: u32) -> Station {
    Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![
        (0.01..5.0f64).prop_map(|mean_s| Law::Exponential { mean_s }),
        (0.01..5.0f64).prop_map(|mean_s| Law::Constant { mean_s }),
        (1u32..9, 0.01..5.0f64).prop_map(|(shape, mean_s)| Law::Erlang { shape, mean_s }),
        (0.05..0.95f64, 0.1..1.0f64, 1.0..9.0f64)
            .prop_map(|(p, a, b)| Law::Hyperexponential { parts: vec![(p, a), (1.0 - p, b)] }),
        (0.01..1.0f64, 0.1..4.0f64).prop_map(|(low_s, width)| Law::Uniform { low_s, high_s: low_s + width }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn littles_law_holds_and_quantiles_rise(law in law(), rho in 0.02..0.98f64, room in 0u64..40, servers in 1u32..30) {
        let rate = rho * f64::from(servers) / law.mean_s();
        let exponential = Law::Exponential { mean_s: law.mean_s() };
        let limited = Station {
            capacity: Some(u64::from(servers) + room),
            ..station(2.0 * rate, exponential.clone(), servers)
        };
        let one = station(rho / law.mean_s(), law, 1);
        for station in [station(rate, exponential, servers), limited, one] {
            let answer = formula(&station).unwrap();
            let product = answer.throughput_per_s.value * answer.response.mean_s.value;
            prop_assert!((product / answer.in_system.value - 1.0).abs() < 1e-9);
            let service_s = answer.response.mean_s.value - answer.waiting.mean_s.value;
            prop_assert!((service_s / station.service.mean_s() - 1.0).abs() < 1e-6);
            for summary in [&answer.response, &answer.waiting] {
                prop_assert_eq!(summary.quantiles.len(), 8);
                prop_assert!(summary.quantiles.is_sorted_by(|a, b| a.value_s.value <= b.value_s.value));
            }
        }
    }

    /// Rooms of any size under any load: sound numbers, Little's law for who waits, and what is lost is what is left.
    #[test]
    fn a_room_of_any_size_is_answered(servers in 1u32..100_000, places in 0u64..1_000_000, ln_rho in -14.0..7.0f64) {
        let rate = f64::from(servers) * ln_rho.exp();
        let room = Station {
            capacity: Some(u64::from(servers) + places),
            ..station(rate, Law::Exponential { mean_s: 1.0 }, servers)
        };
        let answer = formula(&room).unwrap();
        let shares = [answer.p_wait.value, answer.lost.value, answer.utilisation.value];
        prop_assert!(shares.iter().all(|share| (0.0..=1.0 + 1e-12).contains(share)), "{shares:?}");
        let throughput = rate * (1.0 - answer.lost.value);
        prop_assert!((answer.throughput_per_s.value - throughput).abs() <= 1e-9 * rate);
        for summary in [&answer.response, &answer.waiting] {
            prop_assert!(summary.mean_s.value >= 0.0 && summary.variance_s2.unwrap() >= 0.0);
            prop_assert!(summary.quantiles.iter().all(|q| q.value_s.value.is_finite()));
            prop_assert!(summary.quantiles.is_sorted_by(|a, b| a.value_s.value <= b.value_s.value));
        }
        prop_assert!((response_survival(&room, 0.0).unwrap() - 1.0).abs() < 1e-8);
        prop_assert!((waiting_survival(&room, 0.0).unwrap() - answer.p_wait.value).abs() < 1e-8);
    }

    /// The mean is the integral of the survival function.
    #[test]
    fn the_tail_has_the_mean(shape in 1u32..6, rho in 0.1..0.9f64) {
        for station in [
            station(rho, Law::Erlang { shape, mean_s: 1.0 }, 1),
            station(3.0 * rho, Law::Exponential { mean_s: 1.0 }, 3),
            Station { capacity: Some(9), ..station(5.0 * rho, Law::Exponential { mean_s: 1.0 }, 3) },
        ] {
            let answer = formula(&station).unwrap();
            let end_s = 4.0 * answer.response.quantile(0.999).unwrap().value;
            let step_s = end_s / 800.0;
            // Simpson's rule.
            let integral = |survival: &dyn Fn(f64) -> f64| {
                let weight = |i: u32| if i == 0 || i == 800 { 1.0 } else if i % 2 == 1 { 4.0 } else { 2.0 };
                (0..=800).map(|i| weight(i) * survival(f64::from(i) * step_s)).sum::<f64>() * step_s / 3.0
            };
            let waiting = integral(&|t_s| waiting_survival(&station, t_s).unwrap());
            let response = integral(&|t_s| response_survival(&station, t_s).unwrap());
            prop_assert!((waiting - answer.waiting.mean_s.value).abs() < 1e-4 * answer.response.mean_s.value);
            prop_assert!((response / answer.response.mean_s.value - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn more_load_means_longer_waits(rho in 0.05..0.9f64, servers in 1u32..200) {
        let wait = |rho: f64| {
            let rate = rho * f64::from(servers);
            formula(&station(rate, Law::Exponential { mean_s: 1.0 }, servers)).unwrap().waiting.mean_s.value
        };
        prop_assert!(wait(rho) < wait(rho * 1.05));
    }
}

#[test]
fn a_hundred_thousand_servers_next_to_saturation_are_no_trouble() {
    for (servers, rho) in [(100_000, 0.999), (100_000, 1.0 - 1e-9), (1, 1.0 - 1e-9), (7, 1e-12)] {
        let answer =
            formula(&station(rho * f64::from(servers), Law::Exponential { mean_s: 1.0 }, servers)).unwrap();
        let wait = answer.waiting.mean_s.value;
        assert!(wait.is_finite() && wait >= 0.0 && (rho < 0.5 || wait > 0.0), "{servers} {rho}: {wait}");
        assert!(
            answer.response.quantiles.iter().all(|q| q.value_s.value.is_finite() && q.value_s.value > 0.0)
        );
    }
}

#[test]
fn service_that_takes_no_time_is_never_waited_for() {
    let answer = formula(&station(5.0, Law::Constant { mean_s: 0.0 }, 1)).unwrap();
    assert_eq!((answer.waiting.mean_s.value, answer.in_system.value), (0.0, 0.0));
    assert!(answer.response.quantiles.iter().all(|quantile| quantile.value_s.value == 0.0));
}

/// A quarter of the offered load is lost where room is long full, whatever its size.
#[test]
fn an_overloaded_room_loses_what_is_too_much() {
    let full = Station { capacity: Some(1_000_000), ..station(4.0, Law::Exponential { mean_s: 1.0 }, 3) };
    let answer = formula(&full).unwrap();
    assert!((answer.lost.value - 0.25).abs() < 1e-12);
    assert!((answer.utilisation.value - 1.0).abs() < 1e-12);
}

#[test]
fn each_refusal_says_why_and_what_to_do() {
    let exponential = Law::Exponential { mean_s: 0.25 };
    let uniform = Law::Uniform { low_s: 0.0, high_s: 0.5 };
    let why = |station: &Station| formula(station).unwrap_err().to_string();
    assert_eq!(
        why(&station(20.4, exponential.clone(), 2)),
        "unstable: utilisation would be 2.55, the queue grows by 12.4 requests per second; add servers, or lower \
         the arrival rate"
    );
    let regular = Station { arrivals: Arrivals::constant(1.0), ..station(1.0, exponential.clone(), 1) };
    assert!(
        why(&Station { capacity: Some(9), ..regular.clone() }).contains("with limited capacity need Poisson")
    );
    let think = exponential.clone();
    let closed =
        Station { arrivals: Arrivals::Closed { population: 3, think }, ..station(1.0, uniform.clone(), 1) };
    assert!(why(&closed).contains("exponential service times, shared servers, or a server for each user"));
    let limited = Station { capacity: Some(5), ..station(1.0, uniform.clone(), 1) };
    assert!(why(&limited).contains("capacity 5"));
    let heavy = station(1.0, Law::Pareto { shape: 1.5, mean_s: 0.1 }, 1);
    assert!(why(&heavy).contains("variance of the Pareto law is infinite"));
    let shortest = Station { discipline: Discipline::ShortestRemaining, ..station(1.0, uniform, 2) };
    assert!(why(&shortest).contains("shortest-remaining"));
    let class = |name: &str, weight| Class { name: name.into(), share: 0.5, weight, service: None };
    let ranked = Station {
        discipline: Discipline::Priority,
        classes: vec![class("a", 2.0), class("b", 1.0)],
        ..station(1.0, exponential.clone(), 1)
    };
    assert_eq!(formula(&Station { capacity: Some(9), ..ranked.clone() }), Err(NoFormula::Classes));
    let flooded = Station { arrivals: Arrivals::poisson(5.0), ..ranked.clone() };
    assert_eq!(
        why(&flooded),
        "unstable: utilisation would be 1.25, the queue grows by 1.0 requests per second; the classes that keep \
         up: a; that do not: b; add servers, or lower the arrival rate"
    );
    assert_eq!(waiting_survival(&ranked, 1.0), Err(NoFormula::OnlyMeans));
    let vast = Station { capacity: Some(u64::MAX), ..station(1.0, exponential.clone(), 1) };
    assert!(why(&vast).contains("ten million"));
    let cramped = Station { capacity: Some(1), ..station(1.0, exponential, 2) };
    assert!(why(&cramped).contains("is not valid"));
}
