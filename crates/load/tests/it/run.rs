//! Whole runs with small servers that answer, refuse, reset, hang, lie and die, over both drivers.

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::echo::{Driver, Echo, echo, over, plan, rows, run_all, server};
use bytes::Bytes;
use kendall_load::{
    Connect, Connection, LocalFuture, Plan, Progress, Request, RequestClass, Reuse, Route, Workload,
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
    wrong_refused_and_reset_requests_are_told_apart,
    nobody_listening_is_refused_and_not_an_error,
    a_request_that_takes_too_long_is_given_up_and_one_still_out_at_the_end_is_unanswered,
    a_connection_that_the_server_closed_while_it_was_idle_carries_no_request,
    a_server_that_dies_in_the_middle_loses_no_request_from_the_books,
    cancelling_stops_at_once_and_keeps_the_books,
    the_thread_has_its_old_priority_back_after_a_run,
    users_who_do_not_think_pause_before_they_ask_a_dead_port_again,
);

fn every_request_to_a_good_server_is_answered_and_stamped_in_order(driver: Driver) {
    for reuse in [Reuse::Keep, Reuse::Close] {
        let workload = Echo { reuse, ..over(driver, echo()) };
        // However long the machine stalls, all are answered in the end.
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

fn a_connection_that_the_server_closed_while_it_was_idle_carries_no_request(driver: Driver) {
    let address = server(|stream, index| {
        stream.write_all(&index.to_be_bytes())?;
        Err(io::ErrorKind::BrokenPipe.into())
    });
    let (_, summary) = rows(&plan(Arrivals::constant(50.0), 1000), &over(driver, address));
    // A stalled machine may make an end and the next request cross.
    assert!(summary.count(Outcome::Refused) <= summary.sent / 10, "{:?} of {}", summary.ended, summary.sent);
    assert!(
        summary.connections_opened >= summary.sent * 9 / 10,
        "{} connections",
        summary.connections_opened
    );
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

fn the_thread_has_its_old_priority_back_after_a_run(driver: Driver) {
    let nice = || getpriority_process(None).unwrap();
    let before = nice();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let one = Plan { requests: Some(1), ..plan(Arrivals::constant(1000.0), 100) };
    let workload = NiceSeen { echo: over(driver, address), nice: AtomicI32::new(i32::MAX) };
    run_all(&one, &workload, &Progress::default(), &AtomicBool::new(false));
    let during = workload.nice.into_inner();
    // It is lower during the run if that is permitted.
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
    // Each of the two sends at 0 ms, and then at most once in each of the 500 ms.
    assert!((3..=1000).contains(&rows.len()), "{}", rows.len());
}

/// Fails to connect because there is no port left, but only finds that out when the run is cancelled.
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
