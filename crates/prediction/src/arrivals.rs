//! The arrivals of a predicted run: a Poisson process, or as they were measured.

use kendall_stats::random::{Rng, exponential, unit};
use kendall_stats::{mean, variance};

use crate::observed::Level;

/// Measured gaps are drawn in contiguous runs of this many, so that bursts stay together.
const RUN: usize = 64;
/// Gaps whose sums show how arrivals are dispersed over longer times.
const WINDOW: usize = 32;
/// Fewer sums say nothing of that.
const LEAST_WINDOWS: usize = 60;
/// The index of dispersion of a Poisson process is 1; that of this many windows lies within these bounds.
const DISPERSION: std::ops::RangeInclusive<f64> = 0.5..=1.6;
/// A difference from a Poisson process that changes no response time noticeably.
const SLIGHT: f64 = 0.05;

/// How requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Gaps {
    /// As a Poisson process.
    Poisson,
    /// With these gaps over their mean, in the order in which they were measured.
    Measured(Vec<f64>),
}

impl Gaps {
    /// From the instants of sending of all levels, each with its own mean.
    pub(crate) fn of(levels: &[Level]) -> Self {
        let mut gaps = Vec::new();
        for block in levels.iter().flat_map(|level| &level.blocks) {
            let of_block: Vec<f64> =
                block.counted().windows(2).map(|pair| (pair[1].sent_s - pair[0].sent_s).max(0.0)).collect();
            let mean_s = mean(&of_block);
            if mean_s > 0.0 {
                gaps.extend(of_block.into_iter().map(|gap_s| gap_s / mean_s));
            }
        }
        if is_poisson(&gaps) { Self::Poisson } else { Self::Measured(gaps) }
    }

    /// The squared coefficient of variation of the gaps.
    pub(crate) fn scv(&self) -> f64 {
        match self {
            Self::Poisson => 1.0,
            Self::Measured(gaps) => variance(gaps),
        }
    }

    /// The instants of `n` arrivals at a rate.
    pub(crate) fn arrivals_s(&self, n: usize, rate_per_s: f64, rng: &mut Rng) -> Vec<f64> {
        let mut now_s = 0.0;
        let (mut from, mut left) = (0, 0);
        let mut gap = || match self {
            Self::Poisson => exponential(rng),
            Self::Measured(gaps) => {
                if left == 0 {
                    (from, left) = ((unit(rng) * gaps.len() as f64) as usize, RUN);
                }
                (from, left) = ((from + 1) % gaps.len(), left - 1);
                gaps[from]
            }
        };
        let arrive = |_| {
            now_s += gap() / rate_per_s;
            now_s
        };
        (0..n).map(arrive).collect()
    }
}

/// Whether gaps of mean 1 may be those of a Poisson process: exponential, independent, and no more dispersed over longer times.
fn is_poisson(gaps: &[f64]) -> bool {
    let n = gaps.len() as f64;
    let noise = |sd: f64| 3.0 * sd / n.sqrt() + SLIGHT;
    let products: Vec<f64> = gaps.windows(2).map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0)).collect();
    let sums: Vec<f64> = gaps.chunks_exact(WINDOW).map(|window| window.iter().sum()).collect();
    let dispersion = variance(&sums) / WINDOW as f64;
    // The variance of n exponential gaps of mean 1 has a standard deviation of √(8/n), their autocorrelation one of 1/√n.
    gaps.len() < 2
        || (variance(gaps) - 1.0).abs() < noise(8.0_f64.sqrt())
            && mean(&products).abs() < noise(1.0)
            && (sums.len() < LEAST_WINDOWS || DISPERSION.contains(&dispersion))
}

#[cfg(test)]
mod tests {
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    #[test]
    fn a_poisson_process_is_recognised_and_others_are_kept_as_they_are() {
        for seed in 0..50 {
            let mut rng = stream(seed, Purpose::Arrivals, 0);
            let gaps: Vec<f64> = (0..3_000).map(|_| exponential(&mut rng)).collect();
            let mean = mean(&gaps);
            assert!(is_poisson(&gaps.iter().map(|gap| gap / mean).collect::<Vec<_>>()), "{seed}");
        }
        let mut rng = stream(1, Purpose::Arrivals, 0);
        // Bursts of eight at a distance of sixteen.
        let bursts: Vec<f64> = (0..4_000).map(|at| if at % 8 == 0 { 7.3 } else { 0.1 }).collect();
        for gaps in [vec![1.0; 3_000], bursts] {
            assert!(!is_poisson(&gaps));
            let kept = Gaps::Measured(gaps.clone());
            let arrivals_s = kept.arrivals_s(4_000, 50.0, &mut rng);
            let found: Vec<f64> = arrivals_s.windows(2).map(|pair| 50.0 * (pair[1] - pair[0])).collect();
            assert!((mean(&found) - 1.0).abs() < 0.05, "{}", mean(&found));
            assert!((variance(&found) - variance(&gaps)).abs() < 0.2, "{}", variance(&found));
        }
    }
}
