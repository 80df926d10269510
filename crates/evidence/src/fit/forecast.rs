//! Predictions of a fitted model, and their intervals.
//!
//! Intervals are from a parametric bootstrap (Efron and Tibshirani 1993, section 6.5): the samples are drawn anew around
//! the fit, with the noise that the fit found and Student's correction for few samples, and fitted again. An error of the
//! service time grows by 1/(1 − ρ) on its way into the response time, and the interval shows that; an end that lies beyond
//! saturation is infinite.

use std::str::FromStr;

use kendall_station::{Estimate, QUANTILES, Quantile, Summary};
use kendall_stats::random::{Purpose, stream};
use rand_distr::{ChiSquared, Distribution as _, StandardNormal};
use serde::Serialize;

use super::candidate::{Data, predicted};
use super::model::{Model, Served};
use super::observation::{Load, short};
use super::sample::{Prior, Sample, SampleQuantity};
use super::{Candidate, Fit};
use crate::expect::{Expectation, Measure, Side};
use kendall_theory::{formula, response_survival};

/// The number of times that the samples are drawn anew.
const DRAWS: u64 = 400;
/// No model is asked for more servers or users than this.
const MOST: u32 = 100_000;
/// An objective that holds at this many times the rate that keeps all servers busy holds at every rate.
const FAR_BEYOND: f64 = 1000.0;

/// The prediction of a model at a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The load.
    pub load: Load,
    /// The response time, delay included. An interval's upper end is infinite where parameters that the points do not
    /// refute put the load beyond saturation.
    pub response: Summary,
    /// The reason why the quantiles are missing, if they are.
    pub no_quantiles: Option<String>,
    /// Completed requests per second.
    pub throughput_per_s: Estimate,
    /// The busy share of the servers, of the bottleneck where there are several parts; `None` for laws without servers.
    pub utilisation: Option<Estimate>,
    /// The factor by which an error of the service time grows on its way into the waiting time: 1/(1 − ρ).
    pub amplification: Option<f64>,
    /// The share of the bootstrap's draws that sustain the load.
    pub steady: f64,
}

/// The reason why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoForecast {
    #[error(
        "overload: at {load} the utilisation would be {}, and the queue would grow by {} requests per second without end; the capacity \
         of {model} is {}/s", short(*.rho), short(*.growth_per_s), short(*.capacity_per_s)
    )]
    Overload { load: Load, rho: f64, growth_per_s: f64, capacity_per_s: f64, model: String },
    #[error("{slo} is not met at any load: {why}")]
    NeverMet { slo: Slo, why: String },
    #[error("there is no highest rate, because {slo} is met at every rate: {why}")]
    AlwaysMet { slo: Slo, why: &'static str },
    #[error("the model {0} has no number of servers; name another model, or give more points")]
    NoServers(String),
    #[error("the fit is of {fitted}, which has no {asked}; give {instead}")]
    WrongLoad { fitted: &'static str, asked: &'static str, instead: &'static str },
    #[error("{model} gives no quantiles: {why}; use the mean")]
    NoQuantile { model: String, why: String },
}

/// The highest load that meets an aim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Highest {
    /// Requests per second, or users of a closed population. The whole interval is of loads that may be the highest.
    pub load: Estimate,
    /// The highest rate as a load.
    pub at: Load,
    /// The utilisation there.
    pub utilisation: Option<f64>,
}

/// The statistic that must stay below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SloMeasure {
    /// The mean response time.
    Mean,
    /// A quantile of the response time.
    Quantile(f64),
}

/// A service level objective: "p99<50ms".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slo {
    /// The statistic.
    pub measure: SloMeasure,
    /// The objective's limit, in seconds.
    pub at_most_s: f64,
}

/// The reason why an objective cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid objective; write a statistic and the time it must stay below, such as 'p99<50ms' or 'mean<0.2s'"
)]
pub struct SloError(String);

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        let read = || {
            let Expectation { measure, side: Side::Below, limit: at_most_s } = text.parse().ok()? else {
                return None;
            };
            let measure = match measure {
                Measure::Mean => SloMeasure::Mean,
                Measure::Quantile(p) => SloMeasure::Quantile(p),
                Measure::Throughput | Measure::Errors => return None,
            };
            Some(Self { measure, at_most_s })
        };
        read().ok_or_else(|| SloError(text.to_owned()))
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let measure = match self.measure {
            SloMeasure::Mean => Measure::Mean,
            SloMeasure::Quantile(p) => Measure::Quantile(p),
        };
        write!(f, "{}", Expectation { measure, side: Side::Below, limit: self.at_most_s })
    }
}

impl Fit {
    /// The prediction of the best candidate at a load, with `servers` in place of the fitted number if given.
    ///
    /// # Errors
    /// Fails if the load exceeds the model's capacity, and says by how much.
    pub fn forecast(&self, load: Load, servers: Option<u32>) -> Result<Forecast, NoForecast> {
        let candidate = self.best();
        let model = with_servers(candidate, servers)?;
        let draws = self.draws(servers);
        let mean_s = |model: &Model| model.response_s(&load).unwrap_or(f64::INFINITY);
        if !mean_s(&model).is_finite() {
            return Err(overload(candidate, &model, load));
        }
        let (quantiles, no_quantiles) = match quantiles(&model, &load) {
            Ok(quantiles) => (quantiles, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        // A quantile costs a thousand times what a mean does; a hundred draws do.
        let by_draw: Vec<Vec<Quantile>> = match quantiles.is_empty() {
            true => Vec::new(),
            false => {
                draws.iter().step_by(4).map(|draw| self::quantiles(draw, &load).unwrap_or_default()).collect()
            }
        };
        let of_draws = |(i, quantile): (usize, &Quantile)| {
            let value =
                |quantiles: &Vec<Quantile>| quantiles.get(i).map_or(f64::INFINITY, |q| q.value_s.value);
            let value_s = within(quantile.value_s.value, by_draw.iter().map(value).collect());
            Quantile { value_s, ..*quantile }
        };
        let utilisation = utilisation(&model, &load).map(|rho| {
            let of_draw = |draw: &Model| self::utilisation(draw, &load).unwrap_or(rho);
            within(rho, draws.iter().map(of_draw).collect())
        });
        let throughput = |model: &Model| {
            model.throughput_per_s(&load).unwrap_or_else(|| model.capacity_per_s().unwrap_or(0.0))
        };
        let steady = draws.iter().filter(|draw| mean_s(draw).is_finite()).count();
        Ok(Forecast {
            load,
            response: Summary {
                mean_s: within(mean_s(&model), draws.iter().map(mean_s).collect()),
                variance_s2: None,
                quantiles: quantiles.iter().enumerate().map(of_draws).collect(),
            },
            no_quantiles,
            throughput_per_s: within(throughput(&model), draws.iter().map(throughput).collect()),
            amplification: utilisation
                .filter(|rho| rho.value < 1.0 && matches!(load, Load::Open { .. }))
                .map(|rho| 1.0 / (1.0 - rho.value)),
            utilisation,
            steady: if draws.is_empty() { 1.0 } else { steady as f64 / draws.len() as f64 },
        })
    }

    /// The highest load of the kind that was measured at which the best candidate meets an objective.
    ///
    /// # Errors
    /// Fails if no load meets the objective, if every rate does, or if the model cannot decide, and says why.
    pub fn highest(&self, slo: Slo, servers: Option<u32>) -> Result<Highest, NoForecast> {
        let candidate = self.best();
        let model = with_servers(candidate, servers)?;
        let at = |size: f64| match self.samples[0].load {
            Load::Open { .. } => Load::Open { rate_per_s: size },
            Load::Closed { think_s, .. } => Load::Closed { users: size as u32, think_s },
        };
        let highest = |model: &Model| -> Result<f64, String> {
            match self.samples[0].load {
                Load::Open { .. } => highest_rate(model, slo),
                Load::Closed { .. } => most(|users| meets(model, &at(f64::from(users)), slo)).map(f64::from),
            }
        };
        let why_not = |why: String| match slo.measure {
            SloMeasure::Quantile(_) if !why.is_empty() => {
                NoForecast::NoQuantile { model: candidate.name.clone(), why }
            }
            _ => NoForecast::NeverMet {
                slo,
                why: "the response time of an idle station is already longer".into(),
            },
        };
        let found = highest(&model).map_err(why_not)?;
        if found == 0.0 {
            return Err(why_not(String::new()));
        }
        if found.is_infinite() {
            let why = match model {
                Model::Served(_) => {
                    "the station rejects the requests that exceed its capacity, so the others never wait long; limit the share of \
                     rejected requests instead"
                }
                Model::Scaling(_) => "by this model, the response time does not grow with the rate",
            };
            return Err(NoForecast::AlwaysMet { slo, why });
        }
        let of_draws = self.draws(servers).iter().map(|draw| highest(draw).unwrap_or(0.0)).collect();
        Ok(Highest {
            load: within(found, of_draws),
            at: at(found),
            utilisation: utilisation(&model, &at(found)),
        })
    }

    /// The fewest servers with which the best candidate meets an objective at a load, with those that may be needed at
    /// 95 %.
    ///
    /// # Errors
    /// Says why no number of servers meets it.
    pub fn servers_needed(&self, load: Load, slo: Slo) -> Result<Estimate, NoForecast> {
        let candidate = self.best();
        let Model::Served(served) = candidate.model else {
            return Err(NoForecast::NoServers(candidate.name.clone()));
        };
        let fewest = |served: Served| fewest_servers(served, &load, slo);
        let found = match fewest(served) {
            Ok(Some(servers)) => f64::from(servers),
            Ok(None) => {
                return Err(NoForecast::NeverMet {
                    slo,
                    why: "no number of servers is enough, because the rest of the request already takes as long".into(),
                });
            }
            Err(why) => return Err(NoForecast::NoQuantile { model: candidate.name.clone(), why }),
        };
        let of_draw = |draw: &Model| match draw {
            Model::Served(served) => fewest(*served).ok().flatten().map_or(f64::INFINITY, f64::from),
            Model::Scaling(_) => f64::INFINITY,
        };
        Ok(within(found, self.draws(None).iter().map(of_draw).collect()))
    }

    /// The models fitted to the resampled points, with `servers` in place of the fitted number if given.
    fn draws(&self, servers: Option<u32>) -> Vec<Model> {
        let draws = self.draws.get_or_init(|| self.drawn());
        draws.iter().map(|draw| draw.with_servers(servers)).collect()
    }

    fn drawn(&self) -> Vec<Model> {
        let candidate = self.best();
        let fitted = &candidate.fitted;
        if fitted.freedom < 1.0 {
            return Vec::new();
        }
        let spread = fitted.variance(&self.samples).sqrt();
        let chi_squared = ChiSquared::new(fitted.freedom).expect("degrees of freedom are positive");
        let draw = |index: u64| {
            let mut rng = stream(1, Purpose::Trial, index);
            let size = spread * (fitted.freedom / chi_squared.sample(&mut rng)).sqrt();
            let mut noise = || -> f64 {
                let normal: f64 = StandardNormal.sample(&mut rng);
                size * normal
            };
            let drawn = |sample: &Sample| {
                let centre = predicted(&candidate.model, sample).unwrap_or_else(|| sample.value());
                let by = noise() * sample.noise * fitted.noise;
                sample.with_value(match sample.seen {
                    SampleQuantity::Response { .. } => centre * libm::exp(by),
                    SampleQuantity::Throughput { .. } => (centre + by).max(1e-9 * centre),
                })
            };
            let samples: Vec<Sample> = self.samples.iter().map(drawn).collect();
            let prior = self.prior.map(|prior| {
                let Model::Served(served) = candidate.model else { return prior };
                Prior { service_s: served.service_s * libm::exp(noise() * prior.relative_error), ..prior }
            });
            let Data { prior, noise, .. } = fitted.data(&self.samples, prior);
            let data = Data { samples: &samples, prior, noise };
            let refits =
                fitted.alternatives.iter().map(|(shape, from)| (shape, shape.refitted(&data, &from.at)));
            let best = refits.min_by(|a, b| a.1.sum.total_cmp(&b.1.sum));
            best.map(|(shape, minimum)| shape.model(&minimum.at))
        };
        (0..DRAWS).filter_map(draw).collect()
    }
}

impl Model {
    fn with_servers(self, servers: Option<u32>) -> Self {
        match (self, servers) {
            (Self::Served(served), Some(servers)) => {
                let room = |capacity: u64| capacity - u64::from(served.servers) + u64::from(servers);
                Self::Served(Served { servers, capacity: served.capacity.map(room), ..served })
            }
            _ => self,
        }
    }
}

fn with_servers(candidate: &Candidate, servers: Option<u32>) -> Result<Model, NoForecast> {
    match (candidate.model, servers) {
        (Model::Scaling(_), Some(_)) => Err(NoForecast::NoServers(candidate.name.clone())),
        (model, servers) => Ok(model.with_servers(servers)),
    }
}

fn overload(candidate: &Candidate, model: &Model, load: Load) -> NoForecast {
    let capacity_per_s = model.capacity_per_s().unwrap_or(f64::INFINITY);
    NoForecast::Overload {
        load,
        rho: load.size() / capacity_per_s,
        growth_per_s: load.size() - capacity_per_s,
        capacity_per_s,
        model: candidate.name.clone(),
    }
}

/// A value with the middle 95 % of what the draws say; no interval without draws.
fn within(value: f64, mut draws: Vec<f64>) -> Estimate {
    if draws.is_empty() {
        return Estimate::exact(value);
    }
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((draws.len() - 1) as f64 * share).round() as usize];
    Estimate { value, interval: Some((at(0.025).min(value), at(0.975).max(value))) }
}

/// The busy share of the servers, or of the serial part where that is busier.
fn utilisation(model: &Model, load: &Load) -> Option<f64> {
    let Model::Served(served) = model else { return None };
    let done_per_s = model.throughput_per_s(load).unwrap_or_else(|| load.size());
    Some(done_per_s * (served.service_s / f64::from(served.servers)).max(served.serial_s))
}

/// The quantiles of the response time by formula, delay included, or why they are missing.
fn quantiles(model: &Model, load: &Load) -> Result<Vec<Quantile>, String> {
    let (Some(station), Model::Served(served)) = (model.station(load), model) else {
        return Err("this model gives only means".into());
    };
    let answer = formula(&station).map_err(|why| why.to_string())?;
    if answer.response.quantiles.is_empty() {
        return Err("its formula gives only means".into());
    }
    Ok(answer.response.shifted(served.delay_s).quantiles)
}

/// Whether a model meets an objective at a load, or why that is unknown. An overloaded model does not.
pub(crate) fn meets(model: &Model, load: &Load, slo: Slo) -> Result<bool, String> {
    let Some(mean_s) = model.response_s(load) else { return Ok(false) };
    let p = match slo.measure {
        SloMeasure::Mean => return Ok(mean_s <= slo.at_most_s),
        SloMeasure::Quantile(p) => p,
    };
    let (Some(station), Model::Served(served)) = (model.station(load), model) else {
        return Err("this model gives only means".into());
    };
    let left_s = slo.at_most_s - served.delay_s;
    match response_survival(&station, left_s) {
        Ok(later) => Ok(left_s > 0.0 && later <= 1.0 - p),
        // Approximations may have quantiles without the whole distribution.
        Err(why) if QUANTILES.iter().any(|known| (known - p).abs() < 1e-12) => {
            let quantiles = quantiles(model, load).map_err(|_| why.to_string())?;
            let found = quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-12);
            Ok(found.is_some_and(|quantile| quantile.value_s.value <= slo.at_most_s))
        }
        Err(why) => Err(why.to_string()),
    }
}

/// The highest rate at which a model meets an objective; 0 if it never does, and infinite if it always does.
pub(crate) fn highest_rate(model: &Model, slo: Slo) -> Result<f64, String> {
    let ok = |rate_per_s: f64| meets(model, &Load::Open { rate_per_s }, slo);
    // A station that rejects requests, and a law without a maximum, have a response time at any rate.
    let busy_per_s = match model {
        Model::Served(served) => f64::from(served.servers) / served.service_s,
        Model::Scaling(scaling) => scaling.alone_per_s,
    };
    let mut high = model.capacity_per_s().filter(|most| most.is_finite()).unwrap_or(busy_per_s);
    let far_per_s = FAR_BEYOND * high;
    let mut low = 1e-6 * high;
    if !ok(low)? {
        return Ok(0.0);
    }
    while ok(high)? {
        if high >= far_per_s {
            return Ok(f64::INFINITY);
        }
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if ok(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// The largest whole number up to which a condition holds, by doubling and halving; 0 if it never does.
fn most(holds: impl Fn(u32) -> Result<bool, String>) -> Result<u32, String> {
    let (mut low, mut high) = (0, 1);
    while high <= MOST && holds(high)? {
        (low, high) = (high, 2 * high);
    }
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if holds(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// The fewest servers that meet an objective at a load; `None` if no number does.
fn fewest_servers(served: Served, load: &Load, slo: Slo) -> Result<Option<u32>, String> {
    let with = |servers: u32| Model::Served(served).with_servers(Some(servers));
    let fails = |servers: u32| meets(&with(servers), load, slo).map(|met| !met);
    let enough = most(fails)? + 1;
    Ok((enough <= MOST).then_some(enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Family, Scaling};

    /// In M/M/1/5 with a service time of 10 s, an accepted request takes 50 s at most.
    #[test]
    fn a_station_that_rejects_requests_meets_some_objectives_at_every_rate() {
        let station = Served {
            family: Family::Room,
            servers: 1,
            service_s: 10.0,
            scv: 1.0,
            delay_s: 0.0,
            serial_s: 0.0,
            capacity: Some(5),
        };
        let model = Model::Served(station);
        let highest = |text: &str| highest_rate(&model, text.parse().unwrap()).unwrap();
        for always in ["mean<60s", "p99<5min"] {
            assert_eq!(highest(always), f64::INFINITY, "{always}");
        }
        for limited in ["mean<30s", "p90<40s"] {
            let (slo, rate) = (limited.parse().unwrap(), highest(limited));
            let met = |rate_per_s: f64| meets(&model, &Load::Open { rate_per_s }, slo).unwrap();
            assert!((0.01..1.0).contains(&rate) && met(0.999 * rate) && !met(1.001 * rate), "{rate}");
        }
        assert_eq!(highest("mean<9s"), 0.0);
    }

    #[test]
    fn a_law_without_contention_meets_an_objective_at_every_rate_or_at_none() {
        let model = Model::Scaling(Scaling { alone_per_s: 0.01, contention: 0.0, coherency: 0.0 });
        let highest = |text: &str| highest_rate(&model, text.parse().unwrap()).unwrap();
        assert_eq!((highest("mean<101s"), highest("mean<99s")), (f64::INFINITY, 0.0));
    }
}
