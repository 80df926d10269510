//! The candidate that predicts held-out loads best.

use serde::Serialize;

use super::candidate::{Fitted, Spec, predicted};
use super::model::Model;
use super::observation::{Load, short};
use super::sample::{Prior, Sample};
use super::words::{self, Parameter};

/// Loads up to this share of the highest are fitted, the others predicted.
const LOW_LOADS: f64 = 0.6;
/// At least this number of samples is predicted if enough are left, so that one outlier does not decide.
const LEAST_HELD_OUT: usize = 3;
/// At least this number of samples is fitted.
const LEAST_FITTED: usize = 4;
/// Candidates whose errors differ by less than this, or by a tenth of the least error, are taken to predict equally well.
/// They predict the same points, so most of the noise of these is in all of their errors alike.
const ALIKE: f64 = 0.005;

/// On which samples the candidates were judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The number of fitted points.
    pub fitted: usize,
    /// The highest load that was fitted.
    pub up_to: Load,
    /// The number of predicted points.
    pub predicted: usize,
    /// The lowest load that was predicted.
    pub from: Load,
    /// The highest load that was predicted.
    pub to: Load,
}

/// The errors of a candidate's predictions of the loads that it was not fitted to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// The root of the mean squared relative error. Infinite where the candidate has no steady state at a load at which
    /// one was measured.
    pub error: f64,
    /// The largest relative error.
    pub worst: f64,
    /// The measured and predicted points.
    pub points: Vec<HeldOutPoint>,
}

/// One measured point that was not fitted, and its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOutPoint {
    /// The load of the point.
    pub load: Load,
    /// The mean response time, or the throughput of a closed population.
    pub measured: f64,
    /// The candidate's prediction; `None` where it has no steady state.
    pub predicted: Option<f64>,
}

/// A model as it fits.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The candidate's name: "delay + M/M/4".
    pub name: String,
    /// The model, fitted to all points.
    pub model: Model,
    /// The candidate's formula for the mean.
    pub formula: &'static str,
    /// The candidate's parameters, with intervals.
    pub parameters: Vec<Parameter>,
    /// The errors of the candidate's predictions; `None` where the lower loads are too few.
    pub held_out: Option<HeldOut>,
    /// The root of the mean squared relative error on all points that the candidate was fitted to.
    pub error: f64,
    /// Akaike's criterion, corrected for few points; lower is better. `None` with too few points for it.
    pub aicc: Option<f64>,
    /// Notes on the parameters.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(super) fitted: Fitted,
}

/// All models as they fit, the best first.
pub(super) fn ranked(
    specs: &[Spec],
    samples: &[Sample],
    prior: Option<Prior>,
) -> (Option<Split>, Vec<Candidate>) {
    let lower = split_at(samples);
    let mut candidates: Vec<Candidate> =
        specs.iter().filter_map(|&spec| Candidate::of(spec, samples, lower, prior)).collect();
    let error =
        |candidate: &Candidate| candidate.held_out.as_ref().map_or(f64::INFINITY, |held_out| held_out.error);
    let aicc = |candidate: &Candidate| candidate.aicc.unwrap_or(f64::INFINITY);
    candidates.sort_by(|a, b| error(a).total_cmp(&error(b)).then(aicc(a).total_cmp(&aicc(b))));
    // Those that predict as well as the best, by Akaike; then the others, by their error.
    let least = candidates.first().map_or(f64::INFINITY, error);
    let alike = ALIKE.max(0.1 * least);
    let leaders = candidates.iter().take_while(|candidate| error(candidate) <= least + alike).count();
    candidates[..leaders].sort_by(|a, b| aicc(a).total_cmp(&aicc(b)));
    // One that found nothing of what it adds to another has the other's name, and is the same.
    let mut known: Vec<String> = Vec::new();
    candidates.retain(|candidate| {
        let new = !known.contains(&candidate.name);
        known.push(candidate.name.clone());
        new
    });
    let split = (lower < samples.len()).then(|| Split {
        fitted: lower,
        up_to: samples[lower - 1].load,
        predicted: samples.len() - lower,
        from: samples[lower].load,
        to: samples[samples.len() - 1].load,
    });
    (split, candidates)
}

/// How many of the samples are fitted, the rest being predicted; samples of one load stay together.
fn split_at(samples: &[Sample]) -> usize {
    let n = samples.len();
    let low = samples.partition_point(|sample| sample.load.size() <= LOW_LOADS * samples[n - 1].load.size());
    let most = (n - LEAST_HELD_OUT.min(n)).max(LEAST_FITTED);
    let mut at = low.clamp(LEAST_FITTED, most.max(LEAST_FITTED)).min(n);
    while at < n && samples[at].load.size() <= samples[at - 1].load.size() {
        at += 1;
    }
    at
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

impl Candidate {
    fn of(spec: Spec, samples: &[Sample], lower: usize, prior: Option<Prior>) -> Option<Self> {
        let fitted = Fitted::of(spec, samples, prior)?;
        let model = fitted.model();
        let errors = |model: &Model, samples: &[Sample]| -> Vec<f64> {
            let error = |sample: &Sample| {
                predicted(model, sample)
                    .map_or(f64::INFINITY, |predicted| sample.relative_error(predicted).abs())
            };
            samples.iter().map(error).collect()
        };
        let (low, high) = samples.split_at(lower);
        // A curve that goes through as many points as it has parameters was tested by none.
        let tested = lower > spec.parameters() && !high.is_empty();
        let held_out = tested.then(|| Fitted::of(spec, low, prior)).flatten().map(|fitted| {
            let model = fitted.model();
            let errors = errors(&model, high);
            let point = |sample: &Sample| HeldOutPoint {
                load: sample.load,
                measured: sample.value(),
                predicted: predicted(&model, sample),
            };
            HeldOut {
                error: root_mean_square(&errors),
                worst: errors.iter().copied().fold(0.0, f64::max),
                points: high.iter().map(point).collect(),
            }
        });
        let parameters = words::parameters(&fitted, samples, prior);
        Some(Self {
            name: words::name(&model),
            formula: words::formula(&model),
            held_out,
            error: root_mean_square(&errors(&model, samples)),
            aicc: fitted.aicc(samples),
            notes: notes(&fitted, &model),
            parameters,
            model,
            fitted,
        })
    }
}

fn notes(fitted: &Fitted, model: &Model) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((fewest, most)) = fitted.servers_interval()
        && most.is_none_or(|most| most - fewest > 2)
    {
        let most = most.map_or_else(|| "more than 512".into(), |most| most.to_string());
        notes.push(format!(
            "the number of servers is not identifiable: {fewest} to {most} fit as well; give --servers, or measure nearer to \
             saturation"
        ));
    }
    if let Model::Served(served) = model
        && served.serial_s > 0.0
    {
        let of_one_s = served.service_s / f64::from(served.servers);
        let (part, demand_s) = if served.serial_s >= of_one_s {
            ("the serial part", served.serial_s)
        } else {
            ("the servers", of_one_s)
        };
        notes.push(format!(
            "the bottleneck is {part}: {} ms of it for each request, so at most {} requests per second",
            short(demand_s * 1e3),
            short(1.0 / demand_s)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Observation, sample::Sample};

    fn at(rates: &[f64]) -> Vec<Sample> {
        let point = |&rate_per_s: &f64| Observation {
            response_s: Some(1.0),
            ..Observation::at("", Load::Open { rate_per_s })
        };
        Sample::all(&rates.iter().map(point).collect::<Vec<_>>())
    }

    #[test]
    fn the_upper_loads_are_held_out_and_enough_stay_to_be_fitted() {
        let cases: [(&[f64], usize); 6] = [
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], 6),
            (&[1.0, 2.0, 5.0, 10.0, 15.0, 18.0, 20.0, 25.0, 30.0, 35.0, 40.0, 50.0, 100.0], 10),
            (&[2.0, 4.0, 6.0, 8.0, 9.0], 4),
            (&[1.0, 2.0, 3.0, 4.0, 4.0, 4.0], 6),
            (&[1.0, 2.0, 3.0], 3),
            (&[1.0, 9.0, 9.5, 9.6, 9.7, 9.8, 9.9, 10.0], 4),
        ];
        for (rates, fitted) in cases {
            assert_eq!(split_at(&at(rates)), fitted, "{rates:?}");
        }
    }
}
