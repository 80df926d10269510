//! Service times to draw from, as the measured loads had them.

use kendall_evidence::Visit;
use kendall_stats::random::{Rng, unit};

use crate::law::{Fitted, LevelLaw};
use crate::observed::Observed;

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
    /// Chunks of these with the cumulative probabilities of runs in them, the last of which is 1.
    chunks: Vec<(f64, std::ops::Range<usize>)>,
    /// The number of service times in a run, in a chunk that has as many.
    run: usize,
}

impl Services {
    /// The service times of the highest level, with the weights of its chunks, and of lower ones until there are enough. At low loads a
    /// server starts from idle, asleep or with cold caches, for many requests; at the higher loads that are predicted, for few.
    ///
    /// `steady` has the service times of the levels, as many of which count as have weights.
    pub(crate) fn of(
        fitted: &Fitted,
        steady: &[Vec<f64>],
        observed: &Observed,
        weights: &[Vec<f64>],
    ) -> Self {
        let laws = &fitted.levels[..weights.len()];
        let used = Self::lowest(laws)..weights.len();
        let (mut scaled, mut classes, mut weighted) = (Vec::new(), Vec::new(), Vec::new());
        for at in used.clone() {
            let mean_s = laws[at].steady_mean_s(&weights[at]);
            scaled.extend(steady[at].iter().map(|service_s| service_s / mean_s));
            classes.extend(observed.levels[at].counted().map(|request| request.class));
            weighted.extend(weights[at].iter().copied().zip(laws[at].sizes()));
        }
        let run = steady[used].iter().map(|services_s| run_of(services_s)).max().unwrap_or(SHORTEST_RUN);
        Self { scaled, classes, chunks: chunks(&weighted, run), run }
    }

    /// The lowest level whose service times are drawn.
    pub(crate) fn lowest(levels: &[LevelLaw]) -> usize {
        let count = |low: usize| -> usize { levels[low..].iter().flat_map(LevelLaw::sizes).sum() };
        (0..levels.len()).rev().find(|&low| count(low) >= ENOUGH).unwrap_or(0)
    }

    /// A chunk, and the place in it from which a run begins.
    fn start(&self, rng: &mut Rng) -> (std::ops::Range<usize>, usize) {
        let share = unit(rng);
        let at = self.chunks.partition_point(|chunk| chunk.0 < share).min(self.chunks.len() - 1);
        let range = self.chunks[at].1.clone();
        let start = range.start + (unit(rng) * range.len() as f64) as usize;
        (range, start)
    }

    /// Draws service times and classes, with a mean of `mean_s`. The end of a chunk is followed by its start, so that each chunk counts as
    /// much as its weight says, and each of its service times as much as the others (Politis and Romano 1992).
    pub(crate) fn draw(&self, mean_s: f64, rng: &mut Rng, visits: &mut [Visit]) {
        let (mut chunk, mut from, mut left) = (0..0, 0, 0);
        for visit in visits {
            if left == 0 {
                (chunk, from) = self.start(rng);
                left = run_in(chunk.len(), self.run);
            }
            visit.service_s = self.scaled[from] * mean_s;
            visit.class = self.classes[from] as usize;
            from = if from + 1 < chunk.end { from + 1 } else { chunk.start };
            left -= 1;
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

/// The length of a run in a chunk of this many service times: it has none of them twice.
fn run_in(chunk: usize, run: usize) -> usize {
    run.min(chunk)
}

/// Contiguous chunks of these weights and sizes with the cumulative probabilities of runs in them, so that a service time is drawn with a
/// probability in proportion to the weight of its chunk.
fn chunks(weighted: &[(f64, usize)], run: usize) -> Vec<(f64, std::ops::Range<usize>)> {
    let (mut sum, mut start) = (0.0, 0);
    let chunk = |&(weight, size): &(f64, usize)| {
        sum += weight * size as f64 / run_in(size, run) as f64;
        start += size;
        (sum, start - size..start)
    };
    let mut chunks: Vec<_> = weighted.iter().map(chunk).collect();
    chunks.iter_mut().for_each(|chunk| chunk.0 /= sum);
    chunks
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

    /// Service times with these weights and sizes of their chunks.
    fn services(scaled: Vec<f64>, weighted: &[(f64, usize)], run: usize) -> Services {
        Services { classes: vec![0; scaled.len()], scaled, chunks: chunks(weighted, run), run }
    }

    fn drawn_s(services: &Services, count: usize) -> Vec<f64> {
        let rng = &mut kendall_stats::random::stream(2, kendall_stats::random::Purpose::Sample, 0);
        let mut visits = vec![Visit { arrival_s: 0.0, service_s: 0.0, class: 0 }; count];
        services.draw(1.0, rng, &mut visits);
        visits.iter().map(|visit| visit.service_s).collect()
    }

    #[test]
    fn chunks_count_as_much_as_their_weights_say() {
        // Chunks of other means, weights and sizes, two of them shorter than a run.
        let chunks = [(1.2, 50, 3.0), (0.2, 50, 7.0), (0.05, 200, 1.0), (0.25, 300, 4.0)];
        let scaled: Vec<f64> = chunks.iter().flat_map(|chunk| vec![chunk.2; chunk.1]).collect();
        let services = services(scaled, &chunks.map(|chunk| (chunk.0, chunk.1)), 128);
        let weighted = |value: fn(f64) -> f64| -> f64 {
            chunks.iter().map(|chunk| chunk.0 * chunk.1 as f64 * value(chunk.2)).sum()
        };
        let mean_s = kendall_stats::mean(&drawn_s(&services, 128 * 20_000));
        let expected_s = weighted(|service_s| service_s) / weighted(|_| 1.0);
        assert!((mean_s / expected_s - 1.0).abs() < 0.01, "{mean_s} {expected_s}");
    }

    /// The bootstrap leaves a chunk of little weight out, although runs before it end near it.
    #[test]
    fn runs_stay_in_their_chunk() {
        let scaled: Vec<f64> = (0..300).map(f64::from).collect();
        let drawn_s = drawn_s(&services(scaled, &[(1.0, 100), (0.0, 100), (1.0, 100)], 64), 64 * 1_000);
        assert!(drawn_s.iter().all(|place| !(100.0..200.0).contains(place)));
        for run in drawn_s.chunks(64) {
            let in_order = |pair: &[f64]| [1.0, -99.0].contains(&(pair[1] - pair[0]));
            assert!(run.windows(2).all(in_order), "{run:?}");
        }
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
