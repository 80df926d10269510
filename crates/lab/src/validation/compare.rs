//! Predictions beside what was then measured.

use kendall_analysis::{AtSpeed, Compared, LowLoad, TrialResult};
use kendall_evidence::streamed::Streamed;
use kendall_prediction::{BaselinePrediction, Effort, Observed, Prediction, Predictor, QUANTILES, Question};
use kendall_station::Estimate;
use kendall_stats::mean;

/// The quantiles that are compared.
const COMPARED: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A question that was answered before the load, and all that is needed to answer it for another speed.
pub(super) struct AnsweredQuestion<'a> {
    pub(super) observed: &'a Observed,
    /// Closed populations: users and requests per second.
    pub(super) closed: &'a [(u32, f64)],
    pub(super) question: Question,
    pub(super) seed: u64,
    /// As it was predicted.
    pub(super) capacity_per_s: f64,
}

impl AnsweredQuestion<'_> {
    /// The answer for the speed of the processors in each second of the load, by the time of a fixed computation then, which is taken out of
    /// the loads before it as well. `None` where it was not timed.
    pub(super) fn at_speed(&self, computation_s: &[f64], result: &TrialResult) -> Option<AtSpeed> {
        let (observed, slower) = (self.observed.at_one_speed()?, self.observed.slower(computation_s)?);
        let mean_slower = mean(&slower);
        let question = Question { slower: Some(slower), ..self.question.clone() };
        // Every second counts, however many requests it has.
        let effort = Effort { most_simulated: question.requests, ..Effort::FULL };
        let predictor = Predictor::new(&observed, self.seed);
        let prediction = predictor.predict_within(&question, effort, &QUANTILES).ok()?;
        let slowed = |simple: BaselinePrediction| BaselinePrediction {
            mean_s: simple.mean_s.map(|mean_s| mean_s * mean_slower),
            p99_s: simple.p99_s.map(|p99_s| p99_s * mean_slower),
            ..simple
        };
        let rate_per_s = question.rate_per_s * mean_slower;
        let capacity_per_s = observed.capacity().map_or(self.capacity_per_s, |capacity| capacity.per_s);
        let baselines = if rate_per_s < capacity_per_s {
            observed.baselines(rate_per_s, capacity_per_s, self.closed)
        } else {
            // None of them knows an overload that ends.
            Vec::new()
        };
        Some(AtSpeed {
            slower: mean_slower,
            compared: compared(&prediction, result),
            baselines: baselines.into_iter().map(slowed).collect(),
        })
    }
}

/// The mean and the quantiles that were both predicted and measured.
pub(super) fn compared(prediction: &Prediction, result: &TrialResult) -> Vec<Compared> {
    let Some(seen) = &result.seen else { return Vec::new() };
    let predicted_s = |p: f64| Some(prediction.quantiles.iter().find(|known| (known.0 - p).abs() < 1e-12)?.1);
    let quantile = |p: f64| Some(Compared::new(quantile_name(p), predicted_s(p)?, measured_s(seen, p)?));
    let mean = Compared::new("mean", prediction.mean_s, seen.response.mean_s);
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
