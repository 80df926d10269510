//! The replay of runs in which requests were turned away, against servers that are written here, on their own.

use kendall_evidence::{Candidates, ReplayVerdict, Rules, Trial, candidates};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Discipline, Law, Servers};
use kendall_stats::random::{Purpose, Rng, stream, unit};

const NS: f64 = 1e9;
const MEAN_S: f64 = 2e-3;
/// What passes outside the station, one way, and how far it varies: more than over loopback on a busy machine.
const DELAY_S: f64 = 0.1e-3;

/// Why the server turns a request away.
#[derive(Clone, Copy)]
enum Refuses {
    /// When this number of requests is present.
    Beyond(usize),
    /// This share of the requests, at random.
    Share(f64),
}

/// The rows of a first-come-first-served server under a Poisson stream, with delays that vary by half.
fn rows(requests: usize, servers: usize, utilisation: f64, refuses: Refuses, seed: u64) -> Vec<RequestRow> {
    let arrivals = Arrivals::poisson(utilisation * servers as f64 / MEAN_S);
    let service = Law::Exponential { mean_s: MEAN_S };
    let (mut rng, mut chance) = (stream(seed, Purpose::Service, 0), stream(seed, Purpose::Route, 0));
    let mut free_s = vec![0.0f64; servers];
    let mut ends_s: Vec<f64> = Vec::new();
    let mut last_s = 0.0f64;
    let instants_s = arrivals.instants(seed).unwrap().take(requests);
    let row = |(index, due_s): (usize, f64)| {
        let there = |chance: &mut Rng| DELAY_S * (0.5 + unit(chance));
        // One connection delivers in order.
        last_s = last_s.max(due_s + there(&mut chance));
        let at_s = last_s;
        let inside = ends_s.iter().rev().take(20_000).filter(|&&end_s| end_s > at_s).count();
        let refused = match refuses {
            Refuses::Beyond(room) => inside >= room,
            Refuses::Share(share) => unit(&mut chance) < share,
        };
        let (start_s, service_s) = if refused {
            (at_s, 0.0)
        } else {
            let service_s = service.sample(&mut rng);
            free_s.sort_by(f64::total_cmp);
            let start_s = free_s[0].max(at_s);
            free_s[0] = start_s + service_s;
            ends_s.push(start_s + service_s);
            (start_s, service_s)
        };
        let ns = |at_s: f64| (at_s * NS) as i64;
        let done_s = start_s + service_s + there(&mut chance);
        let stamp = |at_s: f64| (!refused).then_some(ns(at_s));
        RequestRow {
            first_byte: Some(ns(done_s)),
            queued: Some(ns(at_s)),
            started: stamp(start_s),
            finished: stamp(start_s + service_s),
            service: stamp(service_s),
            bytes_out: 8,
            bytes_in: 8,
            ..RequestRow::due(index as u64, ns(due_s))
                .sent_at(ns(due_s), 1)
                .ended(if refused { Outcome::Refused } else { Outcome::Answered }, ns(done_s))
        }
    };
    instants_s.enumerate().map(row).collect()
}

fn explained(rows: &[RequestRow]) -> Candidates {
    let own = Rules::new(Servers::new(2).unwrap(), Discipline::Fifo, &[]);
    candidates(&[Trial { rows, warmup_ns: 0 }], &own).unwrap()
}

fn best(found: &Candidates) -> (u32, Discipline, Option<u64>) {
    let first = &found.ranked[0];
    (first.servers.get(), first.discipline, first.capacity)
}

/// Evidence of e^12 against the truth comes once in 160,000 runs.
#[test]
fn the_room_is_told_by_whom_the_server_turned_away() {
    for (seed, servers, room, utilisation) in
        [(1, 1, 50, 1.2), (2, 1, 10, 0.9), (3, 2, 6, 1.0), (4, 1, 1, 0.8)]
    {
        let rows = rows(4_000, servers, utilisation, Refuses::Beyond(room), seed);
        let found = explained(&rows);
        // Where no request waits, every order of service is the same.
        let verdict = if room == 1 { ReplayVerdict::CannotTell } else { ReplayVerdict::Explained };
        assert_eq!(found.verdict, verdict, "{room}: {:?}", &found.ranked[..3]);
        assert_eq!(best(&found), (servers as u32, Discipline::Fifo, Some(room as u64)));
        let refused = rows.iter().filter(|row| row.outcome == Outcome::Refused).count() as u64;
        assert_eq!(found.best.left_out, refused);
        // A nanosecond of rounding decides now and then who is turned away, and then others are until the station has forgotten it.
        assert!(2 * found.best.refused_too >= refused, "{} of {refused}", found.best.refused_too);
    }
}

/// Where chance turns requests away, no room explains it, and the station is found as if they had not come.
#[test]
fn requests_turned_away_for_another_reason_are_no_want_of_room() {
    for seed in 1..=3 {
        let found = explained(&rows(4_000, 1, 0.8, Refuses::Share(0.05), seed));
        assert_eq!(best(&found), (1, Discipline::Fifo, None), "{:?}", &found.ranked[..3]);
    }
}

#[test]
fn a_run_in_which_nobody_is_turned_away_has_no_candidate_of_limited_room() {
    let found = explained(&rows(1_000, 1, 0.7, Refuses::Beyond(1_000), 5));
    assert!(found.ranked.iter().all(|candidate| candidate.capacity.is_none()));
    assert_eq!(best(&found), (1, Discipline::Fifo, None));
}
