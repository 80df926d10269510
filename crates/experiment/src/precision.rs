//! How precise an experiment is to be.

use std::time::Duration;

use kendall_evidence::expect::Measure;

/// What is asked of the intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Half the 95 % interval over trials is to be at most this share of the value.
    pub relative: f64,
    /// Of what: the mean response time or one of its quantiles.
    pub of: Measure,
    /// No more blocks than this, whatever the intervals are.
    pub repeats_at_most: u32,
    /// No block is begun later than this after the run was begun or resumed.
    pub time_at_most: Option<Duration>,
}

impl Precision {
    /// What an experiment has that asks for a precision and says no more.
    pub const RELATIVE: f64 = 0.05;
    /// See [`Self::repeats_at_most`].
    pub const REPEATS_AT_MOST: u32 = 30;
    /// The blocks that are run before any interval is looked at. With fewer a lucky start would end the run too early: a
    /// scatter that is estimated from three trials is by chance a quarter of the true one every twentieth time.
    pub const REPEATS_AT_LEAST: u32 = 6;
}
