//! The slope of a correlated series along time.

use super::{lag_one_correlation, mean, student_t};

/// The number of batches. Over 300 series of 600 values x of which each is φ times the one before plus noise, intervals from 30
/// batches cover the true slope 95 to 97 times in a hundred, for φ from 0 to 0.995; from 15 they cover it 93 to 95 times.
const BATCHES: usize = 30;
/// Fewer values have no interval.
const FEWEST: usize = 10;

/// The slope of a series, with the 95 % interval of the true slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How much the series changes in a unit of time.
    pub slope: f64,
    /// The 95 % interval of the slope.
    pub interval: (f64, f64),
}

/// The least-squares line through the means of 30 batches of a series, whose points are equally far apart in time. Neighbouring
/// means may be correlated: the n batches count as n(1 − r)/(1 + r), where r is the correlation of neighbouring residuals (Santer
/// et al. 2000, equations 4 to 6), corrected for its bias of −(2 + 4r)/n, of which (1 + 4r)/n is that of any correlation (Kendall
/// 1954) and 1/n that of the fitted line. Values that do not fill a batch are dropped from the front. `None` for fewer than 10
/// values, or as many as there are no instants for.
pub fn trend(at: &[f64], values: &[f64]) -> Option<Trend> {
    if values.len() < FEWEST || at.len() != values.len() {
        return None;
    }
    let length = values.len().div_ceil(BATCHES).min(values.len() / FEWEST);
    let means = |of: &[f64]| of[of.len() % length..].chunks_exact(length).map(mean).collect::<Vec<_>>();
    let (at, values) = (means(at), means(values));
    let n = values.len() as f64;
    let (middle, centre) = (mean(&at), mean(&values));
    let spread: f64 = at.iter().map(|x| (x - middle).powi(2)).sum();
    let slope = at.iter().zip(&values).map(|(x, y)| (x - middle) * (y - centre)).sum::<f64>() / spread;
    let residuals: Vec<f64> =
        at.iter().zip(&values).map(|(x, y)| y - centre - slope * (x - middle)).collect();
    let r = lag_one_correlation(&residuals);
    let r = (r + (2.0 + 4.0 * r) / n).max(0.0);
    // Three values are the fewest that leave a degree of freedom.
    let freedom = (n * (1.0 - r) / (1.0 + r)).max(3.0) - 2.0;
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let half_width = student_t(freedom, 0.975) * (squares / freedom / spread).sqrt();
    Some(Trend { slope, interval: (slope - half_width, slope + half_width) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream, unit};

    fn instants(n: usize) -> Vec<f64> {
        (0..n).map(|at| 5.0 * at as f64).collect()
    }

    /// Values of which each is φ times the one before plus noise.
    fn correlated(phi: f64, n: usize, run: u64) -> Vec<f64> {
        let mut rng = stream(7, Purpose::Trial, run);
        let mut value = 0.0;
        (0..n)
            .map(|_| {
                value = phi * value + unit(&mut rng) - 0.5;
                value
            })
            .collect()
    }

    /// 400 intervals of 95 %: fewer than 362 hold the truth less than once in 10⁴.
    #[test]
    fn the_interval_has_its_coverage_for_correlated_series() {
        let at = instants(600);
        for phi in [0.0, 0.9, 0.98] {
            let holds = |run: &u64| {
                let (low, high) = trend(&at, &correlated(phi, 600, *run)).unwrap().interval;
                low <= 0.0 && 0.0 <= high
            };
            let hits = (0..400).filter(holds).count();
            assert!(hits >= 362, "{phi}: {hits} of 400");
        }
    }

    #[test]
    fn a_line_is_found_in_noise() {
        let at = instants(600);
        let noise = correlated(0.5, 600, 1);
        let values: Vec<f64> = at.iter().zip(noise).map(|(at, noise)| 3.0 + 0.01 * at + noise).collect();
        let found = trend(&at, &values).unwrap();
        assert!(found.interval.0 > 0.009 && found.interval.1 < 0.011, "{found:?}");
    }

    #[test]
    fn a_line_without_noise_has_an_interval_without_width() {
        let at = instants(12);
        let found = trend(&at, &at.iter().map(|at| 2.0 * at).collect::<Vec<_>>()).unwrap();
        assert!(
            (found.slope - 2.0).abs() < 1e-12 && found.interval.1 - found.interval.0 < 1e-12,
            "{found:?}"
        );
        let flat = Trend { slope: 0.0, interval: (0.0, 0.0) };
        assert_eq!(trend(&at, &[4.0; 12]), Some(flat));
        assert_eq!(trend(&at[..9], &[4.0; 9]), None);
        assert_eq!(trend(&at, &[4.0; 13]), None);
    }
}
