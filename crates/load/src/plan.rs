//! What a run is to do.

use std::time::Duration;

use kendall_station::Arrivals;
use serde::{Deserialize, Serialize};

/// What a run is to do: when requests are due, when to stop, and how far to go for each.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When requests are due. A user of a closed population whose request got no answer thinks for at least 1 ms.
    pub arrivals: Arrivals,
    /// The seed of the arrivals; the workload has its own.
    pub seed: u64,
    /// No more requests than this.
    pub requests: Option<u64>,
    /// No request that would be due later than this after the start.
    pub duration: Option<Duration>,
    /// A request without a complete answer this long after it was begun is given up.
    pub timeout: Duration,
    /// After the last request, how long to wait at most for what is still out. It ends sooner once no answer has come
    /// for 2 s and for three times the 99th percentile of the response times.
    pub drain: Duration,
    /// No more connections than this at once, and at least 1; further requests wait for one.
    /// At most 1,000,000 wait; those beyond end unanswered at once.
    pub connections: u32,
    /// How the generator waits for the instant at which the next request is due.
    pub timing: Timing,
    /// The one core to run on. Without it, an isolated core if the kernel has one that this process may use; else the
    /// idlest one where it [goes first](Self::goes_first), which changes; else the scheduler chooses.
    pub core: Option<u32>,
    /// Whether the generator's thread goes before all others (`SCHED_FIFO`), where that is permitted.
    pub goes_first: bool,
}

/// How the generator waits for the instant at which the next request is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// It sleeps until then, and is late by as long as the kernel takes to wake it.
    #[default]
    Sleep,
    /// It sleeps until shortly before and spins for the rest. Costs up to a whole core, which the server should not
    /// need. Only where the instants are fixed in advance, and over the generator's own sockets.
    Precise,
}

impl Plan {
    /// A run of the given arrivals that lasts this long, with the usual limits: 30 s for a request, 10 s to
    /// drain, 1,000 connections. The generator goes first where the instants are fixed in advance: where answers decide
    /// when requests are due, nothing can be late, and a thread that is never idle must not go before all others.
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
        }
    }

    /// Whether requests are due at instants fixed in advance, which nobody's answer moves.
    pub(crate) fn is_fixed_in_advance(&self) -> bool {
        self.arrivals.instants(self.seed).is_some()
    }
}
