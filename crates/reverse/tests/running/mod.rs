//! A server of this process on a free port, shut down when the test is over.
#![allow(dead_code, reason = "each test uses its share")]

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use kendall_reverse::{Options, Reverse};
use kendall_service::{Handle, Server, ServiceError};

use crate::peer::LIMIT;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle<Reverse>,
    thread: Option<JoinHandle<Result<(), ServiceError>>>,
}

/// Two workers, everything else by default.
pub(crate) fn options() -> Options {
    Options { workers: NonZeroUsize::new(2).unwrap(), ..Options::new("127.0.0.1:0".parse().unwrap()) }
}

/// One worker, so that the order of service shows.
pub(crate) fn one_worker() -> Options {
    Options { workers: NonZeroUsize::MIN, ..options() }
}

impl Running {
    pub(crate) fn new(options: Options) -> Self {
        let server = Server::bind(options, Reverse::default()).unwrap();
        let (address, handle) = (server.local_addr(), server.handle());
        Self { address, handle, thread: Some(thread::spawn(move || server.run())) }
    }

    /// The value of one metric, named with its labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.handle.metrics_text();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map_or(0, |value| value.parse().unwrap())
    }

    pub(crate) fn requests(&self, outcome: &str) -> u64 {
        self.metric(&format!("kendall_requests_total{{outcome=\"{outcome}\"}}"))
    }

    pub(crate) fn closed(&self, reason: &str) -> u64 {
        self.metric(&format!("kendall_connections_closed_total{{reason=\"{reason}\"}}"))
    }

    pub(crate) fn busy(&self) -> u64 {
        self.metric("kendall_workers_busy")
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.metric("kendall_requests_waiting")
    }

    /// Requests received = requests ended + waiting + in service, and connections likewise, once all is at rest.
    pub(crate) fn check_conservation(&self) {
        wait_until("all is at rest", || self.waiting() + self.busy() == 0);
        let outcomes = ["answered", "queue-full", "shutdown", "cancelled", "crashed"];
        let ended: u64 = outcomes.iter().map(|outcome| self.requests(outcome)).sum();
        assert_eq!(self.metric("kendall_requests_received_total"), ended);
        let reasons = [
            "finished",
            "incomplete",
            "reset",
            "deadline",
            "malformed",
            "connection-limit",
            "descriptors",
            "shutdown",
        ];
        wait_until("connections are conserved", || {
            let closed: u64 = reasons.iter().map(|reason| self.closed(reason)).sum();
            let open = self.metric("kendall_connections_open");
            self.metric("kendall_connections_accepted_total") == closed + open
        });
    }

    /// Asks for shutdown and waits for it.
    pub(crate) fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.handle.shut_down();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.finish();
        }
    }
}

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        sleep(Duration::from_millis(2));
    }
}
