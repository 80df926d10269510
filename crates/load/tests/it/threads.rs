//! Loads that several threads send.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kendall_load::{
    ConnectionKind, LoadError, Plan, Progress, Request, RequestClass, Route, Session, SessionRequest,
    Sessions, Share, Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Attendance, Law};
use kendall_stats::anderson_darling_exponential;
use kendall_testbed::unless_disturbed;

use crate::echo::{Driver, Echo, echo, over, plan, rows, run_all};

fn closed(population: u32) -> Arrivals {
    Arrivals::Closed { population, think: Law::Exponential { mean_s: 0.002 } }
}

/// A plan of threads that are given time to send all, however long the machine stalls.
fn by(threads: u32, arrivals: Arrivals, ms: u64) -> Plan {
    Plan { threads, drain: Duration::from_secs(20), ..plan(arrivals, ms) }
}

#[test]
fn the_requests_and_instants_are_those_of_one_thread() {
    for driver in [Driver::Poll, Driver::Task] {
        let workload = over(driver, echo());
        let due = |threads| {
            let (rows, summary) = rows(&by(threads, Arrivals::poisson(2000.0), 400), &workload);
            assert_eq!(summary.count(Outcome::Answered), summary.sent);
            let of_threads: u64 = summary.threads.iter().map(|one| one.sent).sum();
            match threads {
                1 => assert!(summary.threads.is_empty()),
                _ => assert_eq!((summary.threads.len() as u32, of_threads), (threads, summary.sent)),
            }
            assert_eq!(
                (summary.sends.count, summary.sends.gaps_ns.len() as u64),
                (summary.sent, summary.sent - 1)
            );
            let seen = |row: &RequestRow| (row.index, row.class, row.scheduled, row.bytes_out, row.bytes_in);
            rows.iter().map(seen).collect::<Vec<_>>()
        };
        let one = due(1);
        assert_eq!(due(2), one);
        assert_eq!(due(8), one);
    }
}

/// The tests of the judge of the generator, with its bounds: the gaps' law, their variation and the dispersion of the counts.
#[test]
fn the_merged_sends_have_the_law_of_the_arrivals() {
    for threads in [1, 2, 8] {
        unless_disturbed(|| {
            let (_, summary) =
                rows(&by(threads, Arrivals::poisson(1000.0), 2000), &over(Driver::Poll, echo()));
            let sends = summary.sends;
            let gaps: Vec<f64> = sends.gaps_ns.iter().map(|&ns| ns as f64).collect();
            let tested = anderson_darling_exponential(&gaps).expect("there are gaps enough");
            let allowed = |windows: u64| 0.1 + 4.0 * (2.0 / windows as f64).sqrt();
            let even = sends.dispersion.iter().all(|one| (one.index - 1.0).abs() <= allowed(one.windows));
            let cv = (sends.gap_cv - 1.0).abs() <= 5.0 / (sends.count as f64).sqrt();
            let rate = (sends.per_s / sends.due_per_s - 1.0).abs() <= 0.01;
            let all = tested.p_value >= 1e-3 && even && cv && rate;
            if all { Ok(()) } else { Err(format!("{threads} threads: {tested:?}, {sends:?}")) }
        });
    }
}

#[test]
fn users_are_split_and_make_as_many_requests_as_are_allowed() {
    let attended =
        Attendance { points: vec![(0.0, 9.0), (60.0, 9.0)], think: Law::Constant { mean_s: 0.001 } };
    for (arrivals, driver) in
        [(closed(9), Driver::Poll), (closed(9), Driver::Task), (Arrivals::Attended(attended), Driver::Poll)]
    {
        let some = Plan { requests: Some(1001), ..by(4, arrivals, 60_000) };
        let (summary, rows) =
            run_all(&some, &over(driver, echo()), &Progress::default(), &AtomicBool::new(false));
        assert_eq!((summary.sent, summary.count(Outcome::Answered), rows.len()), (1001, 1001, 1001));
        assert!(summary.max_in_flight <= 9 && summary.threads.iter().all(|one| one.sent > 0), "{summary:?}");
        let mut numbers: Vec<u64> = rows.iter().map(|row| row.index).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 1001, "each number once");
    }
}

/// Two processes that make the shares of a plan send what one process sends.
#[test]
fn the_shares_of_a_plan_add_up_to_it() {
    let workload = over(Driver::Poll, echo());
    let whole = by(1, Arrivals::poisson(1000.0), 300);
    let due = |plan: &Plan| {
        let (_, rows) = run_all(plan, &workload, &Progress::default(), &AtomicBool::new(false));
        rows.iter().map(|row| (row.index, row.scheduled)).collect::<BTreeMap<u64, i64>>()
    };
    let mut merged = BTreeMap::new();
    for share in Share::ALL.split(2) {
        merged.append(&mut due(&Plan { share, threads: 2, ..whole.clone() }));
    }
    assert_eq!(merged, due(&whole));
}

#[test]
fn all_threads_stop_when_the_load_is_cancelled_or_enough() {
    for enough in [false, true] {
        let (progress, cancel) = (Progress::default(), AtomicBool::new(false));
        let long = by(3, Arrivals::constant(600.0), 3_600_000);
        let workload = over(Driver::Poll, echo());
        let (summary, rows) = thread::scope(|scope| {
            let run = scope.spawn(|| run_all(&long, &workload, &progress, &cancel));
            while progress.sent.load(Ordering::Relaxed) < 60 {
                thread::yield_now();
            }
            if enough { &progress.enough } else { &cancel }.store(true, Ordering::Relaxed);
            run.join().unwrap()
        });
        assert_eq!(summary.sent, rows.len() as u64);
        assert!(summary.threads.iter().all(|one| one.sent > 0), "{summary:?}");
    }
}

#[test]
fn a_load_that_cannot_be_split_is_refused() {
    let workload = over(Driver::Poll, SocketAddr::from(([127, 0, 0, 1], 1)));
    let refused = |plan: Plan, workload: &dyn Workload| {
        let done = run(&plan, workload, &Progress::default(), &AtomicBool::new(false), |_| ());
        done.expect_err("it is refused")
    };
    let poisson = || by(4, Arrivals::poisson(10.0), 10);
    let few = refused(Plan { connections: 3, ..poisson() }, &workload);
    assert!(matches!(few, LoadError::ThreadsWithoutConnection { threads: 4, connections: 3 }), "{few}");
    let few = refused(by(4, closed(2), 10), &workload);
    assert!(matches!(few, LoadError::ThreadsWithoutUser { threads: 4, users: 2 }), "{few}");
    let one = refused(Plan { core: Some(0), ..poisson() }, &workload);
    assert!(matches!(one, LoadError::ThreadsOnOneCore { .. }), "{one}");
    let sessions = refused(poisson(), &OverSessions(workload));
    assert!(matches!(sessions, LoadError::SessionsOnThreads), "{sessions}");
}

/// A workload over sessions that are never opened.
struct OverSessions(Echo);

impl Workload for OverSessions {
    fn request(&self, index: u64) -> Request {
        self.0.request(index)
    }

    fn classes(&self) -> Vec<RequestClass> {
        self.0.classes()
    }

    fn route(&self) -> Route<'_> {
        Route::Sessions(self.0.address, ConnectionKind::TCP, self)
    }
}

impl Sessions for OverSessions {
    fn users(&self) -> u32 {
        1
    }

    fn sender(&self, _: u64) -> u32 {
        0
    }

    fn message(&self, index: u64, _: u32) -> SessionRequest {
        SessionRequest { key: index, bytes: Bytes::new() }
    }

    fn session(&self, _: u32) -> Box<dyn Session> {
        unreachable!("the load is refused")
    }
}
