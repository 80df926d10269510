//! The three methods for the variances compared with each other, and with published numbers.

use kendall_station::{Arrivals, Discipline, Law, Servers, Station};
use proptest::prelude::*;

use super::*;

fn station(rate_per_s: f64, service: Law, servers: u32) -> Station {
    Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
}

fn exponential(utilisation: f64, servers: u32) -> Station {
    station(utilisation * f64::from(servers), Law::Exponential { mean_s: 1.0 }, servers)
}

fn closed(users: u32, think_s: f64, servers: u32) -> Station {
    let think = Law::Exponential { mean_s: think_s };
    Station { arrivals: Arrivals::Closed { population: users, think }, ..exponential(0.5, servers) }
}

#[track_caller]
fn near(found: f64, exact: f64, within: f64) {
    assert!((found / exact - 1.0).abs() <= within, "{found}, not {exact}");
}

#[test]
fn five_per_cent_of_the_mean_wait_costs_what_is_published() {
    for (utilisation, requests, of_a_hundred) in
        [(0.5, 44_560.922_320_051_8, 1.06), (0.8, 189_768.065_742_29, 2.18), (0.9, 681_047.966_033_283, 4.13)]
    {
        let plan = plan(&exponential(utilisation, 1), 0.05).unwrap();
        let waiting = plan.waiting.unwrap();
        near(waiting.requests, requests, 1e-9);
        near(waiting.relative_half_width(100.0), of_a_hundred, 5e-3);
        near(waiting.relative_half_width(requests), 0.05, 1e-9);
        near(waiting.asymptotic_variance_s2, mm1_waiting_variance(utilisation, 1.0), 1e-12);
        near(plan.calibration.amplification, 1.0 / (1.0 - utilisation), 1e-12);
    }
    // 1.96²/(0.05·0.1)² service times, where they vary like exponential ones.
    near(plan(&exponential(0.9, 1), 0.05).unwrap().calibration.samples, 153_658.4, 1e-5);
}

/// The birth–death process and the moments of the waiting time are two derivations of the same numbers.
#[test]
fn two_theories_of_one_server_agree() {
    for utilisation in [1e-6, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-7] {
        let station = exponential(utilisation, 1);
        let (chain, single) = (chain::spread(&station).unwrap(), single::spread(&station).unwrap());
        for (chain, single) in [(chain.waiting, single.waiting), (chain.response, single.response)] {
            near(chain.mean_s, single.mean_s, 1e-8);
            near(chain.asymptotic_variance_s2, single.asymptotic_variance_s2, 1e-8);
            let scale = 1e-6 * single.mean_s;
            assert!(
                (chain.deficit_s.unwrap() - single.deficit_s.unwrap()).abs()
                    <= scale + 1e-6 * single.deficit_s.unwrap()
            );
        }
    }
}

/// A station that is never full equals one of unlimited capacity, and one of endless users with endless think times.
#[test]
fn limits_meet() {
    let open = chain::spread(&exponential(0.8, 4)).unwrap();
    let roomy = chain::spread(&Station { capacity: Some(500), ..exponential(0.8, 4) }).unwrap();
    let users = 2_000_000;
    let crowd = chain::spread(&closed(users, f64::from(users) / 3.2, 4)).unwrap();
    for (like, within) in [(roomy, 1e-9), (crowd, 1e-3)] {
        for (like, open) in [(like.waiting, open.waiting), (like.response, open.response)] {
            near(like.mean_s, open.mean_s, within);
            near(like.asymptotic_variance_s2, open.asymptotic_variance_s2, 10.0 * within);
        }
    }
}

/// Theory against batch means, seeds fixed: a pilot's variance is good to some 11 %, so that 40 % is more than
/// three of its standard errors.
#[test]
fn theory_agrees_with_a_pilot_simulation() {
    let two_phases = Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] };
    let stations = [
        exponential(0.6, 1),
        exponential(0.7, 3),
        Station { capacity: Some(6), ..exponential(1.1, 2) },
        Station { discipline: Discipline::ProcessorSharing, ..exponential(0.6, 2) },
        closed(12, 4.0, 2),
        closed(3, 0.5, 4),
        station(0.7, Law::Constant { mean_s: 1.0 }, 1),
        station(0.5, two_phases, 1),
        Station { discipline: Discipline::Lifo, ..station(0.6, Law::Constant { mean_s: 1.0 }, 1) },
    ];
    for station in stations {
        let theory = chain::spread(&station).or_else(|| single::spread(&station)).unwrap();
        let pilot = pilot::spread(&station).unwrap();
        near(pilot.rate_per_s, theory.rate_per_s, 0.01);
        near(pilot.utilisation, theory.utilisation, 0.01);
        for (theory, pilot) in [(theory.response, pilot.response), (theory.waiting, pilot.waiting)] {
            if theory.mean_s > 0.0 {
                near(pilot.mean_s, theory.mean_s, 0.03);
                near(pilot.asymptotic_variance_s2, theory.asymptotic_variance_s2, 0.4);
            }
        }
    }
}

#[test]
fn a_station_without_a_mean_has_no_plan() {
    assert_eq!(plan(&exponential(1.25, 4), 0.05), Err(NoPlan::Unstable { rho: 1.25 }));
    let full = Station { capacity: Some(20), ..exponential(1.25, 4) };
    assert!(plan(&full, 0.05).is_ok());
    let heavy = station(0.5, Law::Pareto { shape: 3.5, mean_s: 1.0 }, 1);
    assert_eq!(plan(&heavy, 0.05), Err(NoPlan::HeavyTail { law: "Pareto" }));
    for precision in [0.0, -0.1, 1.0, f64::NAN] {
        assert!(matches!(plan(&exponential(0.5, 1), precision), Err(NoPlan::Precision(_))));
    }
}

#[test]
fn waits_too_rare_to_compute_have_no_plan() {
    let plan = plan(&exponential(0.220_657_656_123_446_32, 1000), 0.05).unwrap();
    assert!(plan.waiting.is_none() && plan.response.requests > 1000.0, "{plan:?}");
}

/// Independent means of the variance that theory says spread as little as the narrowest thousandth in one of a thousand.
#[test]
fn an_interval_that_is_too_narrow_is_distinguished_from_a_random_one() {
    let target = plan(&exponential(0.8, 1), 0.05).unwrap().response;
    let honest_s = target.mean_s * target.relative_half_width(5.0 * 20_000.0) * student_t(4.0, 0.975) / Z;
    let chance = |half_width_s| target.chance_of_so_narrow(half_width_s, 5, 20_000.0).unwrap();
    assert!((0.4..0.7).contains(&chance(honest_s)), "{}", chance(honest_s));
    assert!(chance(honest_s / 10.0) < 1e-3);
    assert!(target.chance_of_so_narrow(honest_s, 1, 20_000.0).is_none());
}

#[test]
fn the_split_into_repeats_pays_for_students_t_and_for_warm_ups() {
    let (few, _) = repeats(10_000.0, 20_000.0);
    let (many, each) = repeats(1e6, 10.0);
    assert!(few < 6 && many > 8, "{few} {many}");
    assert!(f64::from(many) * each > 1e6);
}

proptest! {
    #[test]
    fn nothing_is_negative_or_not_a_number(
        utilisation in prop_oneof![1e-9..1.0f64, Just(1.0 - 1e-9), 1.0..100.0f64],
        servers in prop_oneof![1u32..20, Just(1000), Just(100_000)],
        room in prop_oneof![Just(None), (0u64..50).prop_map(Some), Just(Some(200_000))],
        users in prop_oneof![Just(None), (1u32..400).prop_map(Some), Just(Some(200_000))],
    ) {
        let open = exponential(utilisation, servers);
        let capacity = room.map(|room| room + u64::from(servers));
        let station = match users {
            Some(users) => closed(users, f64::from(users) / (utilisation * f64::from(servers)), servers),
            None => Station { capacity, ..open },
        };
        match plan(&station, 0.05) {
            Err(NoPlan::Unstable { rho }) => prop_assert!(rho >= 1.0 && users.is_none() && room.is_none()),
            other => {
                let plan = other.unwrap();
                for target in [Some(plan.response), plan.waiting].into_iter().flatten() {
                    prop_assert!(target.mean_s > 0.0 && target.asymptotic_variance_s2 >= 0.0, "{plan:?}");
                    prop_assert!(target.requests.is_finite() && target.requests > 0.0, "{plan:?}");
                    prop_assert!(target.deficit_s.unwrap() >= 0.0, "{plan:?}");
                }
                let Plan { warmup, repeats, calibration, .. } = plan;
                for value in [warmup.time_s, repeats.seconds, calibration.amplification, calibration.samples] {
                    prop_assert!(value.is_finite() && value > 0.0, "{warmup:?} {repeats:?} {calibration:?}");
                }
            }
        }
    }
}
