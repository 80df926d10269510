//! The progress of a run, for watchers on other threads. Watching costs the generator a few stores per request, and the
//! generator never waits for a watcher.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use kendall_record::Outcome;

use crate::tally::record;

/// The progress of a run.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that were due up to now.
    pub sent: AtomicU64,
    /// Requests that have ended up to now.
    pub ended: AtomicU64,
    /// The counts of the requests by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [AtomicU64; 5],
    /// Requests that are on a connection now.
    pub in_flight: AtomicU64,
    /// Requests that wait for a connection now.
    pub waiting: AtomicU64,
    /// Set by a watcher to end the run early: no further request is sent, and the run waits for those in flight, as at
    /// the end of every run.
    pub enough: AtomicBool,
    /// Response times in nanoseconds that the generator has published; `None` after a watcher took them.
    published: Mutex<Option<Histogram<u64>>>,
}

impl Progress {
    /// The number of requests with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// The response times, in nanoseconds to two digits, of the requests that were answered since the last call.
    /// The generator publishes them about every 20 ms, so `None` right after a call; a caller that asks once a second
    /// gets those of about a second.
    pub fn take_responses(&self) -> Option<Histogram<u64>> {
        self.published.lock().expect("no thread panics while it holds the lock").take()
    }
}

/// Response times that the generator has not published yet.
pub(crate) struct Recent {
    responses: Histogram<u64>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { responses: histogram() }
    }

    pub(crate) fn add(&mut self, response_ns: i64) {
        record(&mut self.responses, response_ns);
    }

    /// Publishes them if a watcher has taken those published before. Otherwise they stay here: none is lost, and memory
    /// does not grow, because a histogram is as large as its largest value requires.
    pub(crate) fn publish(&mut self, progress: &Progress) {
        if let Ok(mut place) = progress.published.try_lock()
            && place.is_none()
        {
            *place = Some(std::mem::replace(&mut self.responses, histogram()));
        }
    }

    /// Publishes the rest when the run is over, together with those not yet taken.
    pub(crate) fn publish_last(&mut self, progress: &Progress) {
        let mut place = progress.published.lock().expect("no thread panics while it holds the lock");
        let published = place.get_or_insert_with(histogram);
        published.add(&self.responses).expect("both grow and have two digits");
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(2).expect("two digits are allowed")
}
