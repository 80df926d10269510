//! How far a run is, for whoever watches it from another thread. Watching costs the generator a few stores a
//! request, and it never waits for a watcher.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use kendall_record::Outcome;

use crate::tally::record;

/// How far a run is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that were due so far.
    pub sent: AtomicU64,
    /// Requests that have ended so far.
    pub ended: AtomicU64,
    /// How they ended, in the order of [`Outcome::ALL`].
    pub outcomes: [AtomicU64; 5],
    /// Requests that are on a connection now.
    pub in_flight: AtomicU64,
    /// Requests that wait for a connection now.
    pub waiting: AtomicU64,
    /// Set by a watcher who has seen enough: requests that are not due yet are not sent any more, and those that are out
    /// are waited for, as at the end of every run.
    pub enough: AtomicBool,
    /// Response times in nanoseconds that the generator has laid out to be taken; none since they were.
    laid_out: Mutex<Option<Histogram<u64>>>,
}

impl Progress {
    /// How many requests have ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// The response times, in nanoseconds to two digits, of the requests that were answered since the last call.
    /// The generator lays them out about every 100 ms, so `None` right after a call; who asks once a second gets
    /// those of about a second.
    pub fn take_responses(&self) -> Option<Histogram<u64>> {
        self.laid_out.lock().expect("nobody panics with it").take()
    }
}

/// What the generator has not laid out yet.
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

    /// Lays them out, if what was laid out before has been taken. Else they stay here, so nothing is lost, and
    /// nothing grows: a histogram is as large as its largest value asks for.
    pub(crate) fn lay_out(&mut self, progress: &Progress) {
        if let Ok(mut place) = progress.laid_out.try_lock()
            && place.is_none()
        {
            *place = Some(std::mem::replace(&mut self.responses, histogram()));
        }
    }

    /// Lays out all that is left when the run is over, beside what nobody has taken yet.
    pub(crate) fn lay_out_last(&mut self, progress: &Progress) {
        let mut place = progress.laid_out.lock().expect("nobody panics with it");
        let laid_out = place.get_or_insert_with(histogram);
        laid_out.add(&self.responses).expect("both grow and have two digits");
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(2).expect("two digits are allowed")
}
