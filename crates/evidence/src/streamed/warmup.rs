//! The end of the warm-up.

use serde::{Deserialize, Serialize};

use super::series::Bins;
use crate::seconds::seconds;
use kendall_stats::mser;

/// Values to a batch, by Spratt (1998).
const BATCH: usize = 5;

/// The choice of the requests to leave out at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// The warm-up lasts until this instant, in nanoseconds since the start.
    Until(i64),
    /// The warm-up is as long as [`suggested`](WarmupSeen::suggested_s).
    Auto,
}

/// The warm-up that was left out, and the one that the data suggest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmupSeen {
    /// Requests due before this were left out, in seconds since the start.
    pub used_s: f64,
    /// The end of the warm-up by MSER-5, in seconds since the start: the later of its cuts of response time and of throughput. `None`
    /// if the run is too short, because no part of it is steady or there is too little of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_s: Option<f64>,
}

/// Where to cut, by MSER-5 (White 1997; Spratt 1998) on the mean response times and on the completions of equal spans of
/// time, until the last request was due.
pub(super) fn suggested_ns(bins: &Bins, last_due_ns: i64) -> Option<i64> {
    let starts = bins.starts();
    let loaded: Vec<_> = starts.iter().take_while(|(start, _)| *start < last_due_ns).collect();
    // What is due in the last of them may be due for less than its width.
    let loaded = &loaded[..loaded.len().saturating_sub(1)];
    let response: Vec<(i64, f64)> =
        loaded.iter().filter_map(|(start, bin)| Some((*start, bin.mean_s()?))).collect();
    let throughput: Vec<(i64, f64)> =
        loaded.iter().map(|(start, bin)| (*start, bin.completed() as f64)).collect();
    Some(cut_ns(&response)?.max(cut_ns(&throughput)?))
}

/// The cut of MSER-5 in a series of equal spans of time, each given with the instant at which it begins. `None` where the least
/// standard error lies in the second half, or there are too few spans: then there are too few data.
pub fn cut_ns(series: &[(i64, f64)]) -> Option<i64> {
    let values: Vec<f64> = series.iter().map(|(_, value)| *value).collect();
    let cut = mser(&values, BATCH).filter(|cut| !cut.too_short)?;
    series.get(cut.batches * BATCH).map(|(start, _)| *start)
}

impl WarmupSeen {
    pub(super) fn new(used_ns: i64, suggested_ns: Option<i64>) -> Self {
        Self { used_s: seconds(used_ns), suggested_s: suggested_ns.map(seconds) }
    }
}
