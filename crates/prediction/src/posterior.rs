//! The stations that the measurements allow, as draws.
//!
//! Each draw weighs the chunks of the measured loads anew (Rubin's Bayesian bootstrap, 1981), takes the candidate that then scores best,
//! and draws the other uncertain parameters: the capacity, the growth of the service time with load, the speed of the machine at another
//! time, and how often it is slow for seconds. Candidates that the data cannot distinguish so appear among the draws in proportion.

use std::collections::BTreeMap;

use kendall_stats::random::{Purpose, Rng, stream};
use rand_distr::{Distribution as _, Exp1, StandardNormal};

use crate::candidate::Candidate;
use crate::law::{Fitted, Path, SteadyServices};
use crate::observed::{Full, Level, Observed, POPULATION_SD};
use crate::order::Order;
use crate::present::drawn_queues;
use crate::score::{Scores, scores};
use crate::services::Services;
use crate::spells::{Spells, slowness};

/// The spread of how much service times grow from the measured loads to saturation, if the capacity does not say it. Measured: 2 % to
/// 20 %, by contention for caches, memory and cores.
const GROWTH: f64 = 0.05;
/// The scale of a growth that is believed without evidence for it, where the capacity implies one.
const BELIEVED_GROWTH: f64 = 0.15;
/// Neighbouring requests wait for the same others, so a chunk says less than its requests one by one would: about a tenth.
const INDEPENDENT: f64 = 0.1;
/// A station that costs this much more than the best is never drawn.
const POSSIBLE: f64 = 15.0;
/// What a station costs more that has another number to choose, a limit or a curve, as Akaike (1974) charges two for each of twice the
/// logarithm of the likelihood, and once more for the three limits that are tried.
const FREEDOM: f64 = 2.0;
/// The speed of a machine is never steadier than this from one minute to the next.
const LEAST_SPEED_SD: f64 = 0.003;

/// A station that may be the server.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) candidate: Candidate,
    /// Service times of the measured levels.
    pub(crate) services: Services,
    pub(crate) path: Path,
    pub(crate) spells: Spells,
    /// How many times as long service takes in populations larger than that of the full loads.
    pub(crate) queues: Vec<(f64, f64)>,
}

/// All candidates with their scores.
pub(crate) struct Posterior<'a> {
    observed: &'a Observed,
    /// Without their service times, which only the few that are drawn need.
    fitted: Vec<(Fitted, Scores)>,
    /// How many independent requests each chunk of each level and full load counts as.
    counts: Vec<Vec<f64>>,
    /// The mean score of the best candidate.
    least: f64,
    /// The spread of the machine's speed.
    speed_sd: f64,
    /// What a station costs whose speed does not fall with the number of requests present.
    fall_cost: f64,
    /// The mean time between two answers in each second of the full loads.
    full_gaps_s: Vec<Vec<f64>>,
    seed: u64,
}

impl<'a> Posterior<'a> {
    pub(crate) fn of(observed: &'a Observed, candidates: Vec<Candidate>, seed: u64) -> Self {
        let fall_cost = 0.5 * (observed.fall() / POPULATION_SD.hypot(observed.capacity_sd())).powi(2);
        let full_gaps_s = observed.full_gaps_s();
        let mut posterior = Self {
            observed,
            fitted: Vec::new(),
            counts: counts(observed),
            least: 1.0,
            speed_sd: 0.0,
            fall_cost,
            full_gaps_s,
            seed,
        };
        candidates.into_iter().for_each(|candidate| posterior.add(candidate));
        let even = posterior.even();
        posterior.find_least(&even);
        let promising = posterior.promising(&even);
        for candidate in promising.iter().flat_map(|best| best.variants(observed)) {
            posterior.add(candidate);
        }
        posterior.find_least(&even);
        for best in posterior.promising(&even) {
            best.neighbours(observed).for_each(|candidate| posterior.add(candidate));
        }
        posterior.find_least(&even);
        posterior.speed_sd = posterior.speed_sd();
        posterior
    }

    fn add(&mut self, candidate: Candidate) {
        let (fitted, steady) = Fitted::of(candidate, self.observed);
        let scores = scores(&fitted, &steady, self.observed);
        self.fitted.push((fitted, scores));
    }

    fn find_least(&mut self, even: &[Vec<f64>]) {
        let means = (0..self.fitted.len()).map(|at| self.score(at, even));
        self.least = means.fold(f64::INFINITY, f64::min).max(1e-6);
    }

    /// The best delay of each station that may still be the best.
    fn promising(&self, even: &[Vec<f64>]) -> Vec<Candidate> {
        let costs: Vec<f64> = (0..self.fitted.len()).map(|at| self.cost(at, even)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let mut best: Vec<(f64, Candidate)> = Vec::new();
        for ((fitted, _), cost) in self.fitted.iter().zip(costs) {
            let candidate = fitted.candidate;
            let same = |known: &&mut (f64, Candidate)| {
                (known.1.order, known.1.servers) == (candidate.order, candidate.servers)
            };
            match best.iter_mut().find(same) {
                Some(known) if known.0 <= cost => {}
                Some(known) => *known = (cost, candidate),
                None => best.push((cost, candidate)),
            }
        }
        best.into_iter().filter(|best| best.0 < least + POSSIBLE).map(|best| best.1).collect()
    }

    /// The same weight for each chunk of each level and full load.
    fn even(&self) -> Vec<Vec<f64>> {
        self.counts.iter().map(|chunks| vec![1.0; chunks.len()]).collect()
    }

    fn score(&self, at: usize, weights: &[Vec<f64>]) -> f64 {
        mean_score(&self.fitted[at].1.levels, &self.counts, weights)
    }

    /// What a candidate costs: its score as a log-likelihood would be, at the learning rate that a normal law has (Bissiri, Holmes and
    /// Walker 2016), and how much its service times must grow to reach the capacity.
    fn cost(&self, at: usize, weights: &[Vec<f64>]) -> f64 {
        let scored: f64 = self.fitted[at].1.levels.iter().flat_map(|level| &self.counts[level.0]).sum();
        let excess = self.score(at, weights) / self.least - 1.0;
        let capacity_per_s = self.observed.capacity.map(|capacity| capacity.per_s);
        let growth = match capacity_per_s {
            Some(_) => self.fitted[at].0.path(weights, capacity_per_s, 0.0).growth(),
            None => 0.0,
        };
        let growth_cost = libm::log1p((growth / BELIEVED_GROWTH).powi(2));
        // A speed that depends on the number present has a rise and a fall to choose, and alone explains a throughput that falls.
        let order_cost = match self.fitted[at].0.candidate.order {
            Order::SharedSpeed | Order::SerialSpeed => 2.0 * FREEDOM,
            Order::AtMost(_) | Order::Scattered | Order::ScatteredFifo => FREEDOM + self.fall_cost,
            Order::OneQueue(_) | Order::Turns | Order::Batches | Order::Together => self.fall_cost,
        };
        INDEPENDENT * scored * excess + growth_cost + order_cost
    }

    /// The best candidate under these weights.
    fn best(&self, weights: &[Vec<f64>]) -> usize {
        let costs = (0..self.fitted.len()).map(|at| self.cost(at, weights));
        let least = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(0, |least| least.0)
    }

    /// How much the speed of the machine differs between the blocks of a level beyond what the law of service explains, and how much the
    /// highest level differs from its prediction beyond noise, as a relative error of the service time.
    fn speed_sd(&self) -> f64 {
        let best = self.best(&self.even());
        let ratios = &self.fitted[best].1.highest_ratio;
        let n = ratios.len() as f64;
        if ratios.len() < 3 {
            return LEAST_SPEED_SD;
        }
        let (mean, variance) = (kendall_stats::mean(ratios), kendall_stats::variance(ratios));
        let excess = (mean * mean - variance / n).max(0.0).sqrt();
        let highest = self.observed.highest().rate_per_s;
        let path =
            self.fitted[best].0.path(&self.even(), self.observed.capacity.map(|known| known.per_s), 0.0);
        let rho = (highest / path.capacity_per_s).min(0.99);
        // A relative error of the service time grows by 1/(1 − ρ) on its way into the response time.
        (excess * (1.0 - rho)).max(LEAST_SPEED_SD)
    }

    /// Stations drawn from those that the measurements allow.
    pub(crate) fn draws(&self, count: usize) -> Vec<Draw> {
        let mut steady = BTreeMap::new();
        (0..count as u64).map(|index| self.draw(index, &mut steady)).collect()
    }

    /// One draw. `steady` has the service times of the candidates drawn before.
    fn draw(&self, index: u64, steady: &mut BTreeMap<usize, SteadyServices>) -> Draw {
        let mut rng = stream(self.seed, Purpose::Sample, index);
        let mut weights = self.even();
        for weight in weights.iter_mut().flatten() {
            *weight = Exp1.sample(&mut rng);
        }
        let at = self.best(&weights);
        let fitted = &self.fitted[at].0;
        let drift = self.observed.capacity.map(|capacity| {
            capacity.in_another_minute(fitted.scv(), self.observed.squared_weights, evenly(index))
        });
        let capacity_per_s =
            self.observed.capacity.zip(drift).map(|(capacity, drift)| capacity.per_s * drift);
        let growth = GROWTH * normal(&mut rng);
        // A machine that is slower in another minute is so at every load.
        let slower = libm::exp(self.speed_sd * normal(&mut rng)) / drift.unwrap_or(1.0);
        let path = fitted.slower_path(&weights, slower, capacity_per_s, growth);
        let steady = steady.entry(at).or_insert_with(|| Fitted::of(fitted.candidate, self.observed).1);
        let services = Services::of(fitted, steady, self.observed, &weights[..fitted.levels.len()]);
        let levels = fitted.levels[Services::lowest(&fitted.levels)..].iter();
        let answers: Vec<f64> = self.full_gaps_s.iter().flatten().map(|gap_s| gap_s.recip()).collect();
        let answers = kendall_stats::mean(&answers);
        let full = slowness(&self.full_gaps_s, (fitted.scv() / answers).sqrt());
        let loads = levels.flat_map(|level| &level.slowness).chain(&full).cloned();
        let spells = Spells::of(loads, &mut rng);
        let queues = match fitted.candidate.order.has_speeds() {
            // These are among its speeds.
            true => Vec::new(),
            false => drawn_queues(self.observed, fitted.scv(), &mut rng),
        };
        Draw { candidate: fitted.candidate, services, path, spells, queues }
    }
}

/// How many independent requests each chunk of each level and full load counts as. Of N users who wait for each other, N response times
/// say as much as one.
fn counts(observed: &Observed) -> Vec<Vec<f64>> {
    let of_level = |level: &Level| level.chunks.iter().map(|(_, range)| range.len() as f64).collect();
    let of_full =
        |full: &Full| full.chunks.iter().map(|range| range.len() as f64 / f64::from(full.users)).collect();
    observed.levels.iter().map(of_level).chain(observed.full.iter().map(of_full)).collect()
}

/// The mean score of the requests of some levels, from that of each chunk, with these weights of the chunks. Losses of observations add
/// up (Bissiri, Holmes and Walker 2016), so each request counts the same, whatever the size of its chunk.
fn mean_score(levels: &[(usize, Vec<f64>)], counts: &[Vec<f64>], weights: &[Vec<f64>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (level, scores) in levels {
        for ((score, weight), requests) in scores.iter().zip(&weights[*level]).zip(&counts[*level]) {
            sum += requests * score * weight;
            count += requests * weight;
        }
    }
    sum / count
}

/// A share for each draw. The first of any number of them are spread evenly (Weyl's sequence of the golden ratio): most of the width of an
/// interval is that of the capacity, and the tails of few random draws differ much.
fn evenly(index: u64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    ((index as f64 + 0.5) * GOLDEN).fract()
}

fn normal(rng: &mut Rng) -> f64 {
    StandardNormal.sample(rng)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_counts_the_same_whatever_the_size_of_its_chunk() {
        // Two chunks of 1500 requests, four of 50, and a full load of 10 users with 500.
        let counts = [vec![1_500.0; 2], vec![50.0; 4], vec![50.0]];
        let scores = [(0, vec![0.1; 2]), (1, vec![0.3; 4]), (2, vec![0.5])];
        let even = counts.clone().map(|chunks| vec![1.0; chunks.len()]);
        let expected = (3_000.0 * 0.1 + 200.0 * 0.3 + 50.0 * 0.5) / 3_250.0;
        let found = mean_score(&scores, &counts, &even);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}
