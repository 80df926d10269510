//! What a run says of itself, and every reason to doubt it.

use std::fmt;

use hdrhistogram::Histogram;
use kendall_record::Outcome;
use serde::{Deserialize, Serialize};

/// Lags below this are no reason for doubt, in nanoseconds.
const FINE_LAG_NS: u64 = 50_000;

/// What a run says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The instant to which the rows are relative, by [`kendall_record::clock::now_ns`].
    pub start_ns: i64,
    /// From the start until the last request was due or answered, drain included, in seconds.
    pub wall_s: f64,
    /// From the start until the last request was due, in seconds.
    pub sending_s: f64,
    /// Requests that were due.
    pub sent: u64,
    /// How they ended, in the order of [`Outcome::ALL`]. They add up to `sent`.
    pub ended: [u64; 5],
    /// How late requests with a free connection were begun: the generator's own delay.
    pub lag: Lag,
    /// How many requests had to wait for a free connection.
    pub waited_for_connection: u64,
    /// How many connections failed for want of ports or files on this side.
    pub own_failures: u64,
    /// The most requests that were out at once.
    pub max_in_flight: u64,
    /// CPU time of the generator's thread, in seconds.
    pub generator_cpu_s: f64,
    /// Why the measurement is to be doubted; empty if it is not.
    pub doubts: Vec<Doubt>,
}

/// How late requests were begun, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// The median.
    pub p50_ns: u64,
    /// All but one in a hundred were at most this late.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// A reason to doubt a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Requests were begun late: 99th percentile against the median response time, in nanoseconds.
    Late {
        /// 99 % of the requests were at most this late.
        lag_p99_ns: u64,
        /// The median response time.
        response_p50_ns: u64,
    },
    /// The generator's thread had hardly any time to spare.
    Busy {
        /// The share of one core that it used.
        core_share: f64,
    },
    /// Requests waited in the generator for a free connection.
    Connections {
        /// How many.
        waited: u64,
        /// Of how many.
        sent: u64,
    },
    /// So many requests waited for a connection that others were given up unsent.
    TurnedAway {
        /// How many were given up.
        count: u64,
    },
    /// Connections failed for want of ports or files on this side.
    OwnFailures {
        /// How many.
        count: u64,
    },
    /// Requests were still out when the trial ended.
    Unanswered {
        /// How many.
        count: u64,
    },
}

impl Doubt {
    /// Whether it is that requests were begun late.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Late { .. })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        match *self {
            Self::Late { lag_p99_ns, response_p50_ns } => write!(
                f,
                "sent late: 1 % by over {:.2} ms, beside a median response of {:.2} ms",
                ms(lag_p99_ns),
                ms(response_p50_ns)
            ),
            Self::Busy { core_share } => {
                write!(f, "the generator kept its core busy for {:.0} % of the time", core_share * 100.0)
            }
            Self::Connections { waited, sent } => {
                write!(
                    f,
                    "{waited} of {sent} requests waited for a free connection; allow more with connections"
                )
            }
            Self::TurnedAway { count } => {
                write!(
                    f,
                    "{count} requests were given up unsent, because too many waited for a connection already"
                )
            }
            Self::OwnFailures { count } => {
                write!(f, "{count} connections failed for want of ports or open files on this machine")
            }
            Self::Unanswered { count } => {
                write!(
                    f,
                    "{count} requests were still out at the end, so the longest response times are not known"
                )
            }
        }
    }
}

/// What is counted while a run goes on.
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) ended: [u64; 5],
    pub(crate) waited_for_connection: u64,
    pub(crate) turned_away: u64,
    pub(crate) own_failures: u64,
    pub(crate) max_in_flight: u64,
    lag: Histogram<u64>,
    response: Histogram<u64>,
}

/// When a run was, and what it cost.
pub(crate) struct Span {
    pub(crate) start_ns: i64,
    pub(crate) last_due_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) cpu_s: f64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let histogram = || Histogram::new(3).expect("three digits are allowed");
        Self {
            sent: 0,
            ended: [0; 5],
            waited_for_connection: 0,
            turned_away: 0,
            own_failures: 0,
            max_in_flight: 0,
            lag: histogram(),
            response: histogram(),
        }
    }

    pub(crate) fn end(&mut self, outcome: Outcome, response_ns: Option<i64>) {
        self.ended[outcome as usize] += 1;
        if let Some(response_ns) = response_ns {
            record(&mut self.response, response_ns);
        }
    }

    pub(crate) fn lag(&mut self, lag_ns: i64) {
        record(&mut self.lag, lag_ns);
    }

    pub(crate) fn summary(self, span: &Span) -> RunSummary {
        let lag = Lag {
            p50_ns: self.lag.value_at_quantile(0.5),
            p99_ns: self.lag.value_at_quantile(0.99),
            max_ns: self.lag.max(),
        };
        let wall_s = span.end_ns as f64 / 1e9;
        let response_p50_ns = self.response.value_at_quantile(0.5);
        let core_share = span.cpu_s / wall_s.max(1e-9);
        let unanswered = self.ended[Outcome::Unanswered as usize];
        let doubts = [
            (lag.p99_ns > FINE_LAG_NS.max(response_p50_ns / 20))
                .then_some(Doubt::Late { lag_p99_ns: lag.p99_ns, response_p50_ns }),
            (core_share > 0.8).then_some(Doubt::Busy { core_share }),
            (self.waited_for_connection > 0)
                .then_some(Doubt::Connections { waited: self.waited_for_connection, sent: self.sent }),
            (self.turned_away > 0).then_some(Doubt::TurnedAway { count: self.turned_away }),
            (self.own_failures > 0).then_some(Doubt::OwnFailures { count: self.own_failures }),
            (unanswered > 0).then_some(Doubt::Unanswered { count: unanswered }),
        ];
        RunSummary {
            start_ns: span.start_ns,
            wall_s,
            sending_s: span.last_due_ns as f64 / 1e9,
            sent: self.sent,
            ended: self.ended,
            lag,
            waited_for_connection: self.waited_for_connection,
            own_failures: self.own_failures,
            max_in_flight: self.max_in_flight,
            generator_cpu_s: span.cpu_s,
            doubts: doubts.into_iter().flatten().collect(),
        }
    }
}

/// Longer times than a day are counted as a day, so that a histogram cannot grow without bound.
fn record(histogram: &mut Histogram<u64>, ns: i64) {
    const DAY_NS: i64 = 86_400_000_000_000;
    histogram.record(ns.clamp(0, DAY_NS) as u64).expect("a histogram that grows takes every value");
}

impl RunSummary {
    /// How many requests ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }
}
