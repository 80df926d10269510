//! From the stations that the measurements allow to the response times of a run that has not been made.

use kendall_evidence::Visit;
use kendall_station::{Discipline, Estimate};
use kendall_stats::random::{Purpose, exponential, stream};
use serde::Serialize;

use crate::candidate::{Mix, candidates, responses_s};
use crate::implied::Order;
use crate::observed::Observed;
use crate::posterior::{Draw, Posterior};

/// The quantiles that are predicted.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Stations that are drawn.
const DRAWS: u64 = 120;
/// Requests that are simulated of a run; the noise of a longer run is that of this many.
const MOST_SIMULATED: u64 = 60_000;
/// The share of a simulated run that fills the station and is not counted.
const WARMUP: f64 = 0.1;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Requests per second, as a Poisson process.
    pub rate_per_s: f64,
    /// The requests of the run that the prediction is for: a short run scatters more, and its intervals are wider.
    pub requests: u64,
    /// Another number of servers than the station has.
    pub servers: Option<u32>,
    /// Another order of service.
    pub discipline: Option<Discipline>,
    /// Other proportions of the classes, by their numbers.
    pub mix: Option<Vec<f64>>,
    /// Time on another link that every request takes more, in seconds.
    pub more_delay_s: f64,
}

impl Question {
    /// The measured server at a rate, in a run of this many requests.
    pub fn at(rate_per_s: f64, requests: u64) -> Self {
        Self { rate_per_s, requests, servers: None, discipline: None, mix: None, more_delay_s: 0.0 }
    }
}

/// A station that the measurements allow, and how likely it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Allowed {
    /// How it serves.
    pub order: Order,
    /// How many servers it has.
    pub servers: u32,
    /// The share of the draws that have it.
    pub share: f64,
}

/// The predicted response times of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Requests per second.
    pub rate_per_s: f64,
    /// The requests of the run.
    pub requests: u64,
    /// The mean response time, in seconds. Intervals contain what a run of that length measures, with 95 % probability.
    pub mean_s: Estimate,
    /// Quantiles of the response time.
    pub quantiles: Vec<(f64, Estimate)>,
    /// The capacity, in requests per second.
    pub capacity_per_s: Estimate,
    /// The rate over the capacity.
    pub utilisation: Estimate,
    /// The mean service time at that rate, in seconds.
    pub service_s: Estimate,
    /// The time outside the station, in seconds.
    pub delay_s: Estimate,
    /// The share of the draws whose capacity is above the rate.
    pub steady: f64,
    /// The stations among the draws, the likeliest first.
    pub stations: Vec<Allowed>,
}

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoPrediction {
    #[error(
        "overload: the rate of {rate_per_s:.4}/s exceeds the capacity of {capacity_per_s:.4}/s, so the queue would grow as long as the run \
         lasts"
    )]
    Overload { rate_per_s: f64, capacity_per_s: f64 },
    #[error("class {0} of the mix was not measured; measure it first")]
    UnmeasuredClass(usize),
}

/// Everything that the measurements say of a server; each question is then answered without reading them again.
pub struct Predictor {
    draws: Vec<Draw>,
    lag_s: f64,
    seed: u64,
}

impl Predictor {
    /// Fits the candidate stations.
    pub fn new(observed: &Observed, seed: u64) -> Self {
        let posterior = Posterior::of(observed, candidates(observed), seed);
        let draws = (0..DRAWS).map(|index| posterior.draw(index)).collect();
        Self { draws, lag_s: observed.highest().lag_s(), seed }
    }

    /// The highest rate that the station sustains, in requests per second.
    pub fn capacity_per_s(&self, servers: Option<u32>) -> Estimate {
        within(self.draws.iter().map(|draw| draw.capacity_per_s(servers)).collect())
    }

    /// Predicts the response times of a run.
    ///
    /// # Errors
    /// Fails where the rate exceeds the capacity, and where a class was not measured.
    pub fn predict(&self, question: &Question) -> Result<Prediction, NoPrediction> {
        let capacity = self.capacity_per_s(question.servers);
        if question.rate_per_s >= capacity.value {
            return Err(NoPrediction::Overload {
                rate_per_s: question.rate_per_s,
                capacity_per_s: capacity.value,
            });
        }
        let runs = self.runs(question)?;
        let of = |value: &dyn Fn(&Run) -> f64| within(runs.iter().map(value).collect());
        let of_draws = |value: &dyn Fn(&Draw) -> f64| within(self.draws.iter().map(value).collect());
        let quantile = |(at, p): (usize, f64)| (p, of(&|run| run.quantiles_s[at]));
        let steady = |draw: &&Draw| question.rate_per_s < draw.capacity_per_s(question.servers);
        Ok(Prediction {
            rate_per_s: question.rate_per_s,
            requests: question.requests,
            mean_s: of(&|run| run.mean_s),
            quantiles: QUANTILES.into_iter().enumerate().map(quantile).collect(),
            capacity_per_s: capacity,
            utilisation: of_draws(&|draw| question.rate_per_s / draw.capacity_per_s(question.servers)),
            service_s: of_draws(&|draw| draw.service_s(question.rate_per_s, question.servers)),
            delay_s: of_draws(&|draw| draw.candidate.delay_s),
            steady: self.draws.iter().filter(steady).count() as f64 / self.draws.len() as f64,
            stations: self.stations(),
        })
    }

    /// A simulated run of each drawn station.
    fn runs(&self, question: &Question) -> Result<Vec<Run>, NoPrediction> {
        let counted = question.requests.clamp(100, MOST_SIMULATED);
        let n = (counted as f64 * (1.0 + WARMUP)) as usize;
        let mut visits = vec![Visit { arrival_s: 0.0, service_s: 0.0, class: 0 }; n];
        let run = |(index, draw): (usize, &Draw)| {
            let mut rng = stream(self.seed, Purpose::Arrivals, index as u64);
            let mut now_s = 0.0;
            for visit in &mut visits {
                now_s += exponential(&mut rng) / question.rate_per_s;
                visit.arrival_s = now_s;
            }
            let servers = question.servers.unwrap_or(draw.candidate.servers);
            let service_s = draw.service_s(question.rate_per_s, question.servers) * draw.slower;
            match &question.mix {
                None => draw.services.draw(service_s, &mut rng, &mut visits),
                Some(shares) => {
                    let mix = Mix::of(&draw.services, shares).ok_or_else(|| {
                        NoPrediction::UnmeasuredClass(shares.iter().rposition(|share| *share > 0.0).unwrap_or(0))
                    })?;
                    draw.services.draw_mixed(service_s, &mix, &mut rng, &mut visits);
                }
            }
            let discipline = question.discipline.unwrap_or_else(|| draw.candidate.order.discipline());
            let delay_s = draw.candidate.delay_s + question.more_delay_s + self.lag_s;
            let mut all_s = responses_s(&visits, discipline, servers, delay_s);
            all_s.drain(..n - counted as usize);
            Ok(Run::of(all_s))
        };
        self.draws.iter().enumerate().map(run).collect()
    }

    fn stations(&self) -> Vec<Allowed> {
        let mut stations: Vec<Allowed> = Vec::new();
        let one = 1.0 / self.draws.len() as f64;
        for draw in &self.draws {
            let (order, servers) = (draw.candidate.order, draw.candidate.servers);
            match stations.iter_mut().find(|known| (known.order, known.servers) == (order, servers)) {
                Some(known) => known.share += one,
                None => stations.push(Allowed { order, servers, share: one }),
            }
        }
        stations.sort_by(|a, b| b.share.total_cmp(&a.share));
        stations
    }
}

impl Draw {
    fn capacity_per_s(&self, servers: Option<u32>) -> f64 {
        let more = servers.map_or(1.0, |servers| f64::from(servers) / f64::from(self.candidate.servers));
        more * self.path.capacity_per_s / self.slower
    }

    /// The mean service time at a rate, before the speed of the day. With other servers it is that at the same utilisation.
    fn service_s(&self, rate_per_s: f64, servers: Option<u32>) -> f64 {
        let more = servers.map_or(1.0, |servers| f64::from(servers) / f64::from(self.candidate.servers));
        self.path.service_s(rate_per_s / more)
    }
}

/// What one simulated run measured.
struct Run {
    mean_s: f64,
    quantiles_s: [f64; QUANTILES.len()],
}

impl Run {
    fn of(mut responses_s: Vec<f64>) -> Self {
        let mean_s = kendall_stats::mean(&responses_s);
        responses_s.sort_unstable_by(f64::total_cmp);
        let n = responses_s.len() as f64;
        let quantiles_s = QUANTILES.map(|p| responses_s[((p * n).ceil() as usize - 1).min(responses_s.len() - 1)]);
        Self { mean_s, quantiles_s }
    }
}

/// The median of the draws, and the middle 95 % of them.
fn within(mut draws: Vec<f64>) -> Estimate {
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (draws.len() - 1) as f64;
        let (below, above) = (draws[place.floor() as usize], draws[place.ceil() as usize]);
        below + (above - below) * place.fract()
    };
    Estimate { value: at(0.5), interval: Some((at(0.025), at(0.975))) }
}
