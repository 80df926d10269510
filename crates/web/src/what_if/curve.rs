//! Curves along a load within a time limit: the load is halved again and again, so that a curve that runs out of time is coarse but
//! complete.

use std::time::{Duration, Instant};

use super::question::Detail;
use super::shown::CurvePoint;

/// The distance of the first points, in loads.
const COARSEST: usize = 8;
/// The time limit of a curve of a preview, and of a full answer.
const PREVIEW_WITHIN: Duration = Duration::from_millis(40);
const FULL_WITHIN: Duration = Duration::from_secs(3);

/// The points at these ascending loads, as far as the time goes.
pub(super) fn along(
    loads: &[f64],
    detail: Detail,
    point: impl Fn(f64) -> Option<CurvePoint>,
) -> Vec<CurvePoint> {
    let within = if detail == Detail::Full { FULL_WITHIN } else { PREVIEW_WITHIN };
    let began = Instant::now();
    let order = coarse_first(loads.len()).take_while(|_| began.elapsed() < within);
    let mut points: Vec<CurvePoint> = order.filter_map(|at| point(loads[at])).collect();
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    points
}

/// The indices below a count, each once: every eighth, then those in the middle between them, and so on.
fn coarse_first(count: usize) -> impl Iterator<Item = usize> {
    let strides = std::iter::successors(Some(COARSEST), |stride| Some(stride / 2).filter(|half| *half > 0));
    strides.flat_map(move |stride| {
        let is_new = move |number: &usize| stride == COARSEST || !number.is_multiple_of(2 * stride);
        (stride..=count).step_by(stride).filter(is_new).map(|number| number - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_comes_once_and_the_coarse_ones_first() {
        for count in [1, 5, 8, 33] {
            let mut all: Vec<usize> = coarse_first(count).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(coarse_first(32).take(4).collect::<Vec<_>>(), [7, 15, 23, 31]);
    }
}
