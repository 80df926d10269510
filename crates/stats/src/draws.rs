//! Laws that the tests draw from.

use rand::RngExt as _;
use rand_distr::{Distribution as _, LogNormal};

use crate::random::{Rng, exponential};

/// A law of random times, in seconds.
#[derive(Debug)]
pub(crate) enum Law {
    Exponential {
        mean_s: f64,
    },
    /// Probabilities and means.
    Hyperexponential {
        parts: Vec<(f64, f64)>,
    },
    LogNormal {
        mean_s: f64,
        scv: f64,
    },
    Uniform {
        low_s: f64,
        high_s: f64,
    },
}

impl Law {
    pub(crate) fn sample(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential { mean_s } => mean_s * exponential(rng),
            Self::Hyperexponential { parts } => {
                let mut left: f64 = rng.random();
                let chosen = parts.iter().find(|(probability, _)| {
                    left -= probability;
                    left < 0.0
                });
                chosen.unwrap_or(&parts[parts.len() - 1]).1 * exponential(rng)
            }
            Self::LogNormal { mean_s, scv } => {
                let variance = scv.ln_1p();
                LogNormal::new(mean_s.ln() - variance / 2.0, variance.sqrt()).unwrap().sample(rng)
            }
            Self::Uniform { low_s, high_s } => low_s + (high_s - low_s) * rng.random::<f64>(),
        }
    }
}
