//! Stops trials that can no longer meet their expectations.
//!
//! A trial is hopeless once the whole interval of the measured value has been beyond the limit for a fifth of the trial's length,
//! and for at least a second. Requests of one trial depend on each other, so an interval that treats them as independent is too
//! narrow. The condition that it is beyond the limit at every check for that long makes up for this.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kendall_evidence::expect::{Expectation, Measure, Side};
use kendall_record::{Outcome, RequestRow};
use kendall_stats::share_interval;

/// How often the expectations are checked, in requests.
const EVERY: u64 = 50;
/// The least number of requests before the first check.
const FEWEST: u64 = 200;
/// The shortest time for which the limit must be exceeded.
const FOR_NS: i64 = 1_000_000_000;
/// The share of the trial.
const FOR_SHARE: f64 = 0.2;
/// How often the user's request to stop is polled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Watches the requests of a trial as they end.
pub(crate) struct Watch<'a> {
    watched: Vec<WatchedExpectation>,
    warmup_ns: i64,
    for_ns: i64,
    why: Option<String>,
    stop: &'a AtomicBool,
}

/// One expectation, and the requests of this trial that count towards it.
struct WatchedExpectation {
    expectation: Expectation,
    seen: u64,
    /// Requests beyond the limit: slower, or without a right answer.
    beyond: u64,
    /// Since when the limit has been exceeded without a break.
    since_ns: Option<i64>,
}

impl<'a> Watch<'a> {
    /// Watches a trial for these expectations and sets `stop` once the trial is hopeless. `length` is the expected length of the
    /// trial, as far as that is known.
    pub(crate) fn new(
        expected: &[Expectation],
        warmup: Duration,
        length: Duration,
        stop: &'a AtomicBool,
    ) -> Self {
        // Expectations that count single requests can be watched: quantiles and errors with an upper limit.
        let can_watch = |one: &&Expectation| {
            matches!(one.measure, Measure::Quantile(_) | Measure::Errors) && one.side == Side::Below
        };
        let watched = expected.iter().filter(can_watch).map(|&expectation| WatchedExpectation {
            expectation,
            seen: 0,
            beyond: 0,
            since_ns: None,
        });
        Self {
            watched: watched.collect(),
            warmup_ns: warmup.as_nanos() as i64,
            for_ns: FOR_NS.max((length.as_nanos() as f64 * FOR_SHARE) as i64),
            why: None,
            stop,
        }
    }

    /// Counts a request that has ended.
    pub(crate) fn see(&mut self, row: &RequestRow) {
        if row.scheduled < self.warmup_ns {
            return;
        }
        // A request that timed out ended then; an unanswered one ends with the trial, when it is too late to stop.
        let Some(now_ns) = row.completed else { return };
        for watched in &mut self.watched {
            watched.take(row);
            if watched.seen % EVERY == 0
                && watched.seen >= FEWEST
                && watched.is_beyond_for(now_ns) >= self.for_ns
            {
                self.why = Some(watched.words(now_ns));
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The reason why the trial was stopped, if it was.
    pub(crate) fn why(self) -> Option<String> {
        self.why
    }
}

impl WatchedExpectation {
    fn take(&mut self, row: &RequestRow) {
        self.seen += 1;
        let limit = self.expectation.limit;
        self.beyond += u64::from(match self.expectation.measure {
            Measure::Errors => row.outcome != Outcome::Answered,
            // A request without an answer took longer than any request with one.
            _ => row.response_ns().is_none_or(|ns| ns as f64 / 1e9 > limit),
        });
    }

    /// The share of requests that may be beyond the limit.
    fn allowed(&self) -> f64 {
        match self.expectation.measure {
            Measure::Quantile(p) => 1.0 - p,
            _ => self.expectation.limit,
        }
    }

    /// For how long the share of requests beyond the limit has been too high, with sampling error taken into account.
    fn is_beyond_for(&mut self, now_ns: i64) -> i64 {
        let (least, _) = share_interval(self.beyond, self.seen);
        if least <= self.allowed() {
            self.since_ns = None;
            return 0;
        }
        let since_ns = self.since_ns.unwrap_or(now_ns);
        self.since_ns = Some(since_ns);
        now_ns - since_ns
    }

    fn words(&self, now_ns: i64) -> String {
        let (expected, beyond, seen) = (self.expectation, self.beyond, self.seen);
        let what = if expected.measure == Measure::Errors { "had no right answer" } else { "took longer" };
        format!(
            "it was stopped after {:.1} s, for {expected} was out of reach: {beyond} of {seen} requests {what}",
            now_ns as f64 / 1e9
        )
    }
}

/// Does work that stops when either flag is set. A thread polls the first flag every 20 ms.
pub(crate) fn either<T>(user: &AtomicBool, own: &AtomicBool, work: impl FnOnce(&AtomicBool) -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let pass_on = || {
            while !over.load(Ordering::Relaxed) {
                if user.load(Ordering::Relaxed) {
                    own.store(true, Ordering::Relaxed);
                }
                thread::park_timeout(LOOK_EVERY);
            }
        };
        let passing_on = scope.spawn(pass_on);
        // The guard also works where the work panics: the scope waits for its threads.
        let _over = Over(&over, passing_on.thread().clone());
        work(own)
    })
}

/// Ends the polling thread.
struct Over<'a>(&'a AtomicBool, thread::Thread);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    fn watch<'a>(expectation: &str, stop: &'a AtomicBool) -> Watch<'a> {
        Watch::new(&[expectation.parse().unwrap()], Duration::ZERO, Duration::from_secs(10), stop)
    }

    fn row(at_s: f64, response_s: f64) -> RequestRow {
        let scheduled = (at_s * 1e9) as i64;
        RequestRow {
            bytes_out: 1,
            bytes_in: 1,
            ..RequestRow::due(0, scheduled)
                .sent_at(scheduled, 1)
                .ended(Outcome::Answered, scheduled + (response_s * 1e9) as i64)
        }
    }

    /// Exponential response times with mean 10 ms have a p99 of 46 ms.
    fn stopped_after(expectation: &str, seed: u64, slower_from_s: f64) -> Option<(f64, String)> {
        let stop = AtomicBool::new(false);
        let mut watch = watch(expectation, &stop);
        let (mut rng, law) = (stream(seed, Purpose::Trial, 0), Law::Exponential { mean_s: 0.010 });
        let after_s = (0..10_000).map(|i| f64::from(i) / 1000.0).find(|&at_s| {
            let factor = if at_s >= slower_from_s { 4.0 } else { 1.0 };
            watch.see(&row(at_s, factor * law.sample(&mut rng)));
            stop.load(Ordering::Relaxed)
        })?;
        Some((after_s, watch.why().expect("it says why")))
    }

    #[test]
    fn a_trial_that_meets_its_limit_is_never_stopped_and_one_that_cannot_is_soon() {
        for seed in 0..50 {
            // At the limit, the interval may lie beyond it at random, but not for long.
            assert_eq!(stopped_after("p99<47ms", seed, 99.0), None, "{seed}");
            let (after_s, _) = stopped_after("p99<20ms", seed, 99.0).expect("it is hopeless");
            assert!((2.0..3.0).contains(&after_s), "{after_s}");
        }
        // The response times grow in the middle of the trial.
        let (after_s, why) = stopped_after("p99<47ms", 1, 4.0).expect("it is hopeless");
        assert!((6.0..8.0).contains(&after_s), "{after_s}");
        assert!(why.contains("p99 < 47 ms was out of reach"), "{why}");
    }

    #[test]
    fn means_and_lower_limits_are_left_to_the_end() {
        assert_eq!(stopped_after("mean<1ms", 1, 99.0), None);
        assert_eq!(stopped_after("throughput>9000/s", 1, 99.0), None);
        assert_eq!(stopped_after("errors<1%", 1, 99.0), None);
    }

    #[test]
    fn either_flag_stops_the_work() {
        let wait = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let (user, own) = (AtomicBool::new(true), AtomicBool::new(false));
        either(&user, &own, wait);
        let (user, own) = (AtomicBool::new(false), AtomicBool::new(true));
        either(&user, &own, wait);
    }
}
