//! The replay against runs of servers that are written here, on their own: what it says of them must be true.
//!
//! Seeds are fixed; each test says what it allows and why.

use kendall_evidence::{
    ArrivedBy, Candidate, Candidates, NotReplayed, Replay, ReplayVerdict, RowClass, Rules, Trial, candidates,
    replay,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Discipline, Law, Servers};
use kendall_stats::random::{Purpose, stream};
use proptest::prelude::*;

const NS: f64 = 1e9;
/// What passes outside the station, as in a real run over loopback.
const OVERHEAD_S: f64 = 0.4e-3;
const MEAN_S: f64 = 10e-3;

fn servers(number: u32) -> Servers {
    Servers::new(number).unwrap()
}

fn rules(number: u32, discipline: Discipline) -> Rules<'static> {
    Rules::new(servers(number), discipline, &[])
}

/// Arrival and service of `n` requests, in seconds: Poisson, exponential, at a utilisation of `servers` servers.
fn requests(number: usize, servers: u32, utilisation: f64, seed: u64) -> Vec<(f64, f64)> {
    let arrivals = Arrivals::poisson(utilisation * f64::from(servers) / MEAN_S);
    let (service, mut rng) = (Law::Exponential { mean_s: MEAN_S }, stream(seed, Purpose::Service, 0));
    arrivals.instants(seed).unwrap().take(number).map(|at_s| (1.0 + at_s, service.sample(&mut rng))).collect()
}

/// Start and end of each request, first come first served by the server that is free first (Kiefer and Wolfowitz 1955).
fn first_come(requests: &[(f64, f64)], servers: usize) -> Vec<(f64, f64)> {
    let mut free_s = vec![0.0f64; servers];
    let serve = |&(arrival_s, service_s): &(f64, f64)| {
        free_s.sort_by(f64::total_cmp);
        let start_s = free_s[0].max(arrival_s);
        free_s[0] = start_s + service_s;
        (start_s, free_s[0])
    };
    requests.iter().map(serve).collect()
}

/// Start and end of each request where all share the servers, from event to event.
fn sharing(requests: &[(f64, f64)], servers: f64) -> Vec<(f64, f64)> {
    let mut ends_s = vec![0.0; requests.len()];
    let (mut now_s, mut next) = (0.0f64, 0);
    let mut present: Vec<(usize, f64)> = Vec::new();
    while next < requests.len() || !present.is_empty() {
        let speed = (servers / present.len() as f64).min(1.0);
        let least_s = present.iter().map(|&(_, left_s)| left_s).fold(f64::INFINITY, f64::min);
        let arrival_s = requests.get(next).map_or(f64::INFINITY, |request| request.0);
        let then_s = arrival_s.min(now_s + least_s / speed);
        present.iter_mut().for_each(|(_, left_s)| *left_s -= (then_s - now_s) * speed);
        now_s = then_s;
        present.retain(|&(place, left_s)| {
            let done = left_s <= 1e-12;
            if done {
                ends_s[place] = now_s;
            }
            !done
        });
        if now_s >= arrival_s {
            present.push((next, requests[next].1));
            next += 1;
        }
    }
    requests.iter().zip(ends_s).map(|(&(arrival_s, _), end_s)| (arrival_s, end_s)).collect()
}

/// The rows that a client beyond the overhead and a server would write of this.
fn rows(requests: &[(f64, f64)], served: &[(f64, f64)]) -> Vec<RequestRow> {
    let ns = |at_s: f64| (at_s * NS) as i64;
    let row = |(index, (&(arrival_s, service_s), &(start_s, end_s)))| RequestRow {
        queued: Some(ns(arrival_s)),
        started: Some(ns(start_s)),
        finished: Some(ns(end_s)),
        service: Some(ns(service_s)),
        bytes_out: 1,
        bytes_in: 1,
        ..RequestRow::due(index, ns(arrival_s - OVERHEAD_S / 2.0))
            .sent_at(ns(arrival_s - OVERHEAD_S / 2.0), 1)
            .ended(Outcome::Answered, ns(end_s + OVERHEAD_S / 2.0))
    };
    (0..).zip(requests.iter().zip(served)).map(row).collect()
}

fn fifo_run(number: usize, servers: u32, utilisation: f64, seed: u64) -> Vec<RequestRow> {
    let requests = requests(number, servers, utilisation, seed);
    rows(&requests, &first_come(&requests, servers as usize))
}

fn through(rows: &[RequestRow], rules: Rules<'_>) -> Replay {
    replay(&[Trial { rows, warmup_ns: 0 }], &rules).unwrap()
}

fn ranked(rows: &[RequestRow], own: Rules<'_>) -> Candidates {
    candidates(&[Trial { rows, warmup_ns: 0 }], &own).unwrap()
}

/// Four servers at 90 % and two hundred requests: the right station predicts every one of them, the wrong ones are off by
/// far more than any tolerance here, whatever the seed.
#[test]
fn the_right_station_predicts_every_request_and_the_wrong_ones_are_far_off() {
    for seed in 1..=10 {
        let rows = fifo_run(200, 4, 0.9, seed);
        let right = through(&rows, rules(4, Discipline::Fifo));
        assert_eq!((right.compared, right.arrived_by), (200, ArrivedBy::Server));
        assert!((right.delay_s - OVERHEAD_S).abs() < 2e-9, "{}", right.delay_s);
        assert!(right.fit.relative_error < 1e-6, "{:?}", right.fit);
        assert!(right.fit.correlation.unwrap() > 0.999_999);
        let three = through(&rows, rules(3, Discipline::Fifo)).fit;
        assert!(three.mean_error > 0.3, "{seed}: {three:?}");
        let five = through(&rows, rules(5, Discipline::Fifo)).fit;
        assert!(five.mean_error < -0.02, "{seed}: {five:?}");
        let sharing = through(&rows, rules(4, Discipline::ProcessorSharing)).fit;
        assert!(sharing.correlation.unwrap() < 0.97, "{seed}: {sharing:?}");
        let lifo = through(&rows, rules(4, Discipline::Lifo)).fit;
        assert!(lifo.correlation.unwrap() < 0.95, "{seed}: {lifo:?}");
    }
}

/// Three hundred requests of a busy station identify its servers and its order, whatever the seed, although the system is declared as
/// another station.
#[test]
fn a_few_hundred_requests_tell_three_servers_from_four_and_sharing_from_a_queue() {
    for_stations(&[0.6, 0.85, 0.95], |station, rows| {
        let found = ranked(&rows, rules(7 - station.servers, Discipline::Fifo));
        assert_eq!(found.verdict, ReplayVerdict::Explained, "{station:?}");
        assert!(station.is(&found.ranked[0]), "{station:?}");
        assert!(found.own > 0);
        assert!(found.ranked[found.own].told_apart);
    });
}

/// Noise of a third of the service time outside the station, and a machine that stalls twice, for 15 services each. What is true is
/// ruled out at most once in e^12 runs, so that one of 480 has a chance of 0.3 %.
#[test]
fn noise_and_pauses_never_rule_out_the_true_station() {
    let noise = Law::Exponential { mean_s: MEAN_S / 3.0 };
    for_stations(&[0.05, 0.6, 0.9], |station, mut rows| {
        let mut rng = stream(station.seed, Purpose::Trial, 0);
        for row in &mut rows {
            let paused_s = if (row.index % 150) / 8 == 9 { 15.0 * MEAN_S } else { 0.0 };
            let late_ns = ((noise.sample(&mut rng) + paused_s) * NS) as i64;
            row.completed = row.completed.map(|at| at + late_ns);
        }
        let found = ranked(&rows, rules(7 - station.servers, Discipline::Fifo));
        assert!(found.alike().any(|candidate| station.is(candidate)), "{station:?}");
    });
}

/// What truly served.
#[derive(Debug)]
struct Truth {
    servers: u32,
    discipline: Discipline,
    utilisation: f64,
    seed: u64,
}

impl Truth {
    fn is(&self, candidate: &Candidate) -> bool {
        (candidate.servers.get(), candidate.discipline) == (self.servers, self.discipline)
    }

    fn rows(&self) -> Vec<RequestRow> {
        let requests = requests(300, self.servers, self.utilisation, self.seed);
        let served = match self.discipline {
            Discipline::ProcessorSharing => sharing(&requests, f64::from(self.servers)),
            _ => first_come(&requests, self.servers as usize),
        };
        rows(&requests, &served)
    }
}

/// Three hundred requests each of a queue and of sharing, of three servers and of four, at these utilisations and of forty
/// seeds.
fn for_stations(utilisations: &[f64], mut look: impl FnMut(Truth, Vec<RequestRow>)) {
    for &utilisation in utilisations {
        for seed in 1..=40 {
            for servers in [3, 4] {
                for discipline in [Discipline::Fifo, Discipline::ProcessorSharing] {
                    let truth = Truth { servers, discipline, utilisation, seed };
                    let rows = truth.rows();
                    look(truth, rows);
                }
            }
        }
    }
}

#[test]
fn noise_outside_the_station_does_not_hide_it() {
    let mut rows = fifo_run(400, 3, 0.85, 5);
    let noise = Law::Exponential { mean_s: 1e-3 };
    let mut rng = stream(9, Purpose::Trial, 0);
    for row in &mut rows {
        row.completed = row.completed.map(|at| at + (noise.sample(&mut rng) * NS) as i64);
    }
    let found = ranked(&rows, rules(3, Discipline::Fifo));
    assert_eq!((found.verdict, found.own), (ReplayVerdict::Explained, 0));
    assert!(found.ranked[0].fit.relative_error < 0.1);
}

/// Where almost no request waits, more servers and another order have the same effect.
#[test]
fn an_idle_station_does_not_tell() {
    let found = ranked(&fifo_run(400, 4, 0.05, 3), rules(4, Discipline::Fifo));
    assert_eq!((found.verdict, found.own), (ReplayVerdict::CannotTell, 0));
    assert!(found.alike().count() > 6);
    assert!(found.alike().any(|candidate| candidate.discipline == Discipline::ProcessorSharing));
}

#[test]
fn what_is_neither_servers_nor_order_is_said_to_be() {
    let mut rows = fifo_run(400, 2, 0.3, 3);
    for row in &mut rows {
        let late = if row.index % 7 == 0 { 0.2 } else { 0.0 };
        row.completed = row.completed.map(|at| at + (late * NS) as i64);
    }
    assert_eq!(ranked(&rows, rules(2, Discipline::Fifo)).verdict, ReplayVerdict::Unexplained);
}

/// A client that sends late makes responses longer that no station explains, and is seen to.
#[test]
fn what_left_late_is_not_put_down_to_the_station() {
    let mut rows = fifo_run(400, 3, 0.6, 6);
    for row in rows.iter_mut().filter(|row| row.index % 3 == 0) {
        row.scheduled -= (5.0 * MEAN_S * NS) as i64;
    }
    let found = through(&rows, rules(3, Discipline::Fifo));
    assert!((found.delay_s - OVERHEAD_S).abs() < 2e-9, "{}", found.delay_s);
    assert!(found.fit.relative_error < 1e-6, "{:?}", found.fit);
}

#[test]
fn without_the_servers_instants_those_of_the_client_serve() {
    let mut rows = fifo_run(300, 3, 0.8, 4);
    for row in &mut rows {
        (row.queued, row.started, row.finished) = (None, None, None);
    }
    let found = through(&rows, rules(3, Discipline::Fifo));
    assert_eq!(found.arrived_by, ArrivedBy::Client);
    assert!((found.delay_s - OVERHEAD_S).abs() < 2e-9, "{}", found.delay_s);
    assert!(found.fit.relative_error < 1e-6, "{:?}", found.fit);
}

#[test]
fn the_lost_and_the_warm_up_are_counted_and_not_compared() {
    let mut rows = fifo_run(300, 3, 0.8, 4);
    for row in rows.iter_mut().filter(|row| row.index % 10 == 0) {
        (row.completed, row.queued, row.started) = (None, None, None);
        (row.finished, row.service, row.outcome) = (None, None, Outcome::Refused);
    }
    let warmup_ns = rows[100].scheduled;
    let trial = Trial { rows: &rows, warmup_ns };
    let found = replay(&[trial, trial], &rules(3, Discipline::Fifo)).unwrap();
    assert_eq!((found.left_out, found.compared), (60, 2 * 180));
    let never = replay(&[Trial { rows: &rows, warmup_ns: i64::MAX }], &rules(3, Discipline::Fifo));
    assert_eq!(never, Err(NotReplayed::NothingToCompare));
    rows.iter_mut().for_each(|row| row.service = None);
    let blind = replay(&[Trial { rows: &rows, warmup_ns: 0 }], &rules(3, Discipline::Fifo));
    assert_eq!(blind, Err(NotReplayed::NoService { requests: 300 }));
    assert_eq!(replay(&[], &rules(1, Discipline::Fifo)), Err(NotReplayed::NoService { requests: 0 }));
}

/// Urgent requests before others on one server: by hand, with and without interruption.
#[test]
fn priorities_are_by_the_weight_of_the_class() {
    let classes = [("low", 1.0), ("high", 5.0)].map(|(name, weight)| RowClass { name: name.into(), weight });
    let requests = [(1.0, 4.0), (2.0, 1.0), (3.0, 1.0)];
    // The second is low, the third high.
    let mut rows = rows(&requests, &[(1.0, 5.0), (5.0, 6.0), (6.0, 7.0)]);
    rows[2].class = 1;
    let predicted = |discipline| {
        let found = through(&rows, Rules::new(servers(1), discipline, &classes));
        found.pairs.iter().map(|pair| (pair.predicted_s - OVERHEAD_S).round()).collect::<Vec<_>>()
    };
    assert_eq!(predicted(Discipline::Fifo), [4.0, 4.0, 4.0]);
    assert_eq!(predicted(Discipline::Priority), [4.0, 5.0, 3.0]);
    assert_eq!(predicted(Discipline::PreemptivePriority), [5.0, 5.0, 1.0]);
    assert_eq!(predicted(Discipline::ShortestRemaining), [6.0, 1.0, 1.0]);
}

#[test]
fn who_finds_no_room_is_counted() {
    let requests = [(1.0, 4.0), (2.0, 1.0), (3.0, 1.0), (5.5, 1.0)];
    let rows = rows(&requests, &first_come(&requests, 1));
    for discipline in Discipline::ALL {
        let found = through(&rows, Rules { capacity: Some(1), ..rules(1, discipline) });
        assert_eq!((found.turned_away, found.compared), (2, 4), "{discipline}");
    }
}

fn trace() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let request = (0.0..2.0f64, prop_oneof![0.0..1.0f64, Just(0.0), 1.0..50.0f64]);
    proptest::collection::vec(request, 1..60).prop_map(|gaps| {
        let mut now_s = 1.0;
        gaps.into_iter()
            .map(|(gap_s, service_s)| {
                now_s += gap_s;
                (now_s, service_s)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn it_is_the_textbook_recursion_for_first_come_first_served(trace in trace(), number in 1u32..6) {
        let rows = rows(&trace, &first_come(&trace, number as usize));
        let found = through(&rows, rules(number, Discipline::Fifo));
        for pair in &found.pairs {
            prop_assert!((pair.predicted_s - pair.measured_s).abs() < 1e-6, "{pair:?}");
        }
    }

    #[test]
    fn it_is_sharing_step_by_step(trace in trace(), number in 1u32..6) {
        let rows = rows(&trace, &sharing(&trace, f64::from(number)));
        let found = through(&rows, rules(number, Discipline::ProcessorSharing));
        for pair in &found.pairs {
            prop_assert!((pair.predicted_s - pair.measured_s).abs() < 1e-6, "{pair:?}");
        }
    }

    /// One server that is never idle while there is work is done with all of it at the same instant in any order, and no request
    /// finishes before its own service.
    #[test]
    fn every_order_does_the_same_work(trace in trace(), number in 1u32..4, class in 0usize..3) {
        let classes = [1.0, 2.0, 7.0].map(|weight| RowClass { name: String::new(), weight });
        let mut rows = rows(&trace, &first_come(&trace, 1));
        for row in &mut rows {
            row.class = (row.index as usize * 5 + class) as u32 % 3;
        }
        let last_s = |discipline, number| {
            let found = through(&rows, Rules::new(servers(number), discipline, &classes));
            let ends = found.pairs.iter().zip(&trace).map(|(pair, request)| {
                assert!(pair.predicted_s + 1e-6 >= request.1 + OVERHEAD_S, "{discipline}: {pair:?}");
                request.0 + pair.predicted_s
            });
            ends.fold(0.0, f64::max)
        };
        for discipline in Discipline::ALL {
            prop_assert!((last_s(discipline, 1) - last_s(Discipline::Fifo, 1)).abs() < 1e-6, "{discipline}");
            prop_assert!(last_s(discipline, number).is_finite());
        }
    }
}
