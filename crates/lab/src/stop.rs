//! When a trial ends before its schedule does: once it is as precise as asked, or once it can no longer meet what is expected of it.
//!
//! The number of requests and the duration belong to the schedule ([`kendall_load::Plan`]); with them these are all of the rule.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_evidence::expect::{Expectation, Measure};
use kendall_evidence::streamed::{Precision, Stream};
use kendall_load::Progress;
use kendall_record::RequestRow;

use crate::hopeless;

/// How often the precision that is reached so far is checked.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// A run does not end as precise before it has this many requests: an interval of few batches is narrow by chance now and then.
const LEAST_REQUESTS: u64 = 1000;

/// How precise one trial is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialPrecision {
    /// Half the 95 % interval over the value.
    pub relative: f64,
    /// Of what.
    pub of: Measure,
}

/// When a trial ends before its schedule does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StopRule<'a> {
    /// It is precise enough; the trial's statistics must then be streamed.
    pub(crate) precision: Option<TrialPrecision>,
    /// These can no longer be met.
    pub(crate) expected: &'a [Expectation],
    /// The longest that the warm-up may be.
    pub(crate) warmup: Duration,
    /// How long the trial is to take, as far as that is known.
    pub(crate) length: Duration,
}

impl StopRule<'_> {
    /// Begins to watch a trial: `stop` is set where it is hopeless.
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
    /// Takes a request that has ended.
    pub(crate) fn take(&mut self, row: &RequestRow) {
        self.hopeless.see(row);
    }

    /// Checks the statistics so far, and asks for the end of the run once they are precise enough.
    pub(crate) fn check(&mut self, stream: &Stream) {
        if self.precision.as_mut().is_some_and(|watch| watch.is_reached(stream)) {
            self.progress.enough.store(true, Ordering::Relaxed);
        }
    }

    /// Why the trial was stopped as hopeless, if it was.
    pub(crate) fn hopeless(self) -> Option<String> {
        self.hopeless.why()
    }
}

/// Checks whether a run is precise enough.
struct PrecisionWatch {
    wanted: TrialPrecision,
    checked: Instant,
    /// How many requests there were when it was precise enough at the last check.
    before: Option<u64>,
}

impl PrecisionWatch {
    fn new(wanted: TrialPrecision) -> Self {
        Self { wanted, checked: Instant::now(), before: None }
    }

    /// Whether it was precise enough at two checks with a tenth more requests between: an interval that is narrow by chance at
    /// one check would otherwise end the run, and hold less often than it says.
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
