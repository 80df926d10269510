//! The errors of predictions of single requests.

use serde::{Deserialize, Serialize};

use kendall_stats::{mean, minimum_samples, quantile_rank};

/// The quantiles that are compared.
const QUANTILES: [f64; 4] = [0.50, 0.90, 0.95, 0.99];

/// One request: its response time as measured and as predicted, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The response time that the client measured.
    pub measured_s: f64,
    /// The response time that the replay predicts; 0 if the station turned the request away.
    pub predicted_s: f64,
}

impl Pair {
    /// Predicted less measured, without its sign.
    pub(super) fn absolute_error_s(&self) -> f64 {
        (self.predicted_s - self.measured_s).abs()
    }
}

/// How far predictions are from a measurement. Relative errors are to the measured value; above 0 is too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The relative error of the mean response time.
    pub mean_error: f64,
    /// The relative errors of the quantiles that have enough requests.
    pub quantile_errors: Vec<QuantileError>,
    /// The mean absolute error of a request over the mean response: what ranks candidates.
    pub relative_error: f64,
    /// Half of the requests are predicted at least this well, relative to their own response.
    pub median_relative_error: f64,
    /// The median absolute error, in seconds.
    pub median_absolute_error_s: f64,
    /// Pearson's correlation of prediction and measurement; `None` where either does not vary.
    pub correlation: Option<f64>,
}

/// The error of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileError {
    /// The level of the quantile.
    pub p: f64,
    /// The relative error of the quantile.
    pub error: f64,
}

impl Fit {
    /// Of at least one pair.
    pub(super) fn of(pairs: &[Pair]) -> Self {
        let measured_s: Vec<f64> = pairs.iter().map(|pair| pair.measured_s).collect();
        let predicted_s: Vec<f64> = pairs.iter().map(|pair| pair.predicted_s).collect();
        let errors_s: Vec<f64> = pairs.iter().map(Pair::absolute_error_s).collect();
        let relative = |pair: &Pair| over(pair.absolute_error_s(), pair.measured_s);
        let correlation = correlation(&measured_s, &predicted_s);
        let mean_s = mean(&measured_s);
        let (measured_s, predicted_s) = (sorted(measured_s), sorted(predicted_s));
        let quantile_error = |p: f64| {
            let n = measured_s.len() as u64;
            let at = quantile_rank(n, p) as usize - 1;
            let error = over(predicted_s[at], measured_s[at]) - 1.0;
            (n >= minimum_samples(p)).then_some(QuantileError { p, error })
        };
        Self {
            mean_error: over(mean(&predicted_s), mean_s) - 1.0,
            quantile_errors: QUANTILES.into_iter().filter_map(quantile_error).collect(),
            relative_error: over(mean(&errors_s), mean_s),
            median_relative_error: median(pairs.iter().map(relative).collect()),
            median_absolute_error_s: median(errors_s),
            correlation,
        }
    }

    /// The relative error of a quantile, if there are requests enough for it.
    pub fn quantile_error(&self, p: f64) -> Option<f64> {
        self.quantile_errors.iter().find(|one| (one.p - p).abs() < 1e-9).map(|one| one.error)
    }
}

/// A ratio of times. A response of no time at all is within the clock's resolution of any other.
fn over(time_s: f64, measured_s: f64) -> f64 {
    const RESOLUTION_S: f64 = 1e-9;
    time_s.max(RESOLUTION_S) / measured_s.max(RESOLUTION_S)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The middle one of at least one value, or the lower of two.
pub(super) fn median(values: Vec<f64>) -> f64 {
    let values = sorted(values);
    values[quantile_rank(values.len() as u64, 0.5) as usize - 1]
}

fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        (xx, yy, xy) = (xx + dx * dx, yy + dy * dy, xy + dx * dy);
    }
    let scale = (xx * yy).sqrt();
    (scale > 0.0).then(|| (xy / scale).clamp(-1.0, 1.0))
}
