//! Predictions beside what was then measured.

use kendall_analysis::{AtSpeed, Compared, LowLoad, TrialResult};
use kendall_evidence::streamed::Streamed;
use kendall_prediction::{BaselinePrediction, Observed, Prediction, Predictor, Question};
use kendall_station::Estimate;
use kendall_stats::mean;

/// Standard deviations from the middle to the ends of a 95 % interval.
const REACH: f64 = 1.96;
/// The quantiles that are compared.
const COMPARED: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A question that was answered before the load, and all that is needed to answer it for another speed.
pub(super) struct AnsweredQuestion<'a> {
    pub(super) predictor: &'a Predictor,
    pub(super) observed: &'a Observed,
    /// Closed populations: users and requests per second.
    pub(super) closed: &'a [(u32, f64)],
    pub(super) question: Question,
    /// As it was predicted.
    pub(super) capacity_per_s: Estimate,
}

impl AnsweredQuestion<'_> {
    /// The answer for the speed in the full loads beside the load. On a machine of f times the speed, a rate of λ/f takes f times as long
    /// in every respect. `None` where the rate exceeds the capacity at that speed.
    pub(super) fn at_speed(&self, beside_per_s: &[Estimate], result: &TrialResult) -> Option<AtSpeed> {
        let speed = speed(self.capacity_per_s, beside_per_s);
        let rate_per_s = self.question.rate_per_s / speed;
        let prediction = self.predictor.predict(&Question { rate_per_s, ..self.question.clone() }).ok()?;
        let faster = |simple: BaselinePrediction| BaselinePrediction {
            mean_s: simple.mean_s.map(|mean_s| mean_s / speed),
            p99_s: simple.p99_s.map(|p99_s| p99_s / speed),
            ..simple
        };
        let baselines = self.observed.baselines(rate_per_s, self.capacity_per_s.value, self.closed);
        Some(AtSpeed {
            speed,
            compared: compared(&prediction, speed, result),
            baselines: baselines.into_iter().map(faster).collect(),
        })
    }
}

/// The speed of the machine, relative to that of the prediction: the capacity that full loads measured over the predicted one, less the
/// noise of measuring it. How far the capacity may be from the prediction is known, so a difference counts by the share of its variance that
/// is not noise.
fn speed(predicted_per_s: Estimate, measured_per_s: &[Estimate]) -> f64 {
    let relative_variance = |estimate: &Estimate| (estimate.half_width() / REACH / estimate.value).powi(2);
    let measured: Vec<f64> = measured_per_s.iter().map(|full| full.value).collect();
    let noises: Vec<f64> = measured_per_s.iter().map(relative_variance).collect();
    let noise = mean(&noises) / measured.len() as f64;
    let possible = relative_variance(&predicted_per_s);
    (mean(&measured) / predicted_per_s.value).powf(possible / (possible + noise))
}

/// The mean and the quantiles that were both predicted, for a machine of this speed relative to that of the prediction, and measured.
pub(super) fn compared(prediction: &Prediction, speed: f64, result: &TrialResult) -> Vec<Compared> {
    let Some(seen) = &result.seen else { return Vec::new() };
    let faster = |predicted_s: Estimate| Estimate {
        value: predicted_s.value / speed,
        interval: predicted_s.interval.map(|(low_s, high_s)| (low_s / speed, high_s / speed)),
    };
    let predicted_s = |p: f64| Some(prediction.quantiles.iter().find(|known| (known.0 - p).abs() < 1e-12)?.1);
    let quantile =
        |p: f64| Some(Compared::new(quantile_name(p), faster(predicted_s(p)?), measured_s(seen, p)?));
    let mean = Compared::new("mean", faster(prediction.mean_s), seen.response.mean_s);
    std::iter::once(mean).chain(COMPARED.into_iter().filter_map(quantile)).collect()
}

/// The measurement of a low load.
pub(super) fn low_load(round: u32, rate_per_s: f64, result: &TrialResult) -> Option<LowLoad> {
    let seen = result.seen.as_ref()?;
    let quantile = |p: f64| Some((quantile_name(p), measured_s(seen, p)?));
    let mean = ("mean".to_owned(), seen.response.mean_s);
    let measured_s = std::iter::once(mean).chain(COMPARED.into_iter().filter_map(quantile)).collect();
    Some(LowLoad { round, rate_per_s, measured_s })
}

/// "p99" for 0.99.
fn quantile_name(p: f64) -> String {
    format!("p{}", p * 100.0)
}

/// A measured quantile; `None` for too few requests.
fn measured_s(seen: &Streamed, p: f64) -> Option<Estimate> {
    let measured = seen.response.quantile(p)?;
    Some(Estimate { value: measured.value_s?, interval: measured.interval_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_counts_as_far_as_it_is_not_noise() {
        let within = |value: f64, half: f64| Estimate { value, interval: Some((value - half, value + half)) };
        let predicted = within(100.0, 4.0);
        assert!((speed(predicted, &[within(110.0, 1e-6), within(110.0, 1e-6)]) - 1.1).abs() < 1e-9);
        // As noisy as the prediction is uncertain: half of the difference, as a logarithm.
        assert!((speed(predicted, &[within(110.0, 4.4)]) - 1.1_f64.sqrt()).abs() < 1e-9);
        assert!((speed(predicted, &[within(110.0, 1e3)]) - 1.0).abs() < 1e-4);
    }
}
