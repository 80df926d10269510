//! How the generator waits for the instants of its schedule.

use std::time::Duration;

use crate::echo::{Driver, echo, over, plan, rows};
use kendall_load::{Plan, Priority, StampedBy, Timing};
use kendall_record::Outcome;
use kendall_station::{Arrivals, Law};

/// A thread that is awake when a request is due sends it sooner than one that must be woken, by any clock and on any machine. The
/// rounds alternate, so that other load affects both. If one round in a hundred is disturbed, 6 of 7 fail with a probability of 0.2
/// %; if there were no difference, they would pass with one of 6 %.
#[test]
fn precise_is_sooner_than_asleep() {
    let address = echo();
    let lag = |timing| {
        let plan = Plan { timing, ..plan(Arrivals::constant(1000.0), 200) };
        let (_, summary) = rows(&plan, &over(Driver::Poll, address));
        assert_eq!(summary.count(Outcome::Answered), summary.sent);
        assert_eq!((summary.thread.timing, summary.thread.stamped_by), (timing, StampedBy::Kernel));
        summary.lag.p50_ns
    };
    let rounds: Vec<(u64, u64)> = (0..7).map(|_| (lag(Timing::Precise), lag(Timing::Sleep))).collect();
    assert!(rounds.iter().filter(|(precise, sleep)| precise < sleep).count() >= 6, "{rounds:?}");
}

/// Many instants at once, instants far apart, and a schedule that ends: every request that is due is sent, in order.
#[test]
fn every_instant_of_a_trace_wakes_the_generator() {
    let ms = [0.0, 0.0, 0.01, 0.02, 0.1, 30.0, 30.0, 30.14, 30.16, 90.0];
    let instants_s: Vec<f64> = ms.iter().map(|ms| ms / 1e3).collect();
    for timing in [Timing::Sleep, Timing::Precise] {
        let arrivals = Arrivals::Trace { instants_s: instants_s.clone().into() };
        let trace = Plan { timing, duration: None, ..plan(arrivals, 1000) };
        let (rows, summary) = rows(&trace, &over(Driver::Poll, echo()));
        assert_eq!((summary.sent, summary.count(Outcome::Answered)), (10, 10));
        assert!(rows.iter().all(|row| row.sent >= Some(row.scheduled)), "none too early");
        assert!(rows.is_sorted_by_key(|row| row.sent));
        assert_eq!(summary.sends.count, 10);
    }
}

#[test]
fn a_closed_population_uses_stamps_of_the_reader_and_no_real_time_priority() {
    let arrivals = Arrivals::Closed { population: 2, think: Law::Constant { mean_s: 0.001 } };
    let precise = Plan { timing: Timing::Precise, drain: Duration::from_secs(2), ..plan(arrivals, 100) };
    let (_, summary) = rows(&precise, &over(Driver::Poll, echo()));
    let thread = summary.thread;
    assert_eq!((thread.timing, thread.stamped_by), (Timing::Sleep, StampedBy::Generator));
    assert_ne!(thread.priority, Priority::RealTime);
}

/// At a rate without gaps between sends answers are still read: with one connection, whose answer must be read before the next
/// request can be sent, every request is answered.
#[test]
fn answers_are_read_where_sends_leave_no_time_for_it() {
    for timing in [Timing::Sleep, Timing::Precise] {
        for connections in [1, 50] {
            let flood = Plan {
                timing,
                connections,
                requests: Some(3_000),
                drain: Duration::from_secs(20),
                ..plan(Arrivals::constant(300_000.0), 1000)
            };
            let (_, summary) = rows(&flood, &over(Driver::Poll, echo()));
            assert_eq!((summary.sent, summary.count(Outcome::Answered)), (3_000, 3_000), "{timing:?}");
        }
    }
}
