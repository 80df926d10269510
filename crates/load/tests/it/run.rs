//! Whole runs against small servers that answer, refuse, reset, hang, lie and die, over both drivers.

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::echo::{Driver, Echo, echo, over, plan, rows, run_all, server};
use bytes::Bytes;
use kendall_load::{
    Connect, Connection, LocalFuture, Plan, Progress, Request, RequestClass, Reuse, Route, RowBatches,
    Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};
use rustix::io::Errno;
use rustix::process::getpriority_process;

/// Each test, with each driver.
macro_rules! over_both {
    ($($test:ident),* $(,)?) => {
        mod poll {
            $(#[test]
            fn $test() {
                super::$test(super::Driver::Poll);
            })*
        }
        mod task {
            $(#[test]
            fn $test() {
                super::$test(super::Driver::Task);
            })*
        }
    };
}

over_both!(
    every_request_to_a_good_server_is_answered_and_stamped_in_order,
    the_schedule_depends_on_nothing_but_the_seed,
    wrong_refused_and_reset_requests_are_told_apart,
    nobody_listening_is_refused_and_not_an_error,
    a_request_that_takes_too_long_is_given_up_and_one_still_out_at_the_end_is_unanswered,
    a_server_that_dies_in_the_middle_loses_no_request_from_the_books,
    without_a_free_connection_a_request_waits_and_the_wait_is_counted,
    a_closed_population_never_has_more_out_than_users,
    cancelling_stops_at_once_and_keeps_the_books,
    a_stall_of_the_server_is_seen_whole,
    the_thread_has_its_old_priority_back_after_a_run,
    users_who_do_not_think_pause_before_they_ask_a_dead_port_again,
    there_is_an_end_to_how_many_wait_for_a_connection,
    the_books_obey_littles_law,
);

fn every_request_to_a_good_server_is_answered_and_stamped_in_order(driver: Driver) {
    for reuse in [Reuse::Keep, Reuse::Close] {
        let workload = Echo { reuse, ..over(driver, echo()) };
        // However long the machine stands still, all are answered in the end.
        let patient = Plan { drain: Duration::from_secs(20), ..plan(Arrivals::poisson(2000.0), 500) };
        let (rows, summary) = rows(&patient, &workload);
        assert_eq!(summary.count(Outcome::Answered), summary.sent);
        let mut lags: Vec<i64> = rows.iter().filter_map(RequestRow::send_lag_ns).collect();
        lags.sort_unstable();
        // Each is sent after it was begun. The summary's quantiles have three digits.
        let (begun, sent) = (summary.lag.p50_ns as f64, lags[lags.len() / 2] as f64);
        assert!(begun > 0.0 && begun <= sent * 1.01 + 1.0, "begun {begun} ns late, sent {sent} ns late");
        for row in &rows {
            let stamps = [Some(row.scheduled), row.sent, row.first_byte, row.completed];
            assert!(stamps.is_sorted() && stamps[3].is_some(), "{row:?}");
            assert_eq!((row.bytes_out, row.bytes_in), (8, 8));
            assert_ne!(row.port, 0);
        }
    }
}

fn the_schedule_depends_on_nothing_but_the_seed(driver: Driver) {
    let due = |plan: &Plan, workload: &Echo| -> Vec<i64> {
        rows(plan, workload).0.iter().map(|row| row.scheduled).collect()
    };
    let plan = plan(Arrivals::poisson(1000.0), 300);
    let slow = server(|stream, index| {
        thread::sleep(Duration::from_millis(20));
        stream.write_all(&index.to_be_bytes())
    });
    let first = due(&plan, &over(driver, echo()));
    assert_eq!(first, due(&plan, &over(driver, slow)));
    assert_ne!(first, due(&Plan { seed: 8, ..plan }, &over(driver, echo())));
}

fn wrong_refused_and_reset_requests_are_told_apart(driver: Driver) {
    let address = server(|stream, index| match index % 4 {
        0 => stream.write_all(&(index + 1).to_be_bytes()),
        1 => Err(io::ErrorKind::ConnectionReset.into()),
        2 => stream
            .write_all(&index.to_be_bytes()[..3])
            .and_then(|()| Err(io::ErrorKind::ConnectionReset.into())),
        _ => stream.write_all(&index.to_be_bytes()),
    });
    let (rows, _) = rows(&plan(Arrivals::constant(400.0), 500), &over(driver, address));
    for row in &rows {
        let expected = match row.index % 4 {
            0 => Outcome::Wrong,
            1 | 2 => Outcome::Refused,
            _ => Outcome::Answered,
        };
        assert_eq!(row.outcome, expected, "{row:?}");
    }
}

fn nobody_listening_is_refused_and_not_an_error(driver: Driver) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_, summary) = rows(&plan(Arrivals::constant(200.0), 200), &over(driver, address));
    assert_eq!(summary.count(Outcome::Refused), summary.sent);
}

fn a_request_that_takes_too_long_is_given_up_and_one_still_out_at_the_end_is_unanswered(driver: Driver) {
    let hangs = || server(|_, _| Ok(()));
    let impatient = Plan { timeout: Duration::from_millis(50), ..plan(Arrivals::constant(200.0), 200) };
    let (_, summary) = rows(&impatient, &over(driver, hangs()));
    assert_eq!(summary.count(Outcome::TimedOut), summary.sent);

    let (rows, summary) = rows(&plan(Arrivals::constant(200.0), 200), &over(driver, hangs()));
    assert_eq!(summary.count(Outcome::Unanswered), summary.sent);
    assert!(rows.iter().all(|row| row.sent.is_some() && row.completed.is_none()));
}

fn a_server_that_dies_in_the_middle_loses_no_request_from_the_books(driver: Driver) {
    let served = AtomicUsize::new(0);
    let address = server(move |stream, index| {
        if served.fetch_add(1, Ordering::Relaxed) < 50 {
            stream.write_all(&index.to_be_bytes())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    });
    let (_, summary) = rows(&plan(Arrivals::poisson(500.0), 400), &over(driver, address));
    assert_eq!(summary.count(Outcome::Answered), 50);
    assert_eq!(summary.count(Outcome::Refused), summary.sent - 50);
}

fn without_a_free_connection_a_request_waits_and_the_wait_is_counted(driver: Driver) {
    let address = server(|stream, index| {
        thread::sleep(Duration::from_millis(10));
        stream.write_all(&index.to_be_bytes())
    });
    let narrow =
        Plan { connections: 1, drain: Duration::from_secs(20), ..plan(Arrivals::constant(400.0), 250) };
    let (rows, summary) = rows(&narrow, &over(driver, address));
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    assert_eq!(summary.max_in_flight, 1);
    assert!(summary.waited_for_connection > summary.sent / 2);
    let last = rows.last().unwrap();
    // Four requests come in the time that one takes, so the last waits for about three quarters of them.
    assert!(last.response_ns().unwrap() > 10_000_000 * rows.len() as i64 / 2, "{last:?}");
}

fn a_closed_population_never_has_more_out_than_users(driver: Driver) {
    let address = server(|stream, index| {
        thread::sleep(Duration::from_millis(2));
        stream.write_all(&index.to_be_bytes())
    });
    let arrivals = Arrivals::Closed { population: 5, think: Law::Exponential { mean_s: 0.001 } };
    let (rows, summary) = rows(&plan(arrivals, 300), &over(driver, address));
    assert_eq!(summary.max_in_flight, 5);
    assert!(summary.sent > 50, "{}", summary.sent);
    let mut events: Vec<(i64, i64)> =
        rows.iter().flat_map(|row| [(row.scheduled, 1), (row.completed.unwrap(), -1)]).collect();
    events.sort_by_key(|&(at, change)| (at, change));
    let mut out = 0;
    assert!(events.iter().all(|(_, change)| {
        out += change;
        out <= 5
    }));
}

fn cancelling_stops_at_once_and_keeps_the_books(driver: Driver) {
    let address = server(|_, _| Ok(()));
    let cancel = Arc::new(AtomicBool::new(false));
    let later = cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        later.store(true, Ordering::Relaxed);
    });
    let long = plan(Arrivals::constant(100.0), 3_600_000);
    let (summary, rows) = run_all(&long, &over(driver, address), &Progress::default(), &cancel);
    let rows = rows.len() as u64;
    assert_eq!((summary.sent, summary.count(Outcome::Unanswered)), (rows, rows));
}

/// A server that stands still for about 400 ms under 500 requests a second: of a second's requests, 200 wait for
/// up to that long, evenly, so the 80th percentile of all is half of it. A tool that sends late would see none of
/// them. How long it stood still the server says itself, as sleep may last longer on a loaded machine.
fn a_stall_of_the_server_is_seen_whole(driver: Driver) {
    // Where the machine stands still, too, more of them wait.
    let mut shares = Vec::new();
    let mut runs = (0..5).map(|_| p80_of_a_stall(driver)).inspect(|share| shares.push(*share));
    assert!(runs.any(|share| (0.3..0.7).contains(&share)), "80 % wait for at most {shares:?} of it");
}

/// The 80th percentile of the response times as a share of the stall.
fn p80_of_a_stall(driver: Driver) -> f64 {
    let stall_ns = Arc::new(AtomicU64::new(0));
    let stalled_ns = stall_ns.clone();
    let address = server(move |stream, index| {
        if index == 200 {
            let before = Instant::now();
            thread::sleep(Duration::from_millis(400));
            stalled_ns.store(before.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        stream.write_all(&index.to_be_bytes())
    });
    let one = Plan { connections: 1, ..plan(Arrivals::constant(500.0), 1000) };
    let (rows, summary) = rows(&one, &over(driver, address));
    let mut responses: Vec<i64> = rows.iter().filter_map(RequestRow::response_ns).collect();
    assert_eq!(responses.len() as u64, summary.sent);
    responses.sort_unstable();
    let p80 = responses[responses.len() * 8 / 10] as f64;
    p80 / stall_ns.load(Ordering::Relaxed) as f64
}

fn the_thread_has_its_old_priority_back_after_a_run(driver: Driver) {
    let nice = || getpriority_process(None).unwrap();
    let before = nice();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let one = Plan { requests: Some(1), ..plan(Arrivals::constant(1000.0), 100) };
    let workload = NiceSeen { echo: over(driver, address), nice: AtomicI32::new(i32::MAX) };
    run_all(&one, &workload, &Progress::default(), &AtomicBool::new(false));
    let during = workload.nice.into_inner();
    // It is lower during the run where that is permitted.
    assert!(during <= before, "{during} instead of {before}");
    assert_eq!(nice(), before);
}

/// Reads the niceness of the thread that makes the requests.
struct NiceSeen {
    echo: Echo,
    nice: AtomicI32,
}

impl Workload for NiceSeen {
    fn request(&self, index: u64) -> Request {
        self.nice.store(getpriority_process(None).unwrap(), Ordering::Relaxed);
        self.echo.request(index)
    }

    fn classes(&self) -> Vec<RequestClass> {
        self.echo.classes()
    }

    fn route(&self) -> Route<'_> {
        self.echo.route()
    }
}

fn users_who_do_not_think_pause_before_they_ask_a_dead_port_again(driver: Driver) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let arrivals = Arrivals::Closed { population: 2, think: Law::Constant { mean_s: 0.0 } };
    let (rows, summary) = rows(&plan(arrivals, 500), &over(driver, address));
    assert_eq!(summary.count(Outcome::Refused), summary.sent);
    // Each of the two asks at 0 ms, and then at most once in each of the 500 ms.
    assert!((3..=1000).contains(&rows.len()), "{}", rows.len());
}

/// With all requests due at once, one goes out, a million wait, and the rest are given up.
fn there_is_an_end_to_how_many_wait_for_a_connection(driver: Driver) {
    const BEYOND: u64 = 9;
    let address = server(|_, _| Ok(()));
    let arrivals = Arrivals::Trace { instants_s: vec![0.0; 1_000_001 + BEYOND as usize].into() };
    let flood = Plan { connections: 1, drain: Duration::from_millis(1), ..plan(arrivals, 1000) };
    let never = AtomicBool::new(false);
    let count = |batches: RowBatches| batches.map(|batch| batch.len() as u64).sum::<u64>();
    let (summary, rows) = run(&flood, &over(driver, address), &Progress::default(), &never, count).unwrap();
    assert_eq!((summary.sent, summary.count(Outcome::Unanswered)), (rows, rows));
    assert_eq!((summary.waited_for_connection, summary.turned_away), (1_000_000, BEYOND));
}

/// Cannot connect for want of ports, but finds that out only when the run is cancelled.
struct NoPorts<'a>(&'a AtomicBool);

impl Workload for NoPorts<'_> {
    fn request(&self, _: u64) -> Request {
        Request::new(0, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Tasks(self)
    }
}

impl Connect for NoPorts<'_> {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(poll_fn(|_| match self.0.load(Ordering::Relaxed) {
            true => Poll::Ready(Err(Errno::ADDRNOTAVAIL.into())),
            false => Poll::Pending,
        }))
    }
}

#[test]
fn failures_of_this_side_count_to_the_very_end_of_a_run() {
    let cancel = AtomicBool::new(false);
    let workload = NoPorts(&cancel);
    let some = Plan { requests: Some(20), ..plan(Arrivals::constant(1000.0), 1000) };
    let progress = Progress::default();
    let (summary, rows) = thread::scope(|scope| {
        let run = scope.spawn(|| run_all(&some, &workload, &progress, &cancel));
        while progress.sent.load(Ordering::Relaxed) < 10 {
            thread::yield_now();
        }
        cancel.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    let rows = rows.len() as u64;
    assert!(rows >= 10);
    assert_eq!((summary.sent, summary.count(Outcome::Refused), summary.own_failures), (rows, rows, rows));
}

/// Little's law holds for the books of a drained run exactly: both sides are the same sum.
fn the_books_obey_littles_law(driver: Driver) {
    let patient = Plan { drain: Duration::from_secs(20), ..plan(Arrivals::poisson(1000.0), 500) };
    let (rows, summary) = rows(&patient, &over(driver, echo()));
    let mut events: Vec<(i64, f64)> =
        rows.iter().flat_map(|row| [(row.scheduled, 1.0), (row.completed.unwrap(), -1.0)]).collect();
    events.sort_by_key(|event| event.0);
    let (mut at, mut out, mut area) = (0, 0.0, 0.0);
    for (instant, change) in events {
        area += out * (instant - at) as f64;
        (at, out) = (instant, out + change);
    }
    let responses: i64 = rows.iter().filter_map(RequestRow::response_ns).sum();
    assert!((area / responses as f64 - 1.0).abs() < 1e-9);
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
}
