//! Fits of stations whose parameters are known, because they were simulated, and of published points.

use kendall_evidence::fit::{
    Family, Fit, KnownParameters, Load, Model, NoFit, NoForecast, Observation, Quantity, Served, Slo, Source,
    Stamped, fit,
};
use kendall_evidence::table::Table;
use kendall_simulation::{StopRule, simulate};
use kendall_station::{Arrivals, Law, Servers, Station};
use kendall_theory::closed::{ClosedNetwork, ClosedStation};
use kendall_theory::formula;
use proptest::prelude::*;

const SERVICE_S: f64 = 0.02;
const SHARES: [f64; 8] = [0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9];

fn station(service: &Law, servers: u32, rate_per_s: f64) -> Station {
    let servers = Servers::new(servers).unwrap();
    Station::new(Arrivals::poisson(rate_per_s), service.clone(), servers)
}

/// Runs of the given number of requests at shares of the station's capacity, measured behind a delay.
fn measured(service: &Law, servers: u32, delay_s: f64, requests: u64, seed: u64) -> Vec<Observation> {
    let point = |(i, share): (u64, &f64)| {
        let rate_per_s = share * f64::from(servers) / service.mean_s();
        let stop = StopRule::customers(requests);
        let answer = simulate(&station(service, servers, rate_per_s), stop, 1000 * seed + i).unwrap();
        Observation {
            response_s: Some(answer.response.mean_s.value + delay_s),
            response_half_width_s: Some(answer.response.mean_s.half_width()),
            ..Observation::at(format!("{share}"), Load::Open { rate_per_s })
        }
    };
    (0..).zip(&SHARES).map(point).collect()
}

fn served(fit: &Fit) -> Served {
    match fit.best().model {
        Model::Served(served) => served,
        Model::Scaling(_) => panic!("{} won", fit.best().name),
    }
}

fn exponential() -> Law {
    Law::Exponential { mean_s: SERVICE_S }
}

/// With intervals of 95 %, fewer than 16 of 20 hits happen once in 390 times for each of the four; the seeds are fixed.
#[test]
fn the_true_parameters_and_predictions_lie_in_their_intervals() {
    let (mut hits, seeds) = ([0; 4], 20);
    for seed in 0..seeds {
        let points = measured(&exponential(), 3, 0.005, 20_000, seed);
        let fit = fit(&points, KnownParameters { servers: Some(3), ..KnownParameters::default() }).unwrap();
        let delayed = fit.candidates.iter().find(|candidate| candidate.name == "delay + M/M/3").unwrap();
        let contains = |quantity: Quantity, value: f64| {
            let found = delayed.parameters.iter().find(|parameter| parameter.quantity == quantity).unwrap();
            let (low, high) = found.interval.unwrap();
            usize::from(low <= value && value <= high)
        };
        hits[0] += contains(Quantity::Service, SERVICE_S);
        hits[1] += contains(Quantity::Delay, 0.005);
        let rate_per_s = 0.85 * 3.0 / SERVICE_S;
        let truth = formula(&station(&exponential(), 3, rate_per_s)).unwrap().response;
        let forecast = fit.forecast(Load::Open { rate_per_s }, None).unwrap().response;
        hits[2] += usize::from(forecast.mean_s.contains(truth.mean_s.value + 0.005));
        let p99 = forecast.quantile(0.99);
        hits[3] +=
            usize::from(p99.is_none_or(|p99| p99.contains(truth.quantile(0.99).unwrap().value + 0.005)));
    }
    assert!(hits.iter().all(|hits| *hits >= 16), "{hits:?} of {seeds}");
}

/// M/M/1 with known noise of 1 %, of which the points show less. A change of the service time by one per cent changes the response time
/// by 1/(1 − ρ) per cent, so the interval has a closed form, whatever the residuals are.
#[test]
fn known_noise_alone_makes_the_interval_of_a_parameter() {
    let point = |(i, share): (usize, &f64)| {
        let response_s = SERVICE_S / (1.0 - share) * if i % 2 == 0 { 1.003 } else { 0.997 };
        Observation {
            response_s: Some(response_s),
            response_half_width_s: Some(1.96 * 0.01 * response_s),
            ..Observation::at("", Load::Open { rate_per_s: share / SERVICE_S })
        }
    };
    let points: Vec<Observation> = SHARES.iter().enumerate().map(point).collect();
    let given = KnownParameters { servers: Some(1), delay_s: Some(0.0), capacity: None };
    let fit = fit(&points, given).unwrap();
    let candidate = fit.candidates.iter().find(|candidate| candidate.name == "M/M/1").unwrap();
    let service = candidate.parameters.iter().find(|found| found.quantity == Quantity::Service).unwrap();
    let (low, high) = service.interval.unwrap();
    let slopes: f64 = SHARES.iter().map(|share| (1.0 - share).powi(-2)).sum();
    let expected = kendall_stats::student_t(7.0, 0.975) * 0.01 / slopes.sqrt();
    let relative = (high - low) / 2.0 / service.value;
    assert!((relative / expected - 1.0).abs() < 0.05, "{relative} {expected}");
}

/// How often each true station was the winner of four fixed seeds.
#[test]
fn the_ranking_finds_the_family_and_the_servers() {
    let cases: [(Law, u32, Family); 3] = [
        (exponential(), 4, Family::Exponential),
        (Law::Constant { mean_s: SERVICE_S }, 2, Family::Constant),
        (Law::LogNormal { mean_s: SERVICE_S, scv: 4.0 }, 2, Family::General),
    ];
    for (service, servers, family) in cases {
        let (mut families, mut counts) = (0, 0);
        for seed in 0..4 {
            // The variation is fitted only where the servers are known.
            let given = KnownParameters {
                servers: (family == Family::General).then_some(servers),
                ..KnownParameters::default()
            };
            let fit = fit(&measured(&service, servers, 0.0, 40_000, seed), given).unwrap();
            if let Model::Served(found) = fit.best().model {
                families += u32::from(found.family == family);
                counts += u32::from(found.servers == servers);
            }
            assert!(
                fit.best().held_out.as_ref().is_some_and(|held_out| held_out.error < 0.5),
                "{}",
                fit.best().name
            );
        }
        assert!(families >= 3 && counts >= 3, "{family:?}: {families} families, {counts} servers of 4");
    }
}

/// At low loads no request waits, so the number of servers is not identifiable.
#[test]
fn servers_that_the_points_do_not_tell_are_said_not_to_be_identifiable() {
    let mut points = measured(&exponential(), 16, 0.0, 5_000, 3);
    points.truncate(5);
    let fit = fit(&points, KnownParameters::default()).unwrap();
    let exponential = fit.candidates.iter().find(|candidate| candidate.name.starts_with("M/M/")).unwrap();
    assert!(exponential.notes.iter().any(|note| note.contains("not identifiable")), "{exponential:?}");
    let servers =
        exponential.parameters.iter().find(|parameter| parameter.quantity == Quantity::Servers).unwrap();
    let (fewest, most) = servers.interval.unwrap();
    assert!(fewest <= 16.0 && most >= 16.0 && most - fewest > 2.0);
}

#[test]
fn stamps_are_the_best_source_and_name_the_variation() {
    let service = Law::Uniform { low_s: 0.0, high_s: 2.0 * SERVICE_S };
    let mut points = measured(&service, 2, 0.001, 20_000, 5);
    for point in &mut points {
        point.service = Some(Stamped { mean_s: SERVICE_S * 1.001, scv: Some(1.0 / 3.0), n: Some(20_000.0) });
        point.delay_s = Some(0.001);
        point.cpu_cores = Some(match point.load {
            Load::Open { rate_per_s } => 0.02 + rate_per_s * SERVICE_S,
            Load::Closed { .. } => unreachable!(),
        });
    }
    let fit = fit(&points, KnownParameters { servers: Some(2), ..KnownParameters::default() }).unwrap();
    let sources: Vec<Source> = fit.service.iter().map(|service| service.source).collect();
    assert_eq!(sources, [Source::Stamps, Source::Utilisation, Source::LowLoad, Source::Curve]);
    let used: Vec<bool> = fit.service.iter().map(|service| service.used).collect();
    assert_eq!(used, [true, false, false, false]);
    let found = served(&fit);
    assert!((found.service_s / SERVICE_S - 1.0).abs() < 0.01, "{found:?}");
    assert_eq!((found.family, found.servers), (Family::General, 2));
}

#[test]
fn refusals_make_room_a_candidate() {
    let point = |(i, share): (u64, &f64)| {
        let rate_per_s = 1.4 * share * 2.0 / SERVICE_S;
        let station = Station { capacity: Some(6), ..station(&exponential(), 2, rate_per_s) };
        let answer = simulate(&station, StopRule::customers(40_000), i).unwrap();
        Observation {
            response_s: Some(answer.response.mean_s.value),
            response_half_width_s: Some(answer.response.mean_s.half_width()),
            lost: Some(answer.lost.value),
            requests: Some(40_000.0),
            ..Observation::at(format!("{share}"), Load::Open { rate_per_s })
        }
    };
    let points: Vec<Observation> = (0..).zip(&SHARES).map(point).collect();
    let fit = fit(&points, KnownParameters { servers: Some(2), ..KnownParameters::default() }).unwrap();
    assert_eq!(fit.best().name, "M/M/2/6");
    let forecast = fit.forecast(Load::Open { rate_per_s: 300.0 }, None).unwrap();
    assert!(forecast.throughput_per_s.value < 100.0, "a full room turns away what two servers cannot do");
    // Six requests at two servers of 20 ms take 60 ms at most.
    let always = fit.highest("mean<100ms".parse().unwrap(), None).unwrap_err();
    assert!(matches!(always, NoForecast::AlwaysMet { .. }), "{always}");
    assert!(always.to_string().contains("mean < 100 ms is met at every rate"), "{always}");
    let limited = fit.highest("mean<40ms".parse().unwrap(), None).unwrap().load.value;
    assert!((50.0..300.0).contains(&limited), "{limited}");
}

/// A capacity beyond the limit is an error where requests were rejected; otherwise no model has it.
#[test]
fn a_capacity_beyond_a_million_is_refused_in_words() {
    let at = |rate_per_s: f64, lost: f64| Observation {
        response_s: Some(0.02 / (1.0 - rate_per_s / 50.0)),
        lost: Some(lost),
        ..Observation::at("", Load::Open { rate_per_s })
    };
    let points = |lost: f64| [10.0, 20.0, 30.0, 40.0].map(|rate_per_s| at(rate_per_s, lost));
    let given = KnownParameters { capacity: Some(1_000_001), ..KnownParameters::default() };
    let refused = fit(&points(0.01), given).unwrap_err();
    assert!(refused.to_string().starts_with("a capacity of 1000001 requests is more than"), "{refused}");
    let column = points(0.01).map(|point| Observation { capacity: Some(u64::MAX), ..point });
    assert!(matches!(fit(&column, KnownParameters::default()), Err(NoFit::Capacity { .. })));
    assert!(fit(&points(0.0), given).is_ok());
}

/// The relative width of the interval grows with 1/(1 − ρ), and reaches past saturation next to it.
#[test]
fn the_error_of_a_prediction_grows_towards_saturation() {
    let points = measured(&exponential(), 1, 0.0, 20_000, 2);
    let fit =
        fit(&points, KnownParameters { servers: Some(1), delay_s: Some(0.0), ..KnownParameters::default() })
            .unwrap();
    let width = |share: f64| {
        let forecast = fit.forecast(Load::Open { rate_per_s: share / SERVICE_S }, None).unwrap();
        let (low, high) = forecast.response.mean_s.interval.unwrap();
        (high - low) / forecast.response.mean_s.value
    };
    assert!(
        width(0.3) < width(0.6) && 2.0 * width(0.6) < width(0.9),
        "{} {} {}",
        width(0.3),
        width(0.6),
        width(0.9)
    );
    let bears = fit.best().model.capacity_per_s().unwrap();
    let edge = fit.forecast(Load::Open { rate_per_s: 0.999 * bears }, None).unwrap();
    assert!(edge.steady < 1.0 && edge.response.mean_s.interval.unwrap().1.is_infinite());
    let over = fit.forecast(Load::Open { rate_per_s: 1.5 * bears }, None).unwrap_err();
    assert!(matches!(over, NoForecast::Overload { rho, .. } if (rho - 1.5).abs() < 1e-9), "{over}");
    assert!(over.to_string().contains("the utilisation would be 1.5"), "{over}");
}

#[test]
fn an_objective_is_met_up_to_the_highest_rate_and_with_the_fewest_servers() {
    let points = measured(&exponential(), 2, 0.0, 20_000, 4);
    let fit =
        fit(&points, KnownParameters { servers: Some(2), delay_s: Some(0.0), ..KnownParameters::default() })
            .unwrap();
    for text in ["p99<200ms", "mean < 0.05 s", "p95<=100ms", "p97.5<150ms"] {
        let slo: Slo = text.parse().unwrap();
        let highest = fit.highest(slo, None).unwrap();
        let meets = |rate_per_s: f64, servers: Option<u32>| {
            let model = fit.highest(slo, servers).unwrap();
            model.load.value >= rate_per_s
        };
        let (low, high) = highest.load.interval.unwrap();
        assert!(
            low <= highest.load.value && highest.load.value <= high && highest.utilisation.unwrap() < 1.0
        );
        let rate_per_s = 3.0 * highest.load.value;
        let needed = fit.servers_needed(Load::Open { rate_per_s }, slo).unwrap().value as u32;
        assert!(meets(rate_per_s, Some(needed)) && !meets(rate_per_s, Some(needed - 1)), "{text}: {needed}");
    }
    let p99 = fit.highest("p99<200ms".parse().unwrap(), None).unwrap();
    let there = fit.forecast(p99.at, None).unwrap().response.quantile(0.99).unwrap().value;
    assert!((there / 0.2 - 1.0).abs() < 1e-6, "{there}");
    let never = fit.highest("p99<10ms".parse().unwrap(), None).unwrap_err();
    assert!(never.to_string().contains("the response time of an idle station is already longer"), "{never}");
    for text in ["p99", "p0<1s", "p100<1s", "p99<-1s", "p99<1", "max<1s", ""] {
        assert!(text.parse::<Slo>().is_err(), "{text}");
    }
}

#[test]
fn points_beyond_saturation_are_left_out_with_a_sentence() {
    let mut points = measured(&exponential(), 2, 0.0, 5_000, 6);
    points.push(Observation {
        response_s: Some(30.0),
        throughput_per_s: Some(99.0),
        ..Observation::at("line 9", Load::Open { rate_per_s: 130.0 })
    });
    points.push(Observation {
        response_s: Some(30.0),
        utilisation: Some(1.0),
        ..Observation::at("line 10", Load::Open { rate_per_s: 131.0 })
    });
    let fit = fit(&points, KnownParameters { servers: Some(2), ..KnownParameters::default() }).unwrap();
    assert_eq!((fit.points.len(), fit.left_out.len()), (SHARES.len(), 2));
    assert!(
        fit.left_out[0].contains("line 9, 130/s: only 76.15 % of the offered requests"),
        "{:?}",
        fit.left_out
    );
    assert!(fit.left_out[1].contains("no steady state"));
}

#[test]
fn points_that_make_no_fit_are_refused_in_words() {
    let at = |rate_per_s: f64| Observation {
        response_s: Some(1.0),
        ..Observation::at("", Load::Open { rate_per_s })
    };
    let closed =
        Observation { response_s: Some(1.0), ..Observation::at("", Load::Closed { users: 3, think_s: 0.0 }) };
    let refused = |points: &[Observation]| fit(points, KnownParameters::default()).unwrap_err();
    assert!(matches!(refused(&[]), NoFit::TooFew { found: 0, .. }));
    assert!(matches!(refused(&[at(1.0), at(2.0)]), NoFit::TooFew { found: 2, .. }));
    assert!(matches!(refused(&[at(1.0), at(1.0), at(1.0)]), NoFit::OneLoad(_)));
    assert!(matches!(refused(&[at(1.0), at(2.0), closed]), NoFit::Mixed));
}

fn published(name: &str) -> Fit {
    let path = format!("{}/../../examples/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let table = Table::read(&std::fs::read_to_string(path).unwrap()).unwrap();
    fit(&Observation::of_table(&table), KnownParameters { servers: Some(4), ..KnownParameters::default() })
        .unwrap()
}

/// Akaike's criterion prefers a curve that then misses the highest loads by 22 %.
#[test]
fn what_goes_best_through_the_points_is_not_what_predicts_best() {
    let fit = published("chat-mysql");
    let candidate = |name: &str| fit.candidates.iter().find(|candidate| candidate.name == name).unwrap();
    let (product, law) = (candidate("delay + M/M/4 + serial part"), candidate("universal scalability law"));
    let worst = |candidate: &kendall_evidence::fit::Candidate| candidate.held_out.as_ref().unwrap().worst;
    assert_eq!(fit.best().name, product.name);
    assert!((worst(product) - 0.021).abs() < 1e-3 && (worst(law) - 0.225).abs() < 1e-3);
    assert!((product.aicc.unwrap() - 43.556).abs() < 1e-2 && (law.aicc.unwrap() - 37.944).abs() < 1e-2);
    assert!(
        fit.best().notes[0].contains("the bottleneck is the serial part: 8.392 ms"),
        "{:?}",
        fit.best().notes
    );
    assert!(fit.left_out[0].contains("45 users"));
    let forecast = fit.forecast(Load::Closed { users: 200, think_s: 0.0 }, None).unwrap();
    assert!(forecast.throughput_per_s.contains(119.0) && forecast.utilisation.unwrap().value <= 1.0);
}

/// The demands of a known network are found again, with and without a think time.
#[test]
fn a_closed_network_finds_itself() {
    let four = Servers::new(4).unwrap();
    for (delay_s, think_s, service_s, serial_s) in
        [(0.5, 0.0, 0.2, 0.02), (1.0, 0.0, 0.3, 0.0), (0.0, 2.0, 0.1, 0.06)]
    {
        let point = |users: u32| {
            let mut stations = vec![ClosedStation::servers("cores", service_s, four)];
            stations.extend((serial_s > 0.0).then(|| ClosedStation::single("lock", serial_s)));
            let network = ClosedNetwork { think_s: delay_s + think_s, stations, users: users.into() };
            Observation {
                throughput_per_s: Some(network.solve().unwrap().throughput_per_s),
                servers: Some(4),
                ..Observation::at("", Load::Closed { users, think_s })
            }
        };
        let points = [1, 3, 8, 15, 25, 40, 60].map(point);
        let fit = fit(&points, KnownParameters::default()).unwrap();
        let found = served(&fit);
        for (found, truth) in
            [(found.delay_s, delay_s), (found.service_s, service_s), (found.serial_s, serial_s)]
        {
            assert!(
                (found - truth).abs() < 1e-3 * truth.max(0.05),
                "{}: {found}, not {truth}",
                fit.best().name
            );
        }
    }
}

#[test]
fn other_points_prefer_the_law() {
    let fit = published("chat-redis");
    assert!(matches!(fit.best().model, Model::Scaling(_)));
    let worst = fit.best().held_out.as_ref().unwrap().worst;
    assert!((worst - 0.095).abs() < 1e-3, "{worst}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever the points: no panic, no NaN, nothing negative.
    #[test]
    fn no_points_make_a_number_that_cannot_be(
        times_s in prop::collection::vec(1e-6..1e3f64, 3..12),
        closed in any::<bool>(),
        step in 1..50u32,
        servers in 1..40u32,
    ) {
        let point = |(i, time_s): (u32, &f64)| {
            let n = (i + 1) * step;
            let load = match closed {
                true => Load::Closed { users: n, think_s: 0.1 },
                false => Load::Open { rate_per_s: f64::from(n) },
            };
            Observation { response_s: Some(*time_s), ..Observation::at("", load) }
        };
        let points: Vec<Observation> = (0..).zip(&times_s).map(point).collect();
        let given = KnownParameters { servers: Some(servers), ..KnownParameters::default() };
        let Ok(fit) = fit(&points, given) else { return Ok(()) };
        for candidate in &fit.candidates {
            for parameter in &candidate.parameters {
                prop_assert!(parameter.value >= 0.0, "{:?}", parameter);
                prop_assert!(parameter.interval.is_none_or(|(low, high)| low >= 0.0 && high >= low), "{:?}", parameter);
            }
            prop_assert!(candidate.held_out.as_ref().is_none_or(|held_out| held_out.error >= 0.0));
        }
        for n in [1, 100, 1_000_000] {
            let load = match closed {
                true => Load::Closed { users: n.min(1_000), think_s: 0.1 },
                false => Load::Open { rate_per_s: f64::from(n) },
            };
            if let Ok(forecast) = fit.forecast(load, None) {
                prop_assert!(forecast.response.mean_s.value >= 0.0 && forecast.throughput_per_s.value >= 0.0);
                let (low, high) = forecast.response.mean_s.interval.unwrap_or((0.0, 0.0));
                prop_assert!(low >= 0.0 && high >= low);
            }
        }
    }
}

/// Noise of 2 % at 3,000 rates: the means of neighbours keep what the points know of the parameters.
#[test]
fn thousands_of_points_are_reduced_and_give_the_true_parameters() {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let point = |_| {
        let rate_per_s = 10.0 + 135.0 * draw();
        let mean_s = formula(&station(&exponential(), 3, rate_per_s)).unwrap().response.mean_s.value;
        let noise = 1.0 + 0.02 * (draw() + draw() + draw() - 1.5) * 2.0;
        let place = Observation::at(String::new(), Load::Open { rate_per_s });
        Observation { response_s: Some(mean_s * noise + 0.005), ..place }
    };
    let points: Vec<Observation> = (0..3_000).map(point).collect();
    let fit = fit(&points, KnownParameters::default()).unwrap();
    assert!(fit.reduced_to.is_some_and(|few| (10..=40).contains(&few)), "{:?}", fit.reduced_to);
    assert_eq!(fit.points.len(), 3_000);
    let found = served(&fit);
    assert_eq!((found.family, found.servers), (Family::Exponential, 3));
    assert!(
        (found.service_s / SERVICE_S - 1.0).abs() < 0.02 && (found.delay_s - 0.005).abs() < 5e-4,
        "{found:?}"
    );
}
