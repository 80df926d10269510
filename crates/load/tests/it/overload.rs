//! Overloaded servers: no request is lost, and every wait is counted.

use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use crate::echo::{Driver, over, plan, rows, server};
use kendall_load::Plan;
use kendall_record::Outcome;
use kendall_station::Arrivals;

/// Twice the capacity of the server, over at most 20 connections: there are never more, and the queue is in
/// the generator.
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
        // The remaining requests drain at the speed of the server, and the run waits as long as answers come.
        assert_eq!(summary.count(Outcome::Answered), summary.sent);
        assert_eq!((summary.connections_opened, summary.max_in_flight), (20, 20));
        assert!(summary.waited_for_connection > summary.sent / 3, "{summary:?}");
        assert!(summary.wait_for_connection.p99_ns > 100_000_000, "{summary:?}");
        // The generator itself is on time, whatever the server does.
        assert!(summary.lag.p99_ns < summary.wait_for_connection.p50_ns, "{summary:?}");
    }
    assert_eq!(most.load(Ordering::Relaxed), 20, "the server had this many at once");
}
