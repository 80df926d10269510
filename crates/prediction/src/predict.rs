//! Predicts the response times of a future run from the stations that the measurements allow.

use kendall_evidence::fit::{Slo, SloMeasure};
use kendall_evidence::{RowClass, Visit};
use kendall_station::{Discipline, Estimate};
use kendall_stats::random::{Purpose, stream};
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, NoPrediction};
use crate::arrivals::Gaps;
use crate::candidate::{Candidate, candidates};
use crate::observed::{Conditions, Observed};
use crate::order::Order;
use crate::posterior::{Draw, Posterior};
use crate::present;
use crate::services::Mix;
use crate::spells::lengthen;

/// The quantiles that are predicted.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Stations that are drawn.
const DRAWS: usize = 120;
/// And at least: a mean of fewer says nothing.
const LEAST_REQUESTS: u64 = 100;
/// Requests that are simulated at each rate of a search for the highest one.
const MOST_SEARCHED: u64 = 20_000;
const SEARCH_STEPS: u32 = 11;
/// A share of the capacity at which hardly any request waits.
const LIGHT: f64 = 1e-3;
/// The share of a simulated run that fills the station and is not counted.
const WARMUP: f64 = 0.1;
/// An interval whose standard deviation is a smaller share of its value is narrow.
const NARROW: f64 = 0.05;
/// The scatter of the run itself decides if it is a larger share of the variance than this.
const MOSTLY: f64 = 0.6;
/// Runs of one station that show how much runs scatter.
const REPEATS: u64 = 24;

/// The conditions that a prediction is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Requests per second. They arrive as measured, at another rate: as a Poisson process, or with the gaps of the measured loads.
    pub rate_per_s: f64,
    /// The requests of the run that the prediction is for: a short run scatters more, and its intervals are wider.
    pub requests: u64,
    /// A number of servers that differs from the station's.
    pub servers: Option<u32>,
    /// An order of service that differs from the station's.
    pub discipline: Option<Discipline>,
    /// Other proportions of the classes, by their numbers.
    pub mix: Option<Vec<f64>>,
    /// Time on another link that every request takes more, in seconds.
    pub more_delay_s: f64,
    /// How many times as long as in the measurement of the capacity work takes in each second of the run, where that is known. Otherwise slow
    /// seconds come as the measured loads had them.
    pub slower: Option<Vec<f64>>,
}

impl Question {
    /// The measured server at a rate, in a run of this many requests.
    pub fn at(rate_per_s: f64, requests: u64) -> Self {
        Self {
            rate_per_s,
            requests,
            servers: None,
            discipline: None,
            mix: None,
            more_delay_s: 0.0,
            slower: None,
        }
    }
}

/// The work that a prediction may take. Less work gives a rougher answer to the same question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Stations that are drawn: at least one, and 120 at most.
    pub draws: usize,
    /// Requests that are simulated of each run; the noise of a longer run is that of this many.
    pub most_simulated: u64,
}

impl Effort {
    /// The work of [`Predictor::predict`].
    pub const FULL: Self = Self { draws: DRAWS, most_simulated: 60_000 };

    /// Requests that are simulated of a run.
    fn simulated(self, requests: u64) -> u64 {
        requests.min(self.most_simulated).max(LEAST_REQUESTS)
    }
}

/// A station that the measurements allow, and how likely it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// The station in words, such as "2 servers, FIFO".
    pub station: String,
    /// The discipline of the station, or the one that comes nearest.
    pub discipline: Discipline,
    /// The number of servers.
    pub servers: u32,
    /// The share of the draws that have it.
    pub share: f64,
}

/// The predicted response times of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Requests per second.
    pub rate_per_s: f64,
    /// The requests of the run.
    pub requests: u64,
    /// The mean response time, in seconds. Intervals contain the mean of a run of that length with 95 % probability.
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
    /// The measure that would make the interval of p99 narrower, where it is wide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// Everything that the measurements say of a server; each question is then answered without reading them again.
pub struct Predictor {
    draws: Vec<Draw>,
    gaps: Gaps,
    lag_s: f64,
    capacity_is_measured: bool,
    classes: Vec<RowClass>,
    closed: Vec<(u32, f64)>,
    seed: u64,
}

impl Predictor {
    /// Fits the candidate stations.
    pub fn new(observed: &Observed, seed: u64) -> Self {
        let posterior = Posterior::of(observed, candidates(observed), seed);
        let draws = posterior.draws(DRAWS);
        let capacity_is_measured = observed.capacity.is_some();
        Self {
            draws,
            gaps: Gaps::of(&observed.levels),
            lag_s: observed.highest().lag_s(),
            capacity_is_measured,
            classes: observed.classes().to_vec(),
            closed: observed.closed.clone(),
            seed,
        }
    }

    /// The squared coefficient of variation of the gaps between arrivals, where these are no Poisson process.
    pub fn arrival_scv(&self) -> Option<f64> {
        (self.gaps != Gaps::Poisson).then(|| self.gaps.scv())
    }

    /// The highest rate that the station sustains under the conditions of a question, in requests per second.
    ///
    /// # Errors
    /// Fails where a class of the mix was not measured.
    pub fn capacity_per_s(&self, question: &Question) -> Result<Estimate, NoPrediction> {
        Ok(within(self.capacities_per_s(question)?))
    }

    fn capacities_per_s(&self, question: &Question) -> Result<Vec<f64>, NoPrediction> {
        let of_draw =
            |draw: &Draw| Ok(draw.capacity_per_s(question.servers, self.mix(draw, question)?.as_ref()));
        self.draws.iter().map(of_draw).collect()
    }

    /// Predicts the response times of a run.
    ///
    /// # Errors
    /// Fails where the rate exceeds the capacity, and where a class was not measured.
    pub fn predict(&self, question: &Question) -> Result<Prediction, NoPrediction> {
        self.predict_within(question, Effort::FULL, &QUANTILES)
    }

    /// Predicts the response times of a run within an effort, with quantiles at these shares. With the full effort, the quantiles that
    /// [`predict`](Self::predict) also has are the same; with less, there is no advice.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_within(
        &self,
        question: &Question,
        effort: Effort,
        shares: &[f64],
    ) -> Result<Prediction, NoPrediction> {
        let capacities_per_s = self.capacities_per_s(question)?;
        let capacity = within(capacities_per_s.clone());
        if question.rate_per_s >= capacity.value {
            return Err(NoPrediction::Overload {
                rate_per_s: question.rate_per_s,
                capacity_per_s: capacity.value,
            });
        }
        let simulated = Question { requests: effort.simulated(question.requests), ..question.clone() };
        let run = |index| Ok(Run::of(self.simulated_s(&simulated, index, 0)?, shares));
        let drawn = effort.draws.clamp(1, self.draws.len());
        let runs = (0..drawn).map(run).collect::<Result<Vec<Run>, NoPrediction>>()?;
        let of = |value: &dyn Fn(&Run) -> f64| within(runs.iter().map(value).collect());
        let service_s = |draw: &Draw| {
            let mix = self.mix(draw, question)?;
            Ok(draw.service_s(question, mix.as_ref()) * mix.map_or(1.0, |mix| mix.longer))
        };
        let services_s = self.draws.iter().map(service_s).collect::<Result<Vec<f64>, NoPrediction>>()?;
        let of_draws = |value: &dyn Fn(&Draw) -> f64| within(self.draws.iter().map(value).collect());
        let quantile = |(at, p): (usize, f64)| (p, of(&|run| run.quantiles_s[at]));
        let steady = capacities_per_s.iter().filter(|per_s| question.rate_per_s < **per_s).count();
        Ok(Prediction {
            rate_per_s: question.rate_per_s,
            requests: question.requests,
            mean_s: of(&|run| run.mean_s),
            quantiles: shares.iter().copied().enumerate().map(quantile).collect(),
            capacity_per_s: capacity,
            utilisation: within(capacities_per_s.iter().map(|per_s| question.rate_per_s / per_s).collect()),
            service_s: within(services_s),
            delay_s: of_draws(&|draw| draw.candidate.delay_s),
            steady: steady as f64 / self.draws.len() as f64,
            stations: self.stations(),
            advice: if effort == Effort::FULL { self.advice(question, &simulated, &runs)? } else { None },
        })
    }

    /// The highest rate at which a run of that many requests meets an objective, in requests per second. Each draw has its own, and the
    /// interval is the middle 95 % of them. The question's own rate does not matter.
    ///
    /// # Errors
    /// Fails where a class was not measured, and where no rate meets the objective.
    pub fn highest_rate(&self, slo: Slo, question: &Question) -> Result<Estimate, NoPrediction> {
        let requests = question.requests.clamp(LEAST_REQUESTS, MOST_SEARCHED);
        let highest = |index: usize| {
            let draw = &self.draws[index];
            let capacity_per_s = draw.capacity_per_s(question.servers, self.mix(draw, question)?.as_ref());
            let meets = |share: f64| {
                let at = Question { rate_per_s: share * capacity_per_s, requests, ..question.clone() };
                let responses_s = self.simulated_s(&at, index, 0)?;
                let found_s = match slo.measure {
                    SloMeasure::Mean => kendall_stats::mean(&responses_s),
                    SloMeasure::Quantile(p) => quantile_s(&sorted(responses_s), p),
                };
                Ok(found_s <= slo.at_most_s)
            };
            let (mut low, mut high) = (0.0, 1.0);
            if !meets(LIGHT)? {
                return Ok(0.0);
            }
            for _ in 0..SEARCH_STEPS {
                let middle = f64::midpoint(low, high);
                if meets(middle)? { low = middle } else { high = middle }
            }
            Ok(low * capacity_per_s)
        };
        let rates =
            (0..self.draws.len()).step_by(2).map(highest).collect::<Result<Vec<f64>, NoPrediction>>()?;
        let rate_per_s = within(rates);
        if rate_per_s.value > 0.0 { Ok(rate_per_s) } else { Err(NoPrediction::NeverMet(slo)) }
    }

    /// The response times that a run of one drawn station measures; `repeat` numbers runs of the same station.
    fn simulated_s(&self, question: &Question, index: usize, repeat: u64) -> Result<Vec<f64>, NoPrediction> {
        let draw = &self.draws[index];
        let counted = question.requests as usize;
        let n = (counted as f64 * (1.0 + WARMUP)) as usize;
        let mut rng = stream(self.seed, Purpose::Arrivals, repeat << 32 | index as u64);
        let arrivals_s = self.gaps.arrivals_s(n, question.rate_per_s, &mut rng);
        let arrive = |arrival_s| Visit { arrival_s, service_s: 0.0, class: 0 };
        let mut visits: Vec<Visit> = arrivals_s.into_iter().map(arrive).collect();
        let servers = question.servers.unwrap_or(draw.candidate.servers);
        let mix = self.mix(draw, question)?;
        let (service_s, times) = draw.service_by_present(question, mix.as_ref());
        match &mix {
            None => draw.services.draw(service_s, &mut rng, &mut visits),
            Some(mix) => draw.services.draw_mixed(service_s, mix, &mut rng, &mut visits),
        }
        match &question.slower {
            Some(slower) => lengthen(&mut visits, slower),
            None => draw.spells.apply(&mut visits, &mut rng),
        }
        if !times.is_empty() {
            let drawn_s = service_s * mix.map_or(1.0, |mix| mix.longer);
            present::apply(&times, f64::from(servers), drawn_s, &mut visits);
        }
        let station = Candidate {
            order: question.discipline.map_or_else(|| draw.candidate.order_with(servers), Order::OneQueue),
            servers,
            delay_s: draw.candidate.delay_s + question.more_delay_s + self.lag_s,
        };
        let conditions = Conditions { classes: &self.classes, closed: &self.closed };
        let mut all_s = station.responses_s(&visits, &conditions);
        all_s.drain(..n - counted);
        Ok(all_s)
    }

    /// What would make the interval of p99 narrower, beyond a simulation of more requests than the `simulated` ones of the runs.
    fn advice(
        &self,
        question: &Question,
        simulated: &Question,
        runs: &[Run],
    ) -> Result<Option<Advice>, NoPrediction> {
        let p99_s: Vec<f64> = runs.iter().map(|run| run.p99_s).collect();
        let spread = |values_s: &[f64]| {
            kendall_stats::variance(&values_s.iter().map(|value_s| libm::log(*value_s)).collect::<Vec<_>>())
        };
        let of_all = spread(&p99_s);
        if of_all.sqrt() < NARROW {
            return Ok(None);
        }
        let middle = kendall_stats::median(&p99_s);
        let distance = |index: &usize| (p99_s[*index] - middle).abs();
        let typical = (0..p99_s.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0);
        let again = |repeat| Ok(quantile_s(&sorted(self.simulated_s(simulated, typical, repeat)?), 0.99));
        let repeats = (1..=REPEATS).map(again).collect::<Result<Vec<f64>, NoPrediction>>()?;
        let of_simulated = spread(&repeats);
        // Variances of the logarithm are in inverse proportion to the number of requests, and the planned run may have more of them.
        let requests = question.requests.max(simulated.requests) as f64;
        let of_the_run = of_simulated * simulated.requests as f64 / requests;
        let of_the_rest = (of_all - of_simulated).max(0.0);
        let total = of_the_run + of_the_rest;
        let times_longer = |variance: f64| variance / NARROW.powi(2);
        let of_run_alone = of_the_run > MOSTLY * total;
        if total.sqrt() < NARROW || of_run_alone && times_longer(of_the_run) <= 1.0 {
            return Ok(None);
        }
        let capacities_per_s = self.capacities_per_s(question)?;
        Ok(Some(if of_run_alone {
            Advice::LongerRun { duration_s: requests / question.rate_per_s * times_longer(of_the_run) }
        } else if !self.capacity_is_measured {
            Advice::MeasureCapacity
        } else if explained(&capacities_per_s, &p99_s) * of_all > MOSTLY * total {
            Advice::SteadierCapacity { relative_sd: spread(&capacities_per_s).sqrt() }
        } else if self.stations().first().is_some_and(|first| first.share < 0.8) {
            Advice::HigherLoad { rate_per_s: 0.7 * self.capacity_per_s(question)?.value }
        } else {
            Advice::MoreRequests { times: times_longer(of_the_rest).max(2.0) }
        }))
    }

    fn mix(&self, draw: &Draw, question: &Question) -> Result<Option<Mix>, NoPrediction> {
        let shares = question.mix.as_deref();
        shares
            .map(|shares| Mix::of(&draw.services, shares).map_err(NoPrediction::UnmeasuredClass))
            .transpose()
    }

    fn stations(&self) -> Vec<Allowed> {
        let mut stations: Vec<Allowed> = Vec::new();
        let one = 1.0 / self.draws.len() as f64;
        for draw in &self.draws {
            let Candidate { order, servers, .. } = draw.candidate;
            let station = order.words(servers);
            match stations.iter_mut().find(|known| known.station == station) {
                Some(known) => known.share += one,
                None => {
                    stations.push(Allowed { station, discipline: order.discipline(), servers, share: one });
                }
            }
        }
        stations.sort_by(|a, b| b.share.total_cmp(&a.share));
        stations
    }
}

impl Draw {
    /// How many times the capacity of the measured station these servers and this mix have.
    fn more(&self, servers: Option<u32>, mix: Option<&Mix>) -> f64 {
        let servers = servers.map_or(1.0, |servers| f64::from(servers) / f64::from(self.candidate.servers));
        servers / mix.map_or(1.0, |mix| mix.longer)
    }

    /// The highest throughput, which some servers reach in a long queue only.
    fn capacity_per_s(&self, servers: Option<u32>, mix: Option<&Mix>) -> f64 {
        let shortest = self.queues.iter().map(|queue| queue.1).fold(1.0, f64::min);
        self.more(servers, mix) * self.path.capacity_per_s / shortest
    }

    /// The mean service time of the measured mix at the utilisation of the question.
    fn service_s(&self, question: &Question, mix: Option<&Mix>) -> f64 {
        self.path.service_s(question.rate_per_s / self.more(question.servers, mix))
    }

    /// The service time to draw from, and how many times as long it is by the number of requests present, where it depends on that.
    fn service_by_present(&self, question: &Question, mix: Option<&Mix>) -> (f64, Vec<(f64, f64)>) {
        let servers = f64::from(question.servers.unwrap_or(self.candidate.servers));
        let rate_per_s = question.rate_per_s / self.more(question.servers, mix);
        let by_present = self.path.by_present(rate_per_s, servers);
        let by_present = by_present.filter(|_| !self.candidate.order.has_speeds());
        // More servers have longer queues for the same wait.
        let longer = servers / f64::from(self.candidate.servers);
        let queues = self.queues.iter().map(|queue| (queue.0 * longer, queue.1));
        let Some((alone_s, mut times)) = by_present else {
            return (self.service_s(question, mix), queues.collect());
        };
        let (last, full) = times.last().copied().unwrap_or((0.0, 1.0));
        times.extend(queues.filter(|queue| queue.0 > last).map(|queue| (queue.0, full * queue.1)));
        (alone_s, times)
    }
}

/// What one simulated run measured.
struct Run {
    mean_s: f64,
    p99_s: f64,
    quantiles_s: Vec<f64>,
}

impl Run {
    fn of(responses_s: Vec<f64>, shares: &[f64]) -> Self {
        let mean_s = kendall_stats::mean(&responses_s);
        let sorted_s = sorted(responses_s);
        let quantiles_s = shares.iter().map(|&p| quantile_s(&sorted_s, p)).collect();
        Self { mean_s, p99_s: quantile_s(&sorted_s, 0.99), quantiles_s }
    }
}

/// The share of the variance of the second values that the first explain, by the power of them that fits best.
fn explained(causes: &[f64], effects: &[f64]) -> f64 {
    let logs = |values: &[f64]| values.iter().map(|value| libm::log(*value)).collect::<Vec<_>>();
    kendall_stats::cross_correlation(&logs(causes), &logs(effects)).map_or(0.0, |r| r * r)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The smallest value that a share `p` does not exceed.
fn quantile_s(sorted_s: &[f64], p: f64) -> f64 {
    let rank = (p * sorted_s.len() as f64).ceil() as usize;
    sorted_s[rank.clamp(1, sorted_s.len()) - 1]
}

/// The median of the draws, and the middle 95 % of them.
fn within(mut draws: Vec<f64>) -> Estimate {
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| {
        // Another value lies between two neighbouring draws with probability 1/(n + 1).
        let place = (share * (draws.len() + 1) as f64 - 1.0).clamp(0.0, (draws.len() - 1) as f64);
        let (below, above) = (draws[place.floor() as usize], draws[place.ceil() as usize]);
        below + (above - below) * place.fract()
    };
    Estimate { value: at(0.5), interval: Some((at(0.025), at(0.975))) }
}
