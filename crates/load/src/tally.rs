//! Counters of a thread during a run, in constant memory.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kendall_record::Outcome;

use crate::part::{RunPart, Times};
use crate::schedule::Due;
use crate::sends::Meter;
use crate::summary::{Little, ThreadUse};

/// Counters during a run. All instants are in nanoseconds since its start.
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) ended: [u64; 5],
    statuses: BTreeMap<u16, u64>,
    pub(crate) waited_for_connection: u64,
    pub(crate) turned_away: u64,
    pub(crate) connections_opened: u64,
    pub(crate) own_failures: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) last_due_ns: i64,
    pub(crate) refused_because: Option<String>,
    pub(crate) sends: Meter,
    lag: Histogram<u64>,
    send_lag: Histogram<u64>,
    wait: Histogram<u64>,
    response: Histogram<u64>,
    /// Response times minus the send lag of their requests.
    punctual: Histogram<u64>,
    in_system: InSystem,
    /// From due to end, of all requests.
    responses_ns: i128,
}

/// The number of requests that are due and have not ended, integrated over time.
#[derive(Default)]
struct InSystem {
    now: i64,
    at_ns: i64,
    area_ns: i128,
}

impl InSystem {
    /// Instants need not be in order: an excess from a later one is compensated by an earlier one.
    fn change(&mut self, by: i64, at_ns: i64) {
        self.area_ns += i128::from(self.now) * i128::from(at_ns - self.at_ns);
        self.at_ns = at_ns;
        self.now += by;
    }
}

/// The books of one thread after its run.
pub(crate) struct ClosedLedger {
    pub(crate) part: RunPart,
    pub(crate) sends: Meter,
}

/// The time of a run, and its cost.
pub(crate) struct Span {
    pub(crate) start_ns: i64,
    /// The end of the span, in nanoseconds since the start.
    pub(crate) end_ns: i64,
    pub(crate) cpu_s: f64,
    pub(crate) thread: ThreadUse,
}

impl Tally {
    pub(crate) fn new(seed: u64) -> Self {
        let histogram = || Histogram::new(3).expect("three digits are allowed");
        Self {
            sent: 0,
            ended: [0; 5],
            statuses: BTreeMap::new(),
            waited_for_connection: 0,
            turned_away: 0,
            connections_opened: 0,
            own_failures: 0,
            max_in_flight: 0,
            last_due_ns: 0,
            refused_because: None,
            sends: Meter::new(seed),
            lag: histogram(),
            send_lag: histogram(),
            wait: histogram(),
            response: histogram(),
            punctual: histogram(),
            in_system: InSystem::default(),
            responses_ns: 0,
        }
    }

    pub(crate) fn due(&mut self, at_ns: i64) {
        self.sent += 1;
        self.last_due_ns = at_ns;
        self.sends.due(at_ns);
        self.in_system.change(1, at_ns);
    }

    /// Records a request that was begun this late, and did not wait for a connection.
    pub(crate) fn lag(&mut self, lag_ns: i64) {
        record(&mut self.lag, lag_ns);
    }

    /// Records a request that was begun this late, because it waited for a connection.
    pub(crate) fn wait(&mut self, wait_ns: i64) {
        record(&mut self.wait, wait_ns);
    }

    /// Records a request that was passed to the kernel this late.
    pub(crate) fn send_lag(&mut self, lag_ns: i64) {
        record(&mut self.send_lag, lag_ns);
    }

    /// Records the end of a request that was due then. It has a response time if it has an answer.
    pub(crate) fn end(&mut self, outcome: Outcome, due: &Due, at_ns: i64, response_ns: Option<i64>) {
        self.ended[outcome as usize] += 1;
        self.in_system.change(-1, at_ns);
        self.responses_ns += i128::from(at_ns - due.at_ns);
        if let Some(response_ns) = response_ns {
            record(&mut self.response, response_ns);
            record(&mut self.punctual, response_ns - due.lag_ns);
        }
    }

    /// Records the status of a complete answer. A status has 16 bits, so the number of counters is bounded.
    pub(crate) fn status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// The time within which all but one answer in a hundred have come up to now, in nanoseconds.
    pub(crate) fn response_p99_ns(&self) -> u64 {
        self.response.value_at_quantile(0.99)
    }

    /// Ends the integral of the requests that are due and have not ended.
    pub(crate) fn end_at(&mut self, at_ns: i64) {
        self.in_system.change(0, at_ns);
    }

    /// Closes the books.
    pub(crate) fn close(self, span: Span) -> ClosedLedger {
        let part = RunPart {
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            cpu_s: span.cpu_s,
            thread: span.thread,
            threads: Vec::new(),
            sent: self.sent,
            ended: self.ended,
            statuses: self.statuses,
            waited_for_connection: self.waited_for_connection,
            turned_away: self.turned_away,
            connections_opened: self.connections_opened,
            own_failures: self.own_failures,
            max_in_flight: self.max_in_flight,
            last_due_ns: self.last_due_ns,
            refused_because: self.refused_because,
            times: Times {
                lag: self.lag,
                send_lag: self.send_lag,
                wait: self.wait,
                response: self.response,
                punctual: self.punctual,
            },
            little: Little {
                in_system_s: self.in_system.area_ns as f64 / 1e9,
                responses_s: self.responses_ns as f64 / 1e9,
            },
        };
        ClosedLedger { part, sends: self.sends }
    }
}

/// Longer times than a day are counted as a day, so that a histogram cannot grow without bound.
pub(crate) fn record(histogram: &mut Histogram<u64>, ns: i64) {
    const DAY_NS: i64 = 86_400_000_000_000;
    histogram.record(ns.clamp(0, DAY_NS) as u64).expect("a histogram that grows takes every value");
}
