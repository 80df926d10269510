//! Batch means: an interval for the mean of a correlated series.

use super::{mean, student_t, variance};

/// The most and the fewest batches that are used.
const MOST: usize = 30;
const FEWEST: usize = 10;

/// The mean of a correlated series with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchMeans {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// How many batches the interval stands on.
    pub batches: usize,
    /// Whether neighbouring batches are still correlated, so that the interval is too narrow: run longer.
    pub correlated: bool,
}

/// Groups a series into at most 30 batches and makes an interval from their means (Law 2015, section 9.5.3).
/// While the correlation of neighbours is significant, batches are made twice as long, down to 10 of them.
/// Values that do not fill a batch are left out at the front. `None` for fewer than 10 values.
pub fn batch_means(series: &[f64]) -> Option<BatchMeans> {
    if series.len() < FEWEST {
        return None;
    }
    let mut count = series.len().min(MOST);
    loop {
        let means = group(series, count);
        let correlated = lag_one_correlation(&means) >= 1.96 / (count as f64).sqrt();
        if !correlated || count == FEWEST {
            let half_width = student_t(count as f64 - 1.0, 0.975) * (variance(&means) / count as f64).sqrt();
            return Some(BatchMeans { mean: mean(&means), half_width, batches: count, correlated });
        }
        count = (count / 2).max(FEWEST);
    }
}

/// The correlation of neighbouring values; 0 for a constant series.
pub fn lag_one_correlation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let total: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    let lagged: f64 = values.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    if total > 0.0 { lagged / total } else { 0.0 }
}

fn group(series: &[f64], count: usize) -> Vec<f64> {
    let length = series.len() / count;
    series[series.len() - count * length..].chunks_exact(length).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Law;
    use kendall_station::random::{Purpose, stream};

    /// 400 intervals of 95 %: fewer than 362 or more than 396 hits happen by chance less than once in 10⁴.
    #[test]
    fn the_interval_covers_the_mean_of_a_correlated_series_as_often_as_it_says() {
        let noise = Law::Uniform { low_s: 0.0, high_s: 1.0 };
        let hits = (0..400)
            .filter(|&run| {
                let mut rng = stream(1, Purpose::Trial, run);
                let mut x = 0.5;
                let series: Vec<f64> = (0..6000)
                    .map(|_| {
                        x = 0.8 * x + 0.2 * noise.sample(&mut rng);
                        x
                    })
                    .collect();
                let found = batch_means(&series).unwrap();
                (found.mean - 0.5).abs() <= found.half_width
            })
            .count();
        assert!((362..=396).contains(&hits), "{hits} of 400");
    }

    #[test]
    fn a_series_that_wanders_is_called_correlated() {
        let ramp: Vec<f64> = (0..300).map(f64::from).collect();
        let found = batch_means(&ramp).unwrap();
        assert!(found.correlated && found.batches == FEWEST);
        assert_eq!(batch_means(&[1.0; 9]), None);
    }
}
