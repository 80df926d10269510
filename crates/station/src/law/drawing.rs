//! Sampling of times from a law: from a seeded stream, with the same result on every platform.

use kendall_stats::random::{Rng, exponential};
use rand::{Rng as _, RngExt as _};
use rand_distr::{Distribution as _, Gamma, LogNormal};

use super::Law;

impl Law {
    /// Draws one time, in seconds.
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential { mean_s } => mean_s * exponential(rng),
            Self::Constant { mean_s } => *mean_s,
            Self::Erlang { shape, mean_s } => {
                let shape = f64::from(*shape);
                Gamma::new(shape, mean_s / shape)
                    .expect("a valid Erlang law has a positive shape")
                    .sample(rng)
            }
            Self::Hyperexponential { parts } => {
                pick(rng, parts.iter().map(|part| part.0), parts).1 * exponential(rng)
            }
            Self::Uniform { low_s, high_s } => low_s + (high_s - low_s) * rng.random::<f64>(),
            Self::LogNormal { .. } => {
                let (mu, sigma) = self.log_normal();
                LogNormal::new(mu, sigma).expect("a valid log-normal law has a finite sigma").sample(rng)
            }
            Self::Pareto { shape, .. } => {
                // 1 − u lies in (0, 1], so the power is finite.
                self.minimum_s() * libm::pow(1.0 - rng.random::<f64>(), -1.0 / shape)
            }
            Self::Mixture { parts } => {
                pick(rng, parts.iter().map(|part| part.probability), parts).of.sample(rng)
            }
            Self::Empirical { samples_s } => {
                // The high half of a 128-bit product: an index without division, whose probability is exact
                // to 2⁻⁶⁴.
                let index = (u128::from(rng.next_u64()) * samples_s.len() as u128) >> 64;
                samples_s[index as usize]
            }
        }
    }

    /// Fills the slice with samples: the same as single draws, in less time.
    pub fn fill(&self, rng: &mut Rng, times_s: &mut [f64]) {
        match self {
            Self::Exponential { mean_s } => {
                // A local copy of the generator stays in registers.
                let mut local = rng.clone();
                times_s.iter_mut().for_each(|time_s| *time_s = mean_s * exponential(&mut local));
                *rng = local;
            }
            Self::Constant { mean_s } => times_s.fill(*mean_s),
            _ => times_s.iter_mut().for_each(|time_s| *time_s = self.sample(rng)),
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, probabilities: impl Iterator<Item = f64>, parts: &'a [T]) -> &'a T {
    let mut left: f64 = rng.random();
    for (part, probability) in parts.iter().zip(probabilities) {
        left -= probability;
        if left < 0.0 {
            return part;
        }
    }
    parts.last().expect("a valid mixture has a part")
}
