//! Servers that stand still or are asked for more than they can do: nothing is lost, and every wait is seen.

use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use crate::echo::{Driver, over, plan, rows, server};
use kendall_load::Plan;
use kendall_record::clock::now_ns;
use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;

/// A server that stands still for one of three seconds, under 1,000 requests a second over 50 connections, which are
/// all taken before long: most requests of that second wait in the generator. What each must wait is known from when
/// it was due and when the server went on. A tool that counts from the send sees 50 of these 1,000 waits.
#[test]
fn quantiles_of_a_stall_are_what_arithmetic_says() {
    // The machine may stand still, too, of which arithmetic knows nothing.
    let runs = (0..5).map(|_| farthest_quantile_of_a_stall());
    let mut off = Vec::new();
    assert!(runs.inspect(|run| off.push(*run)).any(|run| run < 0.03), "of the stall, in each run: {off:?}");
}

/// How far the farthest quantile is off what arithmetic says, as part of the stall.
fn farthest_quantile_of_a_stall() -> f64 {
    const STALL: Duration = Duration::from_secs(1);
    let (stands_ns, goes_on_ns) = (Arc::new(AtomicI64::new(i64::MAX)), Arc::new(AtomicI64::new(0)));
    let (stands, goes_on) = (stands_ns.clone(), goes_on_ns.clone());
    let gate = Mutex::new(());
    let address = server(move |stream, index| {
        let open = gate.lock().unwrap();
        if index == 1000 {
            stands.store(now_ns(), Ordering::Relaxed);
            thread::sleep(STALL);
            goes_on.store(now_ns(), Ordering::Relaxed);
        }
        drop(open);
        stream.write_all(&index.to_be_bytes())
    });
    let plan =
        Plan { connections: 50, drain: Duration::from_secs(10), ..plan(Arrivals::constant(1000.0), 3000) };
    let (rows, summary) = rows(&plan, &over(Driver::Poll, address));
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    let (stands_ns, goes_on_ns) = (stands_ns.load(Ordering::Relaxed), goes_on_ns.load(Ordering::Relaxed));
    let expected = |row: &RequestRow| {
        let due_ns = row.scheduled + summary.start_ns;
        let waits = (stands_ns..goes_on_ns).contains(&due_ns);
        if waits { goes_on_ns - due_ns } else { 0 }
    };
    let sorted = |mut all: Vec<i64>| {
        all.sort_unstable();
        all
    };
    let measured = sorted(rows.iter().filter_map(RequestRow::response_ns).collect());
    let expected = sorted(rows.iter().map(expected).collect());
    assert!(summary.waited_for_connection > 800 && summary.max_in_flight == 50, "{summary:?}");
    let apart = |p: f64| {
        let at = (p * rows.len() as f64) as usize;
        // Working off what has gathered takes the server a moment, which arithmetic leaves out.
        (measured[at] - expected[at]).abs() as f64 / (goes_on_ns - stands_ns) as f64
    };
    [0.75, 0.8, 0.9, 0.95, 0.99, 0.999].map(apart).into_iter().fold(0.0, f64::max)
}

/// Twice what the server can do, over at most 20 connections: there are never more, and the queue is in the
/// generator.
#[test]
fn twice_the_capacity_makes_no_storm_of_connections_and_loses_nothing() {
    let (open, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (open_now, most_ever) = (open.clone(), most.clone());
    let server_is_one = Mutex::new(());
    let address = server(move |stream, index| {
        let now = open_now.fetch_add(1, Ordering::Relaxed) + 1;
        most_ever.fetch_max(now, Ordering::Relaxed);
        let turn = server_is_one.lock().unwrap();
        thread::sleep(Duration::from_millis(2));
        drop(turn);
        open_now.fetch_sub(1, Ordering::Relaxed);
        stream.write_all(&index.to_be_bytes())
    });
    for driver in [Driver::Poll, Driver::Task] {
        let plan =
            Plan { connections: 20, drain: Duration::from_secs(20), ..plan(Arrivals::poisson(1000.0), 1000) };
        let (_, summary) = rows(&plan, &over(driver, address));
        // What is left drains as fast as the server works, and is waited for as long as answers come.
        assert_eq!(summary.count(Outcome::Answered), summary.sent);
        assert_eq!((summary.connections_opened, summary.max_in_flight), (20, 20));
        assert!(summary.waited_for_connection > summary.sent / 3, "{summary:?}");
        assert!(summary.wait_for_connection.p99_ns > 100_000_000, "{summary:?}");
        // The generator itself is on time, whatever the server does.
        assert!(summary.lag.p99_ns < summary.wait_for_connection.p50_ns, "{summary:?}");
    }
    assert_eq!(most.load(Ordering::Relaxed), 20, "the server saw so many at once");
}
