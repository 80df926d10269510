//! Service times to draw from, as the measured loads had them.

use kendall_evidence::Visit;
use kendall_stats::random::{Rng, unit};

use crate::law::LevelLaw;

/// Service times are drawn in contiguous runs of at least this many, so that pauses stay together.
const SHORTEST_RUN: usize = 16;
/// And of at most this many: a level has only some thousands to draw from.
const LONGEST_RUN: usize = 256;
/// As many service times show the law of service, its tail included.
const ENOUGH: usize = 8_000;
/// Service times further apart than the lag at which their correlation falls below this count as independent.
const UNCORRELATED: f64 = 0.1;

/// Service times of mean 1 to draw from, in contiguous runs.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    scaled: Vec<f64>,
    classes: Vec<u32>,
    /// Chunks of these with their cumulative weights, the last of which is 1.
    chunks: Vec<(f64, std::ops::Range<usize>)>,
    /// The number of service times in a run.
    run: usize,
}

impl Services {
    /// The service times of the highest level, with the weights of its chunks, and of lower ones until there are enough. At low loads a
    /// server starts from idle, asleep or with cold caches, for many requests; at the higher loads that are predicted, for few.
    pub(crate) fn of(levels: &[LevelLaw], weights: &[Vec<f64>]) -> Self {
        let low = Self::lowest(levels);
        let (levels, weights) = (&levels[low..], &weights[low..]);
        let (mut scaled, mut classes, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        let mut sum = 0.0;
        for (level, weights) in levels.iter().zip(weights) {
            let mean_s = level.steady_mean_s(weights);
            for (at, weight) in weights.iter().enumerate() {
                let range = level.chunk(at);
                sum += weight * range.len() as f64;
                let start = scaled.len();
                scaled.extend(level.steady_s[range.clone()].iter().map(|service_s| service_s / mean_s));
                classes.extend_from_slice(&level.classes[range]);
                chunks.push((sum, start..scaled.len()));
            }
        }
        chunks.iter_mut().for_each(|chunk| chunk.0 /= sum);
        let run = levels.iter().map(|level| run_of(&level.steady_s)).max().unwrap_or(SHORTEST_RUN);
        let drawn = mean_of_runs(&scaled, &chunks, run);
        scaled.iter_mut().for_each(|service| *service /= drawn);
        Self { scaled, classes, chunks, run }
    }

    /// The lowest level whose service times are drawn.
    pub(crate) fn lowest(levels: &[LevelLaw]) -> usize {
        let count = |low: usize| -> usize { levels[low..].iter().map(|level| level.steady_s.len()).sum() };
        (0..levels.len()).rev().find(|&low| count(low) >= ENOUGH).unwrap_or(0)
    }

    /// The place of a request from which a run begins.
    fn start(&self, rng: &mut Rng) -> usize {
        let share = unit(rng);
        let at = self.chunks.partition_point(|chunk| chunk.0 < share).min(self.chunks.len() - 1);
        let range = &self.chunks[at].1;
        range.start + (unit(rng) * range.len() as f64) as usize
    }

    /// Draws service times and classes, with a mean of `mean_s`.
    pub(crate) fn draw(&self, mean_s: f64, rng: &mut Rng, visits: &mut [Visit]) {
        let n = self.scaled.len();
        for run in visits.chunks_mut(self.run) {
            let start = self.start(rng);
            for (at, visit) in run.iter_mut().enumerate() {
                let from = (start + at) % n;
                visit.service_s = self.scaled[from] * mean_s;
                visit.class = self.classes[from] as usize;
            }
        }
    }

    /// Draws likewise, but each request separately and of a class in these proportions.
    pub(crate) fn draw_mixed(&self, mean_s: f64, mix: &Mix, rng: &mut Rng, visits: &mut [Visit]) {
        for visit in visits {
            let class = mix.class(rng);
            let of_class = &mix.members[class];
            let from = of_class[(unit(rng) * of_class.len() as f64) as usize] as usize;
            visit.service_s = self.scaled[from] / mix.measured * mean_s;
            visit.class = class;
        }
    }
}

/// The mean of what runs of this length draw, which begin in chunks by their weights and go on into the next chunks.
fn mean_of_runs(scaled: &[f64], chunks: &[(f64, std::ops::Range<usize>)], run: usize) -> f64 {
    let n = scaled.len();
    let mut until = vec![0.0; n + 1];
    for (at, service) in scaled.iter().enumerate() {
        until[at + 1] = until[at] + service;
    }
    let of_run = |start: usize| {
        let (rounds, end) = ((start + run) / n, (start + run) % n);
        rounds as f64 * until[n] + until[end] - until[start]
    };
    let (mut mean, mut before) = (0.0, 0.0);
    for (cumulative, chunk) in chunks {
        let of_chunk = chunk.clone().map(of_run).sum::<f64>() / (run * chunk.len()) as f64;
        mean += (cumulative - before) * of_chunk;
        before = *cumulative;
    }
    mean
}

/// The number of service times after which they are as good as independent: twice the lag, in powers of two, at which they are hardly
/// correlated any more. Spells of seconds are drawn apart; this keeps those of some tens of milliseconds, as caches and cores are taken by
/// others.
fn run_of(services_s: &[f64]) -> usize {
    let (mean_s, variance) = (kendall_stats::mean(services_s), kendall_stats::variance(services_s));
    let correlation = |lag: usize| {
        let pairs = std::iter::zip(services_s, &services_s[lag..]);
        let products: f64 = pairs.map(|(a, b)| (a - mean_s) * (b - mean_s)).sum();
        products / (variance * services_s.len() as f64)
    };
    let mut run = SHORTEST_RUN;
    while run < LONGEST_RUN.min(services_s.len()) && correlation(run / 2) >= UNCORRELATED {
        run *= 2;
    }
    run
}

/// The classes of requests in other proportions than measured.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    /// Cumulative shares.
    shares: Vec<f64>,
    /// The measured requests of each class.
    members: Vec<Vec<u32>>,
    /// The mean of all measured service times, each counted once.
    measured: f64,
    /// The mean service time of this mix over that of the measured one.
    pub(crate) longer: f64,
}

impl Mix {
    /// # Errors
    /// Names a class with a share that was never measured.
    pub(crate) fn of(services: &Services, shares: &[f64]) -> Result<Self, usize> {
        let mut members = vec![Vec::new(); shares.len()];
        for (at, class) in services.classes.iter().enumerate() {
            if let Some(of_class) = members.get_mut(*class as usize) {
                of_class.push(at as u32);
            }
        }
        let is_missing = |class: &usize| shares[*class] > 0.0 && members[*class].is_empty();
        if let Some(class) = (0..shares.len()).find(is_missing) {
            return Err(class);
        }
        let sum: f64 = shares.iter().sum();
        let mut so_far = 0.0;
        let cumulative = shares.iter().map(|share| {
            so_far += share / sum;
            so_far
        });
        let mean = |members: &[u32]| {
            members.iter().map(|&at| services.scaled[at as usize]).sum::<f64>() / members.len().max(1) as f64
        };
        let measured = kendall_stats::mean(&services.scaled);
        let of_mix: f64 =
            shares.iter().zip(&members).map(|(share, members)| share / sum * mean(members)).sum();
        Ok(Self { shares: cumulative.collect(), longer: of_mix / measured, members, measured })
    }

    fn class(&self, rng: &mut Rng) -> usize {
        let drawn = unit(rng);
        let at = self.shares.partition_point(|share| *share < drawn).min(self.shares.len() - 1);
        // A share of 0 has no members.
        (at..self.members.len()).chain(0..at).find(|&class| !self.members[class].is_empty()).unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_what_is_drawn_is_as_asked() {
        // Chunks of other means and weights, and runs that are longer than a chunk.
        let scaled: Vec<f64> =
            (0..300).map(|at| if at < 100 { 3.0 } else { 1.0 + f64::from(at % 7) }).collect();
        let chunks = vec![(0.6, 0..50), (0.7, 50..100), (0.75, 100..200), (1.0, 200..300)];
        let drawn = mean_of_runs(&scaled, &chunks, 128);
        let scaled: Vec<f64> = scaled.iter().map(|service| service / drawn).collect();
        let services = Services { classes: vec![0; scaled.len()], scaled, chunks, run: 128 };
        let rng = &mut kendall_stats::random::stream(2, kendall_stats::random::Purpose::Sample, 0);
        let mut visits = vec![Visit { arrival_s: 0.0, service_s: 0.0, class: 0 }; 128 * 20_000];
        services.draw(0.5, rng, &mut visits);
        let mean_s = visits.iter().map(|visit| visit.service_s).sum::<f64>() / visits.len() as f64;
        assert!((mean_s - 0.5).abs() < 0.003, "{mean_s}");
    }

    #[test]
    fn the_measured_mix_is_as_long_as_it_was() {
        let scaled: Vec<f64> = (0..1_000).map(|at| if at % 4 == 0 { 3.1 } else { 0.7 }).collect();
        let classes: Vec<u32> = (0..1_000).map(|at| u32::from(at % 4 == 0)).collect();
        let services = Services { scaled, classes, chunks: vec![(1.0, 0..1_000)], run: 16 };
        let mix = Mix::of(&services, &[0.75, 0.25]).unwrap();
        assert!((mix.longer - 1.0).abs() < 1e-9, "{}", mix.longer);
    }

    #[test]
    fn runs_are_as_long_as_the_spells_of_the_machine() {
        let rng = &mut kendall_stats::random::stream(1, kendall_stats::random::Purpose::Sample, 0);
        let mut services_in_spells_of = |length: usize| -> Vec<f64> {
            let mut slower = 0.0;
            let mut service_s = |at: usize| {
                if at.is_multiple_of(length) {
                    slower = unit(rng);
                }
                1.0 + slower + unit(rng)
            };
            (0..16_384).map(&mut service_s).collect()
        };
        assert_eq!(run_of(&services_in_spells_of(1)), SHORTEST_RUN);
        let run = run_of(&services_in_spells_of(40));
        assert!((32..=128).contains(&run), "{run}");
        assert_eq!(run_of(&services_in_spells_of(2_000)), LONGEST_RUN);
        assert_eq!(run_of(&[1.0; 100]), SHORTEST_RUN, "no variance has no correlation");
    }
}
