//! Ends a trial before its schedule does: once it is precise enough, or once it can no longer meet its expectations.
//!
//! The number of requests and the duration belong to the schedule ([`kendall_load::Plan`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_evidence::expect::{Expectation, Measure};
use kendall_evidence::streamed::{Precision, Stream};
use kendall_load::Progress;
use kendall_record::RequestRow;

use crate::hopeless;

/// The time between two checks of the precision.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// The least number of requests before a run counts as precise: with few batches, an interval is sometimes narrow at random.
const LEAST_REQUESTS: u64 = 1000;

/// The wanted precision of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialPrecision {
    /// Half the 95 % interval, divided by the value.
    pub relative: f64,
    /// The measure.
    pub of: Measure,
}

/// The rule by which a trial ends before its schedule does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StopRule<'a> {
    /// End once the trial is this precise; the trial's statistics must then be streamed.
    pub(crate) precision: Option<TrialPrecision>,
    /// End once one of these can no longer be met.
    pub(crate) expected: &'a [Expectation],
    /// The longest warm-up.
    pub(crate) warmup: Duration,
    /// The expected length of the trial, as far as it is known.
    pub(crate) length: Duration,
}

impl StopRule<'_> {
    /// Starts to watch a trial, and sets `stop` where the trial is hopeless.
    pub(crate) fn watch<'s>(&self, progress: &'s Progress, stop: &'s AtomicBool) -> StopWatch<'s> {
        StopWatch {
            hopeless: hopeless::Watch::new(self.expected, self.warmup, self.length, stop),
            precision: self.precision.map(PrecisionWatch::new),
            progress,
        }
    }
}

/// Watches the requests of a trial by a [`StopRule`].
pub(crate) struct StopWatch<'s> {
    hopeless: hopeless::Watch<'s>,
    precision: Option<PrecisionWatch>,
    progress: &'s Progress,
}

impl StopWatch<'_> {
    /// Counts a request that has ended.
    pub(crate) fn take(&mut self, row: &RequestRow) {
        self.hopeless.see(row);
    }

    /// Checks the statistics so far, and ends the run once they are precise enough.
    pub(crate) fn check(&mut self, stream: &Stream) {
        if self.precision.as_mut().is_some_and(|watch| watch.is_reached(stream)) {
            self.progress.enough.store(true, Ordering::Relaxed);
        }
    }

    /// The reason why the trial was stopped as hopeless, if it was.
    pub(crate) fn hopeless(self) -> Option<String> {
        self.hopeless.why()
    }
}

/// Checks whether a run is precise enough.
struct PrecisionWatch {
    wanted: TrialPrecision,
    checked: Instant,
    /// The number of requests at the last check, if the run was precise enough then.
    before: Option<u64>,
}

impl PrecisionWatch {
    fn new(wanted: TrialPrecision) -> Self {
        Self { wanted, checked: Instant::now(), before: None }
    }

    /// Whether the run was precise enough at two checks, with a tenth more requests between them. An interval that is narrow at
    /// random at one check would otherwise end the run, and such intervals cover the truth too rarely.
    fn is_reached(&mut self, stream: &Stream) -> bool {
        if self.checked.elapsed() < CHECK_EVERY {
            return false;
        }
        self.checked = Instant::now();
        let found = stream.precision(self.wanted.of);
        match found {
            Some(Precision { requests, relative })
                if relative <= self.wanted.relative && requests >= LEAST_REQUESTS =>
            {
                let before = *self.before.get_or_insert(requests);
                requests as f64 >= 1.1 * before as f64
            }
            _ => {
                self.before = None;
                false
            }
        }
    }
}
