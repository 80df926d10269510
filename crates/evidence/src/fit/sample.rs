//! The numbers that are fitted, and how noisy each is.

use super::line::Line;
use super::model::Model;
use super::observation::{Load, Observation};

/// A quantity that is measured at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SampleQuantity {
    /// Mean response time of an open stream. Its errors are taken as proportional to it.
    Response { mean_s: f64 },
    /// Throughput of a closed population. Its errors are taken as of one size.
    Throughput { per_s: f64 },
}

/// One number to fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) load: Load,
    pub(super) seen: SampleQuantity,
    /// The standard error: of a response time relative to it, of a throughput in 1/s; 1 where it is not known.
    pub(super) noise: f64,
    pub(super) noise_is_known: bool,
    /// The share of rejected requests, and how many requests it is based on.
    lost: Option<(f64, f64)>,
}

/// What is known of the service time from elsewhere than response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    pub(super) service_s: f64,
    /// The standard error, relative to the service time.
    pub(super) relative_error: f64,
}

/// From the half-width of a 95 % interval to a standard error.
const HALF_WIDTH: f64 = 1.96;
/// No sample is believed to be more exact than this, relative to it: what moves a machine from trial to trial is more.
const LEAST_NOISE: f64 = 1e-3;
/// The number of requests assumed behind a share of losses if the table does not give it.
const FEW_REQUESTS: f64 = 1e3;

/// The most samples that are fitted: the interval of a parameter evaluates the model some ten thousand times for each.
const MOST_SAMPLES: usize = 40;

/// Replaces neighbouring samples by their means where there are too many. Where almost every sample has a different think time, there
/// are no neighbours, and some samples are picked at equal distances instead.
fn thinned(mut samples: Vec<Sample>) -> Vec<Sample> {
    if samples.len() <= MOST_SAMPLES {
        return samples;
    }
    samples.sort_by(|a, b| a.load.think_s().total_cmp(&b.load.think_s()).then(a.by_load(b)));
    let widths = std::iter::successors(Some(0.0), |width| Some(1.25_f64.mul_add(*width, 1e-4)));
    let mut groupings = widths.take_while(|width| *width < 1.0).map(|width| groups(&samples, width));
    let few = groupings.find(|groups| groups.len() <= MOST_SAMPLES);
    let means = few.map(|groups| groups.into_iter().map(Sample::mean).collect());
    let mut kept: Vec<Sample> = means.unwrap_or_else(|| {
        samples.sort_by(Sample::by_load);
        let step = samples.len().div_ceil(MOST_SAMPLES);
        samples.into_iter().step_by(step).collect()
    });
    kept.sort_by(Sample::by_load);
    kept
}

/// Groups of samples with one think time whose loads differ by at most this share of the highest load, or at low loads by four times
/// this share of the load itself: the curve is steep near saturation and bends at low loads. The samples are in order of think time and
/// load.
fn groups(samples: &[Sample], width: f64) -> Vec<&[Sample]> {
    let highest = samples.iter().map(|sample| sample.load.size()).fold(0.0, f64::max);
    let belongs = |first: &Sample, sample: &Sample| {
        let low = first.load.size();
        let is_near = sample.load.size() <= low + width * highest.min(4.0 * low);
        is_near && sample.load.think_s() == first.load.think_s()
    };
    let mut rest = samples;
    let mut groups = Vec::new();
    while let Some(first) = rest.first() {
        let n = rest.iter().take_while(|sample| belongs(first, sample)).count();
        let (group, others) = rest.split_at(n.max(1));
        groups.push(group);
        rest = others;
    }
    groups
}

/// Puts the noise of open samples on a line over the response time, both as logarithms. An interval is itself a guess,
/// and narrow where the response happens to be short: weighed by it, points pull every fit down. That the noise grows with
/// the response is theory: of M/M/1 in proportion to it (Daley 1968).
fn smooth(samples: &mut [Sample]) {
    let open =
        |sample: &Sample| matches!(sample.seen, SampleQuantity::Response { .. }) && sample.noise_is_known;
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
    /// The samples of some points, in ascending order of load; of many points, the means of neighbours. Noise counts as known only
    /// where every point has it.
    pub(super) fn all(points: &[Observation]) -> Vec<Self> {
        let mut samples: Vec<Self> = points.iter().filter_map(Self::of).collect();
        if !samples.iter().all(|sample| sample.noise_is_known) {
            for sample in &mut samples {
                (sample.noise, sample.noise_is_known) = (1.0, false);
            }
        }
        samples.sort_by(Self::by_load);
        let mut samples = thinned(samples);
        smooth(&mut samples);
        samples
    }

    fn of(point: &Observation) -> Option<Self> {
        let (seen, size, half_width) = match point.load {
            Load::Open { .. } => {
                let mean_s = point.response_s?;
                (
                    SampleQuantity::Response { mean_s },
                    1.0,
                    point.response_half_width_s.map(|half| half / mean_s),
                )
            }
            Load::Closed { .. } => {
                let per_s = point.closed_throughput_per_s()?;
                (SampleQuantity::Throughput { per_s }, per_s, point.throughput_half_width_per_s)
            }
        };
        let noise =
            half_width.filter(|half| *half > 0.0).map(|half| (half / HALF_WIDTH).max(LEAST_NOISE * size));
        Some(Self {
            load: point.load,
            seen,
            noise: noise.unwrap_or(1.0),
            noise_is_known: noise.is_some(),
            lost: point.lost.map(|lost| (lost, point.requests.unwrap_or(FEW_REQUESTS))),
        })
    }

    fn by_load(&self, other: &Self) -> std::cmp::Ordering {
        self.load.size().total_cmp(&other.load.size())
    }

    /// The mean of samples of nearly the same load.
    fn mean(group: &[Self]) -> Self {
        let first = &group[0];
        let n = group.len() as f64;
        let mean = |of: &dyn Fn(&Self) -> f64| group.iter().map(of).sum::<f64>() / n;
        let load = match first.load {
            Load::Open { .. } => Load::Open { rate_per_s: mean(&|sample| sample.load.size()) },
            Load::Closed { .. } => Load::Closed {
                users: mean(&|sample| sample.load.size()).round() as u32,
                think_s: mean(&|sample| sample.load.think_s()),
            },
        };
        // The inverse of a response time is nearly straight, also near saturation, where the time itself bends most.
        let value = match first.seen {
            SampleQuantity::Response { .. } => 1.0 / mean(&|sample| 1.0 / sample.value()),
            SampleQuantity::Throughput { .. } => mean(&Self::value),
        };
        let noise =
            if first.noise_is_known { (mean(&|sample| sample.noise.powi(2)) / n).sqrt() } else { 1.0 };
        let requests: f64 = group.iter().filter_map(|sample| sample.lost).map(|(_, requests)| requests).sum();
        let lost: f64 = group.iter().filter_map(|sample| sample.lost).map(|(lost, of)| lost * of).sum();
        let known = group.iter().all(|sample| sample.lost.is_some());
        Self { load, noise, lost: known.then_some((lost / requests, requests)), ..first.with_value(value) }
    }

    /// The number itself.
    pub(super) fn value(&self) -> f64 {
        match self.seen {
            SampleQuantity::Response { mean_s } => mean_s,
            SampleQuantity::Throughput { per_s } => per_s,
        }
    }

    /// Returns the sample with another value.
    pub(super) fn with_value(&self, value: f64) -> Self {
        let seen = match self.seen {
            SampleQuantity::Response { .. } => SampleQuantity::Response { mean_s: value },
            SampleQuantity::Throughput { .. } => SampleQuantity::Throughput { per_s: value },
        };
        Self { seen, ..self.clone() }
    }

    /// The mean response time, as seen or by the interactive response-time law.
    pub(super) fn response_s(&self) -> f64 {
        match (self.seen, self.load) {
            (SampleQuantity::Throughput { per_s }, Load::Closed { users, think_s }) => {
                (f64::from(users) / per_s - think_s).max(1e-3 / per_s)
            }
            (SampleQuantity::Response { mean_s }, _) => mean_s,
            (SampleQuantity::Throughput { per_s }, Load::Open { .. }) => 1.0 / per_s,
        }
    }

    /// The throughput: as seen, or as offered.
    pub(super) fn throughput_per_s(&self) -> f64 {
        match (self.seen, self.load) {
            (SampleQuantity::Throughput { per_s }, _) => per_s,
            (_, load) => load.size(),
        }
    }

    /// How far the sample is from a model in units of its noise; not a number where the model is overloaded.
    pub(super) fn residual(&self, model: &Model) -> f64 {
        let missing = match self.seen {
            SampleQuantity::Response { mean_s } => {
                model.response_s(&self.load).map(|predicted_s| libm::log(mean_s / predicted_s))
            }
            SampleQuantity::Throughput { per_s } => {
                model.throughput_per_s(&self.load).map(|predicted| per_s - predicted)
            }
        };
        missing.map_or(f64::NAN, |missing| missing / self.noise)
    }

    /// How far the share of losses is from a model in units of its binomial standard error; 0 if there is no share of losses.
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

    /// The relative error of a prediction of the sample.
    pub(super) fn relative_error(&self, predicted: f64) -> f64 {
        predicted / self.value() - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(users: u32, think_s: f64, per_s: f64) -> Observation {
        let point = Observation::at(String::new(), Load::Closed { users, think_s });
        Observation { throughput_per_s: Some(per_s), ..point }
    }

    #[test]
    fn many_samples_become_few_means_of_neighbours_with_one_think_time() {
        let points: Vec<Observation> = (1..=1_000_u32)
            .flat_map(|users| [1.0, 2.0].map(|think_s| closed(users, think_s, f64::from(users) / think_s)))
            .collect();
        let samples = Sample::all(&points);
        assert!((10..=MOST_SAMPLES).contains(&samples.len()), "{}", samples.len());
        assert!(samples.is_sorted_by(|a, b| a.load.size() <= b.load.size()));
        for sample in &samples {
            let expected = sample.load.size() / sample.load.think_s();
            assert!((sample.value() / expected - 1.0).abs() < 0.3, "{sample:?}");
            assert!([1.0, 2.0].contains(&sample.load.think_s()), "{sample:?}");
        }
    }

    #[test]
    fn samples_that_have_no_neighbours_are_picked_from_the_whole_range() {
        let points: Vec<Observation> =
            (1..=1_000_u32).map(|users| closed(users, f64::from(users), 1.0)).collect();
        let samples = Sample::all(&points);
        assert!((20..=MOST_SAMPLES).contains(&samples.len()), "{}", samples.len());
        assert!(samples[0].load.size() < 50.0 && samples[samples.len() - 1].load.size() > 950.0);
    }
}
