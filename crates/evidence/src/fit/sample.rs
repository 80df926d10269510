//! The numbers that are fitted, and how noisy each is.

use super::line::Line;
use super::model::Model;
use super::observation::{Load, Observation};

/// What was seen at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    /// Mean response time of an open stream. Its errors are taken as proportional to it.
    Response { mean_s: f64 },
    /// Throughput of a closed population. Its errors are taken as of one size.
    Throughput { per_s: f64 },
}

/// One number to fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) place: String,
    pub(super) load: Load,
    pub(super) seen: Seen,
    /// The standard error: of a response time relative to it, of a throughput in 1/s; 1 where it is not known.
    pub(super) noise: f64,
    pub(super) noise_is_known: bool,
    /// The share that was turned away, and how many requests tell it.
    lost: Option<(f64, f64)>,
}

/// What is known of the service time from elsewhere than response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    pub(super) service_s: f64,
    /// Its standard error, relative to it.
    pub(super) relative_error: f64,
}

/// From the half-width of a 95 % interval to a standard error.
const HALF_WIDTH: f64 = 1.96;
/// No sample is believed to be more exact than this, relative to it: what moves a machine from trial to trial is more.
const LEAST_NOISE: f64 = 1e-3;
/// How many requests are taken to stand behind a share of losses where it is not told.
const FEW_REQUESTS: f64 = 1e3;

/// Puts the noise of open samples on a line over the response time, both as logarithms. An interval is itself a guess,
/// and narrow where the response happens to be short: weighed by it, points pull every fit down. That the noise grows with
/// the response is theory: of M/M/1 in proportion to it (Daley 1968).
fn smooth(samples: &mut [Sample]) {
    let open = |sample: &Sample| matches!(sample.seen, Seen::Response { .. }) && sample.noise_is_known;
    if samples.len() < 4 || !samples.iter().all(open) {
        return;
    }
    let point = |sample: &Sample| (libm::log(sample.value()), libm::log(sample.noise));
    let points: Vec<(f64, f64)> = samples.iter().map(point).collect();
    let Some(line) = Line::of(&points) else { return };
    for (sample, (response, _)) in samples.iter_mut().zip(points) {
        sample.noise = libm::exp(line.level + line.slope * response).max(LEAST_NOISE);
    }
}

impl Sample {
    /// The samples of some points, in ascending order of load. Noise counts as known only where all of them tell it.
    pub(super) fn all(points: &[Observation]) -> Vec<Self> {
        let mut samples: Vec<Self> = points.iter().filter_map(Self::of).collect();
        if !samples.iter().all(|sample| sample.noise_is_known) {
            for sample in &mut samples {
                (sample.noise, sample.noise_is_known) = (1.0, false);
            }
        }
        samples.sort_by(|a, b| a.load.size().total_cmp(&b.load.size()));
        smooth(&mut samples);
        samples
    }

    fn of(point: &Observation) -> Option<Self> {
        let (seen, size, half_width) = match point.load {
            Load::Open { .. } => {
                let mean_s = point.response_s?;
                (Seen::Response { mean_s }, 1.0, point.response_half_width_s.map(|half| half / mean_s))
            }
            Load::Closed { .. } => {
                let per_s = point.closed_throughput_per_s()?;
                (Seen::Throughput { per_s }, per_s, point.throughput_half_width_per_s)
            }
        };
        let noise =
            half_width.filter(|half| *half > 0.0).map(|half| (half / HALF_WIDTH).max(LEAST_NOISE * size));
        Some(Self {
            place: point.place.clone(),
            load: point.load,
            seen,
            noise: noise.unwrap_or(1.0),
            noise_is_known: noise.is_some(),
            lost: point.lost.map(|lost| (lost, point.requests.unwrap_or(FEW_REQUESTS))),
        })
    }

    /// The number itself.
    pub(super) fn value(&self) -> f64 {
        match self.seen {
            Seen::Response { mean_s } => mean_s,
            Seen::Throughput { per_s } => per_s,
        }
    }

    /// The same sample with another number.
    pub(super) fn with_value(&self, value: f64) -> Self {
        let seen = match self.seen {
            Seen::Response { .. } => Seen::Response { mean_s: value },
            Seen::Throughput { .. } => Seen::Throughput { per_s: value },
        };
        Self { seen, ..self.clone() }
    }

    /// The mean response time, as seen or by the interactive response-time law.
    pub(super) fn response_s(&self) -> f64 {
        match (self.seen, self.load) {
            (Seen::Throughput { per_s }, Load::Closed { users, think_s }) => {
                (f64::from(users) / per_s - think_s).max(1e-3 / per_s)
            }
            (Seen::Response { mean_s }, _) => mean_s,
            (Seen::Throughput { per_s }, Load::Open { .. }) => 1.0 / per_s,
        }
    }

    /// The throughput: as seen, or as offered.
    pub(super) fn throughput_per_s(&self) -> f64 {
        match (self.seen, self.load) {
            (Seen::Throughput { per_s }, _) => per_s,
            (_, load) => load.size(),
        }
    }

    /// How far the sample is from a model in units of its noise; not a number where the model is overloaded.
    pub(super) fn residual(&self, model: &Model) -> f64 {
        let missing = match self.seen {
            Seen::Response { mean_s } => {
                model.response_s(&self.load).map(|predicted_s| libm::log(mean_s / predicted_s))
            }
            Seen::Throughput { per_s } => {
                model.throughput_per_s(&self.load).map(|predicted| per_s - predicted)
            }
        };
        missing.map_or(f64::NAN, |missing| missing / self.noise)
    }

    /// How far the share of losses is from a model in units of its binomial standard error; 0 where it was not told.
    pub(super) fn lost_residual(&self, model: &Model) -> f64 {
        let (Some((lost, requests)), Model::Served(served), Load::Open { rate_per_s }) =
            (self.lost, model, self.load)
        else {
            return 0.0;
        };
        // Agresti and Coull's (1998) shift keeps the error above zero where nothing was lost.
        let shifted = (lost * requests + 2.0) / (requests + 4.0);
        (lost - served.lost(rate_per_s)) / (shifted * (1.0 - shifted) / requests).sqrt()
    }

    /// How far a prediction is from the sample, as a share of the sample.
    pub(super) fn relative_error(&self, predicted: f64) -> f64 {
        predicted / self.value() - 1.0
    }
}
