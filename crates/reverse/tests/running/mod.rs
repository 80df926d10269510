//! A server of this process on a free port, shut down when the test is over.
#![allow(dead_code, reason = "each test uses its share")]

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use kendall_digest::Engine;
use kendall_reverse::{Config, Execution, Options, Reverse, bind};
use kendall_service::{Handle, ServiceError};

use crate::peer::LIMIT;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle<Reverse>,
    thread: Option<JoinHandle<Result<(), ServiceError>>>,
}

/// Two threads, everything else by default.
pub(crate) fn options() -> Options {
    let options = Options::new("127.0.0.1:0".parse().unwrap(), Engine::Portable);
    Options { service: Config { workers: NonZeroUsize::new(2).unwrap(), ..options.service }, ..options }
}

/// One thread, so that the order of service shows.
pub(crate) fn one_worker() -> Options {
    with(options(), |config| config.workers = NonZeroUsize::MIN)
}

/// The options with a change to what any server is told.
pub(crate) fn with(mut options: Options, change: impl FnOnce(&mut Config)) -> Options {
    change(&mut options.service);
    options
}

/// Every way to lay searches on threads, on two.
pub(crate) fn on_threads() -> [Options; 3] {
    [Execution::Sequential, Execution::ThreadPool, Execution::SharedChunks]
        .map(|execution| Options { execution, ..options() })
}

impl Running {
    pub(crate) fn new(options: Options) -> Self {
        let server = bind(options).unwrap();
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
