//! Finds a model from measured points: the station, its parameters, and the errors of its predictions.
//!
//! Every candidate is fitted on the lower loads and judged by how well it predicts the higher ones, which it has not
//! seen; how well a curve goes through the points it was fitted to says little of what it predicts. Akaike's criterion
//! decides between candidates that predict equally well.
//!
//! The points come from a table of any tool ([`crate::table`]) or from kendall's own records. This module does no I/O.

mod candidate;
mod forecast;
mod line;
mod model;
mod observation;
mod population;
mod prediction;
mod ranking;
mod sample;
mod service;
mod words;

use std::sync::OnceLock;

use serde::Serialize;

use candidate::Spec;
use sample::{Prior, Sample, SampleQuantity};

pub use forecast::{Forecast, Highest, NoForecast, Slo, SloError, SloMeasure};
pub(crate) use forecast::{highest_rate, meets};
pub use model::{Family, Model, Scaling, Served};
pub use observation::{Load, Observation, Stamped};
pub use prediction::{Prediction, Question};
pub use ranking::{Candidate, HeldOut, HeldOutPoint, Split};
pub use service::{ServiceTime, Source};
pub use words::{Origin, Parameter, Quantity};

/// The largest population of a model, that of `kendall predict --users` too.
const MOST_USERS: u32 = 1_000_000;
/// The largest capacity of a station that rejects requests: each evaluation of the model adds up all its states.
const MOST_CAPACITY: u64 = 1_000_000;

/// The parameters of the station that the user gives; the fit estimates the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownParameters {
    /// The number of servers.
    pub servers: Option<u32>,
    /// The time for which a request is under way outside of the station.
    pub delay_s: Option<f64>,
    /// The station's capacity, in requests.
    pub capacity: Option<u64>,
}

/// The reason why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoFit {
    #[error(
        "only {found} of the points have a load and a steady response time or throughput, and a fit needs three; measure at more \
         loads, from 20 % to 80 % of the system's capacity{}", left_out(.why)
    )]
    TooFew { found: usize, why: Vec<String> },
    #[error("all points have the same load, {0}; a model of how the response time grows needs several loads")]
    OneLoad(String),
    #[error("some points are of an open stream and some of a closed population; fit them separately")]
    Mixed,
    #[error(
        "a capacity of {capacity} requests is more than the limit of one million for models that reject requests; check it, or leave it \
         out to have it estimated"
    )]
    Capacity { capacity: u64 },
    #[error("no model fits the points; look for mistakes in them with kendall check")]
    NothingFits,
}

fn left_out(why: &[String]) -> String {
    if why.is_empty() { String::new() } else { format!(". Left out: {}", why.join("; ")) }
}

/// The result of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// The points that were fitted, in ascending order of load.
    pub points: Vec<Observation>,
    /// Points that were not, each with the reason.
    pub left_out: Vec<String>,
    /// The service time from each source, the best source first.
    pub service: Vec<ServiceTime>,
    /// How many means of neighbouring points, or points picked from all, were fitted, where there were too many to fit each.
    pub reduced_to: Option<usize>,
    /// On which loads the candidates were judged.
    pub split: Option<Split>,
    /// The candidates, the best first.
    pub candidates: Vec<Candidate>,
    #[serde(skip)]
    samples: Vec<Sample>,
    #[serde(skip)]
    prior: Option<Prior>,
    /// The best candidate, fitted to samples drawn anew; made when first asked for.
    #[serde(skip)]
    draws: OnceLock<Vec<Model>>,
}

/// Fits all models that fit the kind of points, and ranks them by how well they predict.
///
/// # Errors
/// Fails on fewer than three steady points, on points that are all of one load, and on a capacity beyond a million where requests were
/// rejected.
pub fn fit(observations: &[Observation], given: KnownParameters) -> Result<Fit, NoFit> {
    let open = observations.iter().filter(|point| matches!(point.load, Load::Open { .. })).count();
    if open != 0 && open != observations.len() {
        return Err(NoFit::Mixed);
    }
    let (points, left_out) = steady(observations, given);
    let samples = Sample::all(&points);
    if samples.len() < 3 {
        return Err(NoFit::TooFew { found: samples.len(), why: left_out });
    }
    if samples[0].load.size() >= samples[samples.len() - 1].load.size() {
        return Err(NoFit::OneLoad(samples[0].load.to_string()));
    }
    let servers = given.servers.or_else(|| common(points.iter().map(|point| point.servers)));
    let delay_s = given.delay_s.or_else(|| mean(points.iter().map(|point| point.delay_s)));
    let stamps = service::stamps(&points);
    let scv = stamps.as_ref().and_then(|(_, scv)| *scv);
    let mut service: Vec<ServiceTime> = stamps.map(|(service, _)| service).into_iter().collect();
    let low = service::low_load(&points, delay_s);
    if let Some(mut sampled) = service::utilisation(&points, servers) {
        sampled.used &= service.is_empty();
        check_processor(&mut sampled, low.as_ref(), delay_s);
        service.push(sampled);
    }
    service.extend(low);
    let prior = service.iter().find(|service| service.used).and_then(ServiceTime::prior);
    let capacity = given.capacity.or_else(|| common(points.iter().map(|point| point.capacity)));
    let known = KnownParameters { servers, delay_s, capacity };
    let specs = specs(&samples, &points, known, scv);
    if let Some(capacity) = capacity.filter(|&capacity| capacity > MOST_CAPACITY)
        && specs.iter().any(|spec| spec.family == Family::Room)
    {
        return Err(NoFit::Capacity { capacity });
    }
    let (split, mut candidates) = ranking::ranked(&specs, &samples, prior);
    if candidates.is_empty() {
        return Err(NoFit::NothingFits);
    }
    service.extend(by_curve(&candidates, prior));
    candidates.truncate(8);
    let reduced_to = Some(samples.len()).filter(|&few| few < points.len());
    Ok(Fit {
        points,
        left_out,
        service,
        reduced_to,
        split,
        candidates,
        samples,
        prior,
        draws: OnceLock::new(),
    })
}

impl Fit {
    /// The candidate that predicts best.
    pub fn best(&self) -> &Candidate {
        self.candidates.first().expect("a fit has a candidate")
    }
}

/// The points that have a steady state, and why the others have none.
fn steady(observations: &[Observation], given: KnownParameters) -> (Vec<Observation>, Vec<String>) {
    let lossy = observations.iter().any(|point| point.lost.is_some_and(|lost| lost > 0.0));
    // Where points of a closed population have a throughput, the law that derives it from the response is for checks.
    let told = observations.iter().any(|point| point.throughput_per_s.is_some());
    let why = |point: &Observation| -> Option<String> {
        if let Some(why) = &point.unsteady {
            return Some(why.clone());
        }
        match point.load {
            Load::Closed { users, .. } if users > MOST_USERS => {
                Some(format!("models have at most {MOST_USERS} users"))
            }
            Load::Closed { .. } if told && point.throughput_per_s.is_none() => {
                Some("it has no throughput, and others have".into())
            }
            Load::Closed { .. } => point
                .closed_throughput_per_s()
                .is_none()
                .then(|| "it has neither throughput nor response".into()),
            Load::Open { .. } if point.response_s.is_none() => Some("it has no mean response time".into()),
            Load::Open { .. } if lossy => None,
            Load::Open { rate_per_s } => overloaded(point, rate_per_s, given),
        }
    };
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for point in observations {
        match why(point) {
            None => kept.push(point.clone()),
            Some(why) => left_out.push(format!("{}, {}: {why}", point.place, point.load)),
        }
    }
    kept.sort_by(|a, b| a.load.size().total_cmp(&b.load.size()));
    (kept, left_out)
}

/// The reason why an open stream exceeds the station's capacity, if it does.
fn overloaded(point: &Observation, rate_per_s: f64, given: KnownParameters) -> Option<String> {
    let servers = given.servers.or(point.servers);
    let offered = point.service.zip(servers).map(|(service, m)| rate_per_s * service.mean_s / f64::from(m));
    let rho = offered.or(point.utilisation).filter(|rho| *rho >= 1.0);
    if let Some(rho) = rho {
        return Some(format!(
            "its utilisation is {}, so there is no steady state and its mean response grows with the length of the run",
            observation::short(rho)
        ));
    }
    let done = point.throughput_per_s? / rate_per_s;
    (done < 0.95).then(|| {
        format!(
            "only {} % of the offered requests were completed, so the queue grew during the measurement",
            observation::short(done * 100.0)
        )
    })
}

/// Processor time is service time only where nothing else is waited for.
fn check_processor(sampled: &mut ServiceTime, low: Option<&ServiceTime>, delay_s: Option<f64>) {
    let Some(low) = low else { return };
    let share = sampled.mean_s / low.mean_s;
    if share > 1.05 {
        sampled.used = false;
        sampled.doubt = Some("it is more than the whole response time at the lowest load; one request uses several processors, or \
            other programs run on them".into());
    } else if delay_s.is_some() && share < 0.8 {
        sampled.used = false;
        sampled.doubt = Some(format!(
            "it is only {:.0} % of the response at the lowest load; the rest waits for something else",
            share * 100.0
        ));
    }
}

/// The models that are tried.
fn specs(samples: &[Sample], points: &[Observation], known: KnownParameters, scv: Option<f64>) -> Vec<Spec> {
    let KnownParameters { servers, delay_s, capacity } = known;
    let plain = |family| Spec { family, servers, capacity, delay_s: delay_s.or(Some(0.0)), scv };
    let delayed = |family| Spec { delay_s, ..plain(family) };
    let closed = matches!(samples[0].seen, SampleQuantity::Throughput { .. });
    let mut specs = if closed {
        vec![
            plain(Family::Exponential),
            delayed(Family::Exponential),
            plain(Family::Serial),
            delayed(Family::Serial),
        ]
    } else {
        // Sharing has the means of exponential service, whatever the law; the name is that of the law that was seen.
        let shared = scv.is_some_and(|scv| (scv - 1.0).abs() > 0.15);
        let first = if shared { Family::Sharing } else { Family::Exponential };
        let mut families = vec![first, Family::Constant];
        // Without stamps the variation is one more parameter, which points cannot separate from a delay or the number of servers.
        families.extend((scv.is_some() || servers.is_some()).then_some(Family::General));
        let told = |spec: &Spec| spec.free().len() < 3;
        families.into_iter().flat_map(|family| [plain(family), delayed(family)]).filter(told).collect()
    };
    if points.iter().any(|point| point.lost.is_some_and(|lost| lost > 0.0)) && !closed {
        specs.extend([plain(Family::Room), delayed(Family::Room)]);
    }
    specs.push(plain(Family::Scalability));
    specs.extend(closed.then_some(plain(Family::Amdahl)));
    specs.dedup();
    specs
}

/// The service time of the best model, where no other source was used.
fn by_curve(candidates: &[Candidate], prior: Option<Prior>) -> Option<ServiceTime> {
    let candidate = candidates.iter().find(|candidate| matches!(candidate.model, Model::Served(_)))?;
    let service = candidate.parameters.iter().find(|parameter| parameter.quantity == Quantity::Service)?;
    Some(ServiceTime {
        source: Source::Curve,
        mean_s: service.value,
        interval_s: service.interval,
        used: prior.is_none(),
        doubt: None,
    })
}

/// The value on which all points that have one agree.
fn common<T: PartialEq + Copy>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut told = values.flatten();
    let first = told.next()?;
    told.all(|value| value == first).then_some(first)
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let told: Vec<f64> = values.flatten().collect();
    (!told.is_empty()).then(|| kendall_stats::mean(&told))
}
