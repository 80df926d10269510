//! A server in the test's own process.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use crate::waiting::wait_until;

/// A server on a thread of this process, shut down when this is dropped.
pub struct Running {
    /// The address that it listens on.
    pub address: SocketAddr,
    metrics_text: Box<dyn Fn() -> String + Send + Sync>,
    shut_down: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Runs a server that listens at an address. Its metrics are in the text format of OpenMetrics.
    pub fn new<E: Debug>(
        address: SocketAddr,
        metrics_text: impl Fn() -> String + Send + Sync + 'static,
        shut_down: impl Fn() + Send + Sync + 'static,
        run: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) -> Self {
        let thread = thread::spawn(move || run().expect("the server ends in order"));
        Self {
            address,
            metrics_text: Box::new(metrics_text),
            shut_down: Box::new(shut_down),
            thread: Some(thread),
        }
    }

    /// All metrics.
    pub fn metrics_text(&self) -> String {
        (self.metrics_text)()
    }

    /// The value of one metric, named with its labels and without the prefix `kendall_`; 0 where it is absent.
    ///
    /// # Panics
    /// Where it is not a whole number.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.metrics_text();
        let value =
            |line: &str| Some(line.strip_prefix("kendall_")?.strip_prefix(name)?.strip_prefix(' ')?.parse());
        text.lines().find_map(value).map_or(0, |value| value.expect("a whole number"))
    }

    /// The number of requests that ended with this outcome.
    pub fn requests(&self, outcome: &str) -> u64 {
        self.metric(&format!("requests_total{{outcome=\"{outcome}\"}}"))
    }

    /// The number of connections that were closed for this reason.
    pub fn closed(&self, reason: &str) -> u64 {
        self.metric(&format!("connections_closed_total{{reason=\"{reason}\"}}"))
    }

    /// The number of waiting requests, and of busy workers.
    pub fn levels(&self) -> (u64, u64) {
        (self.metric("requests_waiting"), self.metric("workers_busy"))
    }

    /// Waits until the server is idle, and checks that requests received = requests ended, and connections accepted = connections
    /// closed + open.
    ///
    /// # Panics
    /// Where the equations do not hold.
    pub fn check_conservation(&self) {
        wait_until("all is at rest", || self.levels() == (0, 0));
        let ended = || self.sum("requests_total{");
        assert_eq!(self.metric("requests_received_total"), ended());
        wait_until("connections are conserved", || {
            let open = self.metric("connections_open");
            self.metric("connections_accepted_total") == self.sum("connections_closed_total{") + open
        });
    }

    /// The sum over all labels.
    fn sum(&self, name: &str) -> u64 {
        let text = self.metrics_text();
        let lines = text
            .lines()
            .filter(|line| line.strip_prefix("kendall_").is_some_and(|line| line.starts_with(name)));
        lines
            .map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a whole number"))
            .sum()
    }

    /// Requests shutdown without waiting for it.
    pub fn shut_down(&self) {
        (self.shut_down)();
    }

    /// Requests shutdown and waits for it; returns the final metrics.
    ///
    /// # Panics
    /// Where the server has failed.
    pub fn stop(mut self) -> String {
        self.finish();
        self.metrics_text()
    }

    fn finish(&mut self) {
        self.shut_down();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server failed");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a failure the server may be unable to end, because its test's own gate is closed.
        if !thread::panicking() {
            self.finish();
        }
    }
}
