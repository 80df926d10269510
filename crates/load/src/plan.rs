//! The plan of a run.

use std::time::Duration;

use kendall_station::Arrivals;
use serde::{Deserialize, Serialize};

use crate::share::Share;

/// The plan of a run: when requests are due, when to stop, and the limits for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// When requests are due. A user of a closed population whose request got no answer thinks for at least 1 ms.
    pub arrivals: Arrivals,
    /// The seed of the arrivals; the workload has its own.
    pub seed: u64,
    /// The most requests.
    pub requests: Option<u64>,
    /// Requests that would be due later than this after the start are not sent.
    pub duration: Option<Duration>,
    /// A request without a complete answer this long after it was begun is abandoned.
    pub timeout: Duration,
    /// The longest time to wait for the requests in flight after the last one. The wait ends sooner once no answer has
    /// come for 2 s and for three times the 99th percentile of the response times.
    pub drain: Duration,
    /// The most connections at once, at least 1; further requests wait for one. At most 1,000,000 wait; those beyond
    /// end unanswered at once.
    pub connections: u32,
    /// How the generator waits for the instant at which the next request is due.
    pub timing: Timing,
    /// The only core to run on. By default, an isolated core if the kernel has one that this process may use; otherwise
    /// the idlest one if the thread [goes first](Self::goes_first), which changes; otherwise the scheduler chooses.
    pub core: Option<u32>,
    /// Whether the generator's thread has priority over all others (`SCHED_FIFO`), if that is permitted.
    pub goes_first: bool,
    /// The number of threads that send, at least 1. Each has its own sockets and timer, and makes a part of the share. They
    /// cannot be more than the connections or the users, nor more than one over the sessions of users.
    pub threads: u32,
    /// The part of the load that this process makes.
    pub share: Share,
    /// The instant to start at, by [`kendall_record::clock::now_ns`]; `None` for as soon as the generator is set up.
    pub start_ns: Option<i64>,
}

/// How the generator waits for the instant at which the next request is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// The generator sleeps until the due time, and is late by the time that the kernel takes to wake it.
    #[default]
    Sleep,
    /// The generator sleeps until shortly before the due time and spins for the rest. This uses up to a whole core,
    /// which the server should not need. It applies only if the instants are fixed in advance, and over the generator's
    /// own sockets.
    Precise,
}

impl Plan {
    /// A run of the given arrivals for this long, with the usual limits: 30 s for a request, 10 s to drain, 1,000
    /// connections. The generator goes first if the instants are fixed in advance: if answers decide when requests are
    /// due, no request can be late, and a thread that is never idle must not have priority over all others.
    pub fn lasting(arrivals: Arrivals, duration: Duration, seed: u64) -> Self {
        Self {
            goes_first: arrivals.instants(seed).is_some(),
            arrivals,
            seed,
            requests: None,
            duration: Some(duration),
            timeout: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            connections: 1000,
            timing: Timing::Sleep,
            core: None,
            threads: 1,
            share: Share::ALL,
            start_ns: None,
        }
    }

    /// Whether requests are due at instants fixed in advance, independent of any answer.
    pub(crate) fn is_fixed_in_advance(&self) -> bool {
        self.arrivals.instants(self.seed).is_some()
    }
}
