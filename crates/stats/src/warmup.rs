//! The end of the warm-up of a series.

use super::mean;

/// The point at which to cut a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// The number of batches to drop at the start.
    pub batches: usize,
    /// MSER there: the square of the standard error of the rest, its values taken as independent.
    pub value: f64,
    /// Whether the cut is at the limit, half of the series, or a later one would be much better: then the series is too short. If a
    /// series becomes steady suddenly and late, no cut in the first half is good, and the best of them may be at 0.
    pub too_short: bool,
}

/// The least share of the series after a cut beyond the limit. With fewer values the variance is often small at random.
const LEFT: f64 = 0.25;
/// A cut there is much better if MSER is less than this share of that of the best in the first half. For twenty independent
/// batches, of which five are left then, that happens to one series in 25 at each position, for forty to one in 700.
const MUCH: f64 = 0.5;

/// MSER-m (White 1997; m = 5 by Spratt 1998): drops the number of batches of `batch` values that minimises the standard error of
/// the rest, at most half of them. Values that do not fill a batch are dropped at the end. `None` for fewer than two batches.
pub fn mser(series: &[f64], batch: usize) -> Option<Cut> {
    let means: Vec<f64> = series.chunks_exact(batch).map(mean).collect();
    if means.len() < 2 {
        return None;
    }
    // Welford's update from the back gives mean and squared deviations of every suffix in one pass.
    let (mut centre, mut squares) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    let mut least_beyond = f64::INFINITY;
    let limit = means.len() / 2;
    for (i, &x) in means.iter().enumerate().rev() {
        let n = (means.len() - i) as f64;
        let before = x - centre;
        centre += before / n;
        squares += before * (x - centre);
        let value = squares / (n * n);
        if i <= limit && best.is_none_or(|(_, least)| value <= least) {
            best = Some((i, value));
        } else if i > limit && n >= LEFT * means.len() as f64 {
            least_beyond = least_beyond.min(value);
        }
    }
    best.map(|(batches, value)| Cut {
        batches,
        value,
        too_short: (batches == limit && limit > 0) || least_beyond < MUCH * value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_without_warm_up_is_kept_whole() {
        let level: Vec<f64> = (0..200).map(|i| f64::from(i * 7919 % 101)).collect();
        assert!(mser(&level, 5).unwrap().batches <= 4);
        assert_eq!(mser(&[1.0; 9], 5), None);
        assert_eq!(mser(&[1.0; 50], 5).unwrap().batches, 0);
    }

    /// It was high for 60 % of the time: within the first half no cut is better than none.
    #[test]
    fn a_series_that_becomes_steady_late_is_too_short() {
        let step = |high: u32| -> Vec<f64> {
            (0..200).map(|i| f64::from(i * 7919 % 101) + if i < high { 1000.0 } else { 0.0 }).collect()
        };
        let late = mser(&step(120), 5).unwrap();
        assert!((late.batches, late.too_short) == (0, true), "{late:?}");
        let early = mser(&step(60), 5).unwrap();
        assert!((12..16).contains(&early.batches) && !early.too_short, "{early:?}");
        assert!(!mser(&step(0), 5).unwrap().too_short && !mser(&[1.0; 50], 5).unwrap().too_short);
    }

    #[test]
    fn a_ramp_has_no_steady_state() {
        let ramp: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(mser(&ramp, 5).unwrap().too_short);
    }
}
