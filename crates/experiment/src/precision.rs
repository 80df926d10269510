//! The wanted precision of an experiment.

use std::time::Duration;

use kendall_evidence::expect::Measure;

/// The wanted width of the intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Half the 95 % interval over trials must be at most this share of the value.
    pub relative: f64,
    /// The measure: the mean response time or one of its quantiles.
    pub of: Measure,
    /// The most blocks, however wide the intervals are.
    pub repeats_at_most: u32,
    /// No block starts later than this after the run was started or resumed.
    pub time_at_most: Option<Duration>,
}

impl Precision {
    /// The default of an experiment with a precision and no further settings.
    pub const RELATIVE: f64 = 0.05;
    /// See [`Self::repeats_at_most`].
    pub const REPEATS_AT_MOST: u32 = 30;
    /// The blocks before the first check of the intervals. With fewer blocks a lucky start would end the run too early: of
    /// standard deviations estimated from three trials, one in twenty is at random less than a quarter of the true one.
    pub const REPEATS_AT_LEAST: u32 = 6;
}
