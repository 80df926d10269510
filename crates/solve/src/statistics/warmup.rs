//! Where the warm-up of a series ends.

use super::mean;

/// Where to cut a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// How many batches to drop at the front.
    pub batches: usize,
    /// MSER there: the square of the standard error of what is left, its values taken as independent.
    pub value: f64,
    /// Whether the cut lies at the limit, half of the series: then the series is too short to tell.
    pub at_limit: bool,
}

/// MSER-m (White 1997; m = 5 by Spratt 1998): drops as many batches of `batch` values as makes the standard error
/// of the rest smallest, at most half of them. Values that do not fill a batch are left out at the end. `None` for
/// fewer than two batches.
pub fn mser(series: &[f64], batch: usize) -> Option<Cut> {
    let means: Vec<f64> = series.chunks_exact(batch).map(mean).collect();
    if means.len() < 2 {
        return None;
    }
    // Welford's update from the back gives mean and squared deviations of every suffix in one pass.
    let (mut centre, mut squares) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    let limit = means.len() / 2;
    for (i, &x) in means.iter().enumerate().rev() {
        let n = (means.len() - i) as f64;
        let before = x - centre;
        centre += before / n;
        squares += before * (x - centre);
        let value = squares / (n * n);
        if i <= limit && best.is_none_or(|(_, least)| value <= least) {
            best = Some((i, value));
        }
    }
    best.map(|(batches, value)| Cut { batches, value, at_limit: batches == limit && limit > 0 })
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

    #[test]
    fn a_ramp_has_no_steady_state() {
        let ramp: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(mser(&ramp, 5).unwrap().at_limit);
    }
}
