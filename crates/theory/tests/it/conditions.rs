//! The simulator of networks and conditions against theory, each condition alone, and against laws.
//!
//! Seeds are fixed, so a test passes or fails once and for all. Each comparison allows twice the half-width of a 95 %
//! interval by Student's t with at least nine degrees of freedom: a false alarm in about 700 when a seed is changed.

use crate::simulated::{adds_up, near};
use kendall_simulation::{NetworkAnswer, SimulationError, StopRule, simulate, simulate_conditions};
use kendall_station::{
    Arrivals, Batch, Between, Breakdown, Class, Clock, Conditions, Delays, Discipline, Estimate, Interrupted,
    Law, Profile, Retry, Servers, Setup, Spacing, Station,
};
use kendall_theory::formula;

const RUN: StopRule = StopRule::Steady { max_customers: 300_000, relative_half_width: None };

fn exponential(mean_s: f64) -> Law {
    Law::Exponential { mean_s }
}

fn station(rate_per_s: f64, service: Law, servers: u32) -> Station {
    Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
}

fn under(conditions: Conditions, station: Station) -> Station {
    Station { conditions, ..station }
}

fn run(station: &Station, seed: u64) -> NetworkAnswer {
    let answer = simulate_conditions(station, RUN, seed).unwrap_or_else(|error| panic!("{station}: {error}"));
    adds_up(&answer);
    answer
}

/// For a plain station it has the same customers as the loops for plain stations, and therefore the same answer.
#[test]
fn a_plain_station_is_what_it_was() {
    let plain = || station(2.4, exponential(0.5), 2);
    let class = |name: &str, share, weight, service| Class { name: name.into(), share, weight, service };
    let classes = vec![
        class("short", 0.7, 2.0, None),
        class("long", 0.3, 1.0, Some(Law::Uniform { low_s: 0.1, high_s: 1.3 })),
    ];
    let closed = Arrivals::Closed { population: 9, think: exponential(1.0) };
    let mut stations =
        vec![Station { arrivals: closed, ..plain() }, Station { capacity: Some(4), ..plain() }];
    for discipline in Discipline::ALL {
        let classes = classes.clone();
        stations.push(Station { discipline, classes, capacity: Some(30), ..plain() });
    }
    for station in stations {
        for stop in [StopRule::customers(20_000), StopRule::Runs { customers: 300, runs: 20 }] {
            let direct = simulate(&station, stop, 3).unwrap();
            let through = simulate_conditions(&station, stop, 3).unwrap();
            adds_up(&through);
            let node = through.nodes[0].answer.clone();
            let pairs = [&through.overall]
                .into_iter()
                .chain(node.as_ref().filter(|_| stop != StopRule::customers(20_000)));
            for found in pairs {
                let same = |a: Estimate, b: Estimate| {
                    let what = format!("{station} {stop:?}: {a:?} {b:?}");
                    assert!((a.value - b.value).abs() <= 1e-9 * a.value.abs(), "{what}");
                    assert!((a.half_width() - b.half_width()).abs() <= 1e-6 * a.half_width(), "{what}");
                };
                same(direct.response.mean_s, found.response.mean_s);
                same(direct.waiting.mean_s, found.waiting.mean_s);
                same(direct.throughput_per_s, found.throughput_per_s);
                same(direct.utilisation, found.utilisation);
                same(direct.in_system, found.in_system);
                same(direct.p_wait, found.p_wait);
                same(direct.lost, found.lost);
                same(direct.weighted_response_s.unwrap(), found.weighted_response_s.unwrap());
                for (a, b) in direct.classes.iter().zip(&found.classes) {
                    assert_eq!(a.name, b.name);
                    same(a.response.mean_s, b.response.mean_s);
                }
            }
        }
    }
}

/// The stationary law of a birth–death process, from its rates up and down at each number.
fn birth_death(up: impl Fn(usize) -> f64, down: impl Fn(usize) -> f64, most: usize) -> Vec<f64> {
    let mut weights = vec![1.0];
    for n in 1..=most {
        weights.push(weights[n - 1] * up(n - 1) / down(n));
    }
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Erlang A (Palm 1957): M/M/m+M is a birth–death process, below and above saturation.
#[test]
fn impatient_customers_abandon_as_in_erlang_a() {
    for (rate, servers, patience_s, seed) in [(4.5, 3_u32, 1.0, 1), (9.0, 4, 0.5, 2)] {
        let conditions = Conditions { patience: Some(exponential(patience_s)), ..Conditions::default() };
        let answer = run(&under(conditions, station(rate, exponential(0.5), servers)), seed);
        let m = servers as usize;
        let down = |n: usize| n.min(m) as f64 / 0.5 + n.saturating_sub(m) as f64 / patience_s;
        let law = birth_death(|_| rate, down, 200);
        let mean = |of: &dyn Fn(usize) -> f64| law.iter().enumerate().map(|(n, p)| of(n) * p).sum::<f64>();
        let queue = mean(&|n| n.saturating_sub(m) as f64);
        near("abandoned", answer.abandoned, queue / patience_s / rate);
        near("lost", answer.overall.lost, queue / patience_s / rate);
        near("number", answer.overall.in_system, mean(&|n| n as f64));
        near("utilisation", answer.overall.utilisation, mean(&|n| n.min(m) as f64) / f64::from(servers));
        // Customers that abandon count among those who found all servers busy, but not among the served.
        assert!(answer.overall.p_wait.value < mean(&|n| f64::from(u8::from(n >= m))));
        assert_eq!(answer.turned_away.value, 0.0);
    }
}

/// M^[X]/M/1 (Gross et al. 2008, section 3.1).
#[test]
fn batches_make_the_queue_longer_by_their_moments() {
    let batches = [
        Batch::Fixed { size: 3 },
        Batch::Geometric { mean: 3.0 },
        Batch::Listed { sizes: vec![(1, 0.5), (5, 0.5)] },
    ];
    for (batch, seed) in batches.into_iter().zip(11..) {
        let (mean, second) = (batch.mean(), batch.second_moment());
        let conditions = Conditions { batch: Some(batch), ..Conditions::default() };
        let station = under(conditions, station(0.7 / mean, exponential(1.0), 1));
        assert!((station.offered_utilisation().unwrap() - 0.7).abs() < 1e-12);
        let answer = run(&station, seed).overall;
        near("number", answer.in_system, 0.7 * (1.0 + second / mean) / (2.0 * 0.3));
        near("utilisation", answer.utilisation, 0.7);
        near("throughput", answer.throughput_per_s, 0.7);
    }
}

/// M/M/1 with setup (Welch 1964): E[W] = W(M/M/1) + (2E[D] + λE[D²])/(2(1 + λE[D])).
#[test]
fn a_setup_delays_as_welch_says() {
    for (law, seed) in [(exponential(2.0), 1), (Law::Constant { mean_s: 3.0 }, 2)] {
        let (rate, d, d2) = (0.6, law.moment(1), law.moment(2));
        let conditions =
            Conditions { setup: Some(Setup { time: law, off_after: None }), ..Conditions::default() };
        let answer = run(&under(conditions, station(rate, exponential(1.0), 1)), seed);
        let waiting_s = rate / (1.0 - rate) + (2.0 * d + rate * d2) / (2.0 * (1.0 + rate * d));
        near("waiting", answer.overall.waiting.mean_s, waiting_s);
        near("utilisation", answer.overall.utilisation, rate);
        // A cycle is an idle time, a setup, and a busy period of those who came in it: (1/λ + D)/(1 − ρ) in all.
        near("setting up", answer.nodes[0].setting_up, d * (1.0 - rate) / (1.0 / rate + d));
    }
}

/// A server that stays on for a while is off more rarely: only if no request arrives for that long.
#[test]
fn a_server_that_stays_on_is_set_up_more_rarely() {
    let setup = Setup { time: exponential(2.0), off_after: Some(exponential(1.0)) };
    let conditions = Conditions { setup: Some(setup), ..Conditions::default() };
    for discipline in [Discipline::Fifo, Discipline::ProcessorSharing] {
        let station = Station { discipline, ..under(conditions.clone(), station(0.6, exponential(1.0), 1)) };
        let answer = run(&station, 5);
        // An idle time ends in an arrival before the server goes off with chance λ/(λ + 1); then there is no setup.
        let off = 1.0 / 1.6;
        let cycle_s = (1.0 / 0.6 + off * 2.0) / 0.4;
        near("setting up", answer.nodes[0].setting_up, off * 2.0 / cycle_s);
    }
}

fn breaking(repair: Law, then: Interrupted, clock: Clock) -> Conditions {
    let breakdown = Breakdown { up: exponential(5.0), repair, then, clock };
    Conditions { breakdown: Some(breakdown), ..Conditions::default() }
}

/// M/G/1 with breakdowns (Avi-Itzhak and Naor 1963): the time to complete a service, C, replaces the service; and if the
/// server fails idle too, an arrival may also wait for the rest of a repair.
#[test]
fn breakdowns_stretch_the_service_to_its_completion_time() {
    let (rate, failures) = (0.5, 1.0 / 5.0);
    let repairs = [exponential(2.0), Law::Constant { mean_s: 3.0 }];
    let services = [exponential(1.0), Law::Uniform { low_s: 0.0, high_s: 2.0 }];
    for ((repair, service), seed) in repairs.into_iter().zip(services).zip(21..) {
        let (r, r2) = (repair.moment(1), repair.moment(2));
        let c = service.moment(1) * (1.0 + failures * r);
        let c2 = service.moment(2) * (1.0 + failures * r).powi(2) + service.moment(1) * failures * r2;
        let operating_s = c + rate * c2 / (2.0 * (1.0 - rate * c));
        let idle_s = failures * r2 / (2.0 * (1.0 + failures * r));
        for (clock, response_s, down) in [
            (Clock::Operating, operating_s, rate * service.moment(1) * failures * r),
            (Clock::Calendar, operating_s + idle_s, r / (5.0 + r)),
        ] {
            let conditions = breaking(repair.clone(), Interrupted::Resume, clock);
            let answer = run(&under(conditions, station(rate, service.clone(), 1)), seed);
            near("response", answer.overall.response.mean_s, response_s);
            near("down", answer.nodes[0].down, down);
            near("utilisation", answer.overall.utilisation, rate * service.moment(1));
        }
    }
}

/// With equal exponential service the order does not change the number present, whatever breaks down meanwhile.
#[test]
fn breakdowns_do_not_depend_on_the_order() {
    let c = 1.0 + 0.2 * 2.0;
    let c2 = 2.0 * c * c + 0.2 * 8.0;
    let number = 0.5 * c + 0.25 * c2 / (2.0 * (1.0 - 0.5 * c));
    for discipline in [
        Discipline::Lifo,
        Discipline::Priority,
        Discipline::PreemptivePriority,
        Discipline::ProcessorSharing,
        Discipline::Gittins,
    ] {
        let class = |name: &str, weight| Class { name: name.into(), share: 0.5, weight, service: None };
        let plain = Station {
            discipline,
            classes: vec![class("urgent", 2.0), class("other", 1.0)],
            ..station(0.5, exponential(1.0), 1)
        };
        let conditions = breaking(exponential(2.0), Interrupted::Resume, Clock::Operating);
        near(discipline.name(), run(&under(conditions, plain), 31).overall.in_system, number);
    }
}

/// A service of fixed length d that restarts takes (e^{ξd} − 1)/ξ of a server's time (Gaver 1962, repeat identical).
#[test]
fn a_restarted_service_takes_exponentially_longer() {
    for d in [0.5, 4.0] {
        let rate = 0.6 / (5.0 * (f64::exp(d / 5.0) - 1.0));
        let conditions = breaking(Law::Constant { mean_s: 0.1 }, Interrupted::Restart, Clock::Operating);
        let answer = run(&under(conditions, station(rate, Law::Constant { mean_s: d }, 1)), 41);
        near("utilisation", answer.overall.utilisation, 0.6);
        near("throughput", answer.overall.throughput_per_s, rate);
    }
}

/// An exponential service is lost if the breakdown comes first: with probability ξ/(ξ + µ).
#[test]
fn a_breakdown_that_loses_takes_its_share() {
    let conditions = breaking(exponential(1.0), Interrupted::Lose, Clock::Operating);
    let answer = run(&under(conditions, station(1.0, exponential(1.0), 3)), 51);
    near("broken", answer.broken, 0.2 / 1.2);
    near("lost", answer.overall.lost, 0.2 / 1.2);
}

/// M/M/1/1 with retries for ever (Falin and Templeton 1997, section 1.2): λ²/(1 − ρ)·(1/(µθ) + 1/µ²) retry.
#[test]
fn retries_are_those_of_the_retrial_queue() {
    let (rate, after_s) = (0.6, 2.0);
    let retry = Retry { probability: 1.0, after: Delays::Law(exponential(after_s)), most: None };
    let conditions = Conditions { retry: Some(retry), ..Conditions::default() };
    let one = Station { capacity: Some(1), ..station(rate, exponential(1.0), 1) };
    let answer = run(&under(conditions, one), 61);
    let orbit = rate * rate / (1.0 - rate) * (after_s + 1.0);
    near("response", answer.overall.response.mean_s, orbit / rate + 1.0);
    near("number", answer.overall.in_system, orbit + rate);
    near("at the node", answer.nodes[0].answer.as_ref().unwrap().in_system, rate);
    // Each customer in orbit retries at rate 1/after.
    near("retries", answer.retries, orbit / after_s / rate);
    assert_eq!(answer.overall.lost.value, 0.0);
}

/// Without a second chance it is M/M/1/K; with a long delay and one retry, the retries are another Poisson stream, and
/// the chance to be turned away is the fixed point B(λ(1 + b)) = b, so that b² of all are lost (Cohen 1957).
#[test]
fn retries_after_a_long_time_load_like_new_customers() {
    let plain = Station { capacity: Some(5), ..station(1.2, exponential(1.0), 1) };
    let retry = |probability, most| {
        let after = Delays::Law(exponential(500.0));
        Conditions { retry: Some(Retry { probability, after, most }), ..Conditions::default() }
    };
    let never = run(&under(retry(0.0, None), plain.clone()), 71);
    near("never", never.overall.lost, formula(&plain).unwrap().lost.value);
    let full = |rate: f64| birth_death(|_| rate, |_| 1.0, 5)[5];
    let mut b = 0.0;
    for _ in 0..200 {
        b = full(1.2 * (1.0 + b));
    }
    let once = run(&under(retry(1.0, Some(1)), plain), 72);
    near("once", once.overall.lost, b * b);
    near("retries", once.retries, b);
}

/// M_t/M/∞: over a period the mean number present is the mean rate times the service time, whatever the profile (Eick,
/// Massey and Whitt 1993); and the share of each phase is that of the rate.
#[test]
fn rates_that_vary_average_over_their_period() {
    let points = vec![(0.0, 2.0), (6.0, 10.0), (8.0, 1.0)];
    let profile =
        Profile { points, between: Between::Lines, period_s: Some(12.0), spacing: Spacing::Poisson };
    let arrivals = Arrivals::Varying(profile.clone());
    let answer = run(&Station { arrivals, ..station(1.0, exponential(2.0), 400) }, 81);
    near("number", answer.overall.in_system, 2.0 * profile.mean_rate_per_s());
    let all = 12.0 * profile.mean_rate_per_s();
    assert_eq!(answer.phases.len(), 12);
    for phase in &answer.phases {
        let expected = profile.expected(phase.to_s.min(11.999_999)) - profile.expected(phase.from_s);
        near("share", phase.share, expected / all);
        near("response", phase.response_s, 2.0);
    }
}

/// Where the rate changes slowly against the station, each phase is M/M/1 at its rate (Green and Kolesar 1991). The first
/// phase after each change still remembers the other rate.
#[test]
fn a_slow_change_is_a_row_of_steady_states() {
    let points = vec![(0.0, 0.3), (12_000.0, 0.7)];
    let profile =
        Profile { points, between: Between::Steps, period_s: Some(24_000.0), spacing: Spacing::Poisson };
    let arrivals = Arrivals::Varying(profile);
    let answer = run(&Station { arrivals, ..station(1.0, exponential(1.0), 1) }, 82);
    for (i, phase) in answer.phases.iter().enumerate() {
        match i {
            1..=5 => near("low", phase.response_s, 1.0 / 0.7),
            7..=11 => near("high", phase.response_s, 1.0 / 0.3),
            _ => {}
        }
    }
}

#[test]
fn a_network_that_never_settles_is_an_error() {
    let refused = |station: &Station| simulate(station, RUN, 1).unwrap_err();
    let breakdowns = breaking(exponential(2.0), Interrupted::Resume, Clock::Calendar);
    let broken = refused(&under(breakdowns, station(0.8, exponential(1.0), 1)));
    assert!(matches!(broken, SimulationError::Unstable { rho, .. } if (rho - 1.12).abs() < 1e-9), "{broken}");
    // No customer gives up, so rejected ones return again and again.
    let retry = Retry { probability: 1.0, after: Delays::Law(exponential(1.0)), most: None };
    let retries = Conditions { retry: Some(retry), ..Conditions::default() };
    let crowded = Station { capacity: Some(3), ..station(1.5, exponential(1.0), 1) };
    let grown = refused(&under(retries, crowded));
    assert!(matches!(grown, SimulationError::Unstable { .. }), "{grown}");
    let breakdown = Breakdown {
        up: Law::Constant { mean_s: 1.0 },
        repair: exponential(1.0),
        then: Interrupted::Restart,
        clock: Clock::Operating,
    };
    let conditions = Conditions { breakdown: Some(breakdown), ..Conditions::default() };
    let users = Arrivals::Closed { population: 2, think: exponential(1.0) };
    let never = Station { arrivals: users, ..station(1.0, Law::Constant { mean_s: 2.0 }, 1) };
    let stalled = refused(&under(conditions, never));
    assert!(matches!(stalled, SimulationError::Stalled { .. }), "{stalled}");
    // A batch brings more customers than memory has room for before growth shows in what leaves.
    let batch = Batch::Geometric { mean: 1e6 };
    let batches = Conditions { batch: Some(batch), ..Conditions::default() };
    let grown = refused(&under(batches, station(1.5, exponential(1.0), 1)));
    assert!(matches!(grown, SimulationError::Unstable { reached, .. } if reached < 20_000_000), "{grown}");
    let burst = Profile {
        points: vec![(0.0, 5.0), (9.0, 0.0)],
        between: Between::Steps,
        period_s: None,
        spacing: Spacing::Poisson,
    };
    let burst = Station { arrivals: Arrivals::Varying(burst), ..station(1.0, exponential(1.0), 1) };
    assert!(refused(&burst).to_string().contains("end after 9 s"), "{}", refused(&burst));
    let runs = simulate_conditions(&burst, StopRule::Runs { customers: 1000, runs: 100 }, 1).unwrap();
    adds_up(&runs);
    // 45 a run: the mean of 100 Poisson numbers, five standard errors, a false alarm in 1.7 million.
    assert!((runs.counts.arrived as f64 / 100.0 - 45.0).abs() < 3.4, "{:?}", runs.counts);
    assert_eq!(runs.counts.inside, 0);
}

#[test]
fn formulas_leave_conditions_to_the_simulation() {
    let conditions = breaking(exponential(2.0), Interrupted::Resume, Clock::Calendar);
    let refused = formula(&under(conditions, station(0.2, exponential(1.0), 1))).unwrap_err();
    assert!(refused.to_string().contains("with breakdowns"), "{refused}");
}
