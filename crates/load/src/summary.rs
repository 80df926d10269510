//! What a run says of itself, and every reason to doubt it.

use std::fmt;

use kendall_record::Outcome;
use serde::{Deserialize, Serialize};

use crate::plan::Timing;
use crate::sends::Sends;

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
    /// How late requests were handed to the kernel, any wait for a connection and its opening included.
    #[serde(default)]
    pub send_lag: Lag,
    /// How many requests had to wait for a free connection, begun in the end or not.
    pub waited_for_connection: u64,
    /// How long those that were begun in the end had waited.
    #[serde(default)]
    pub wait_for_connection: Lag,
    /// How many connections were opened.
    #[serde(default)]
    pub connections_opened: u64,
    /// How many connections failed for want of ports or files on this side.
    pub own_failures: u64,
    /// Why the first request that was refused was, if any was and the reason is known.
    #[serde(default)]
    pub refused_because: Option<String>,
    /// The most requests that were out at once.
    pub max_in_flight: u64,
    /// The sends: their rate and how regular they were.
    #[serde(default)]
    pub sends: Sends,
    /// Both sides of Little's law.
    #[serde(default)]
    pub little: Little,
    /// CPU time of the generator's thread, in seconds.
    pub generator_cpu_s: f64,
    /// How the generator's thread fared otherwise.
    #[serde(default)]
    pub thread: ThreadUse,
    /// Why the measurement is to be doubted; empty if it is not.
    pub doubts: Vec<Doubt>,
}

/// Both sides of Little's law, L = λW, times the length of the run. They are kept apart: a request that is lost
/// from the books, or ends twice, makes them differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// The number of requests that were due and had not ended, integrated over time, in request-seconds.
    pub in_system_s: f64,
    /// The sum over all requests of the time from the instant it was due until it ended, in seconds.
    pub responses_s: f64,
}

/// How the generator's thread was run, and what it met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// How it waited for the next send.
    pub timing: Timing,
    /// What it had of the scheduler.
    pub priority: Priority,
    /// The one core that it was kept on, if it was.
    pub core: Option<u32>,
    /// Who says when an answer was there.
    pub stamped_by: StampedBy,
    /// How long it was ready to run and another thread had its core, in seconds; `None` where the kernel keeps no
    /// such account.
    pub run_queue_s: Option<f64>,
    /// How often it went to sleep.
    pub voluntary_switches: Option<u64>,
    /// How often its core was taken from it.
    pub involuntary_switches: Option<u64>,
}

/// What the generator's thread has of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// No more than others.
    #[default]
    Usual,
    /// It goes before others of the usual kind: nice -20.
    BeforeOthers,
    /// It goes before all others: SCHED_FIFO.
    RealTime,
}

/// Who says when an answer was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampedBy {
    /// The generator, by its clock, once it has been woken and has read the answer.
    #[default]
    Generator,
    /// The kernel, as it received the packet. The generator's own waking is not in it.
    Kernel,
}

/// How late something was, in nanoseconds; 0 where nothing was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// The median.
    pub p50_ns: u64,
    /// 99 % were at most this late.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// A reason to doubt a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Requests were begun late, by so much that it shows in the response times.
    Late {
        /// 99 % of the requests were at most this late.
        lag_p99_ns: u64,
        /// Its share of the mean, the median or the 99th percentile of the response times, whichever is largest.
        #[serde(default)]
        share: f64,
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

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        match *self {
            Self::Late { lag_p99_ns, share } => write!(
                f,
                "sent late: 1 % by over {:.2} ms, which is up to {:.0} % of the response times",
                ms(lag_p99_ns),
                share * 100.0
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

impl RunSummary {
    /// How many requests ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }

    /// CPU time of the generator's thread for each request that was due, in seconds.
    pub fn cpu_per_request_s(&self) -> f64 {
        self.generator_cpu_s / self.sent.max(1) as f64
    }

    /// The share of one core that the generator's thread used.
    pub fn core_share(&self) -> f64 {
        self.generator_cpu_s / self.wall_s.max(1e-9)
    }
}
