//! The progress of a run, for watchers on other threads. Watching costs the generator a few stores per request, and the
//! generator never waits for a watcher. Each thread publishes its counts about every 20 ms.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;
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
    /// Response times in nanoseconds that the threads of the generator have published, by the thread's number; empty after a
    /// watcher took them.
    published: Mutex<BTreeMap<u32, Histogram<u64>>>,
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
        let published =
            mem::take(&mut *self.published.lock().expect("no thread panics while it holds the lock"));
        published.into_values().reduce(|mut all, one| {
            all.add(one).expect("both grow and have two digits");
            all
        })
    }
}

/// The counts of one thread.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) outcomes: [u64; 5],
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
}

/// What a thread of the generator has not published yet.
pub(crate) struct Recent {
    thread: u32,
    published: Counts,
    responses: Histogram<u64>,
}

impl Recent {
    /// Of the thread with this number.
    pub(crate) fn new(thread: u32) -> Self {
        Self { thread, published: Counts::default(), responses: histogram() }
    }

    pub(crate) fn add(&mut self, response_ns: i64) {
        record(&mut self.responses, response_ns);
    }

    /// Publishes the counts, and the response times if a watcher has taken those published before. Otherwise they stay here:
    /// none is lost, and memory does not grow, because a histogram is as large as its largest value requires.
    pub(crate) fn publish(&mut self, counts: Counts, progress: &Progress) {
        self.count(counts, progress);
        if let Ok(mut published) = progress.published.try_lock()
            && let Entry::Vacant(place) = published.entry(self.thread)
        {
            place.insert(mem::replace(&mut self.responses, histogram()));
        }
    }

    /// Adds what has changed. The counts of all threads add up, so a thread adds a negative change by wrapping around.
    fn count(&mut self, counts: Counts, progress: &Progress) {
        let before = mem::replace(&mut self.published, counts);
        let add = |to: &AtomicU64, now: u64, before: u64| {
            if now != before {
                to.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            }
        };
        add(&progress.sent, counts.sent, before.sent);
        let ended = |counts: &Counts| counts.outcomes.iter().sum();
        add(&progress.ended, ended(&counts), ended(&before));
        for (outcome, to) in progress.outcomes.iter().enumerate() {
            add(to, counts.outcomes[outcome], before.outcomes[outcome]);
        }
        add(&progress.in_flight, counts.in_flight, before.in_flight);
        add(&progress.waiting, counts.waiting, before.waiting);
    }

    /// Publishes the rest when the run is over, together with those not yet taken.
    pub(crate) fn publish_last(&mut self, counts: Counts, progress: &Progress) {
        self.count(counts, progress);
        let mut published = progress.published.lock().expect("no thread panics while it holds the lock");
        let published = published.entry(self.thread).or_insert_with(histogram);
        published.add(&self.responses).expect("both grow and have two digits");
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(2).expect("two digits are allowed")
}
