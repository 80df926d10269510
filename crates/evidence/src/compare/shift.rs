//! By how much each quantile of the response times is shifted (Doksum 1974; Rousselet, Pernet and Wilcox 2017).
//!
//! A mean that is the same may hide a tail that is not. As everywhere in a comparison the run is the unit: each run gives
//! one value of each quantile.

use serde::Serialize;

use super::{FEWEST_RUNS, Side};
use kendall_stats::median_difference;

/// The quantiles whose shift is shown: the deciles, and the tail.
pub const SHIFTED: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

/// The shift of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The quantile, as a share.
    pub p: f64,
    /// The quantile's median over the runs of the first side, in seconds.
    pub base_s: f64,
    /// The difference of the other side's median from it, in seconds.
    pub shift_s: f64,
    /// The 95 % interval of the difference.
    pub interval_s: (f64, f64),
}

/// The shifts of those quantiles that enough runs of both sides support.
pub(super) fn shifts(base: &Side, side: &Side, seed: u64) -> Vec<Shift> {
    let shift = |(index, &p): (usize, &f64)| {
        let (a, b) = (of(base, p), of(side, p));
        if a.len().min(b.len()) < FEWEST_RUNS {
            return None;
        }
        let found = median_difference(&a, &b, seed.wrapping_add(100 + index as u64))?;
        Some(Shift { p, base_s: kendall_stats::median(&a), shift_s: found.value, interval_s: found.interval })
    };
    SHIFTED.iter().enumerate().filter_map(shift).collect()
}

fn of(side: &Side, p: f64) -> Vec<f64> {
    let value =
        |run: &super::Run| run.quantiles_s.iter().find(|quantile| quantile.0 == p).map(|found| found.1);
    side.runs.iter().filter_map(value).collect()
}
