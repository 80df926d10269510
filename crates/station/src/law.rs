//! Laws of random times: service times, gaps between arrivals, think times. All times are in seconds.
//!
//! Each law knows its moments, its survival function and its limited mean in closed form, and is sampled from
//! a seeded stream. This module fits and integrates nothing numerically.

mod drawing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The law of the time that one server needs for one request, waiting excluded.
pub type ServiceTime = Law;

/// The law of a random time that is never negative, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "law")]
pub enum Law {
    /// Exponential: memoryless, squared coefficient of variation 1. Letter M.
    Exponential {
        /// The mean.
        mean_s: f64,
    },
    /// Constant. Letter D.
    Constant {
        /// The constant value.
        mean_s: f64,
    },
    /// The sum of `shape` exponential times; squared coefficient of variation 1/shape. Letter E.
    Erlang {
        /// How many exponential stages.
        shape: u32,
        /// The mean of the sum.
        mean_s: f64,
    },
    /// One of several exponential times, at random. Letter H.
    Hyperexponential {
        /// Probability and mean of each.
        parts: Vec<(f64, f64)>,
    },
    /// Uniform between two ends. Letter U.
    Uniform {
        /// The lower end.
        low_s: f64,
        /// The upper end.
        high_s: f64,
    },
    /// Log-normal, given by mean and squared coefficient of variation. Letters LN.
    LogNormal {
        /// The mean.
        mean_s: f64,
        /// Variance over squared mean.
        scv: f64,
    },
    /// Pareto (type I): P(S > t) = (minimum/t)^shape. Letters Pa. Its variance is infinite for shape ≤ 2.
    Pareto {
        /// The tail index, above 1.
        shape: f64,
        /// The mean; the minimum is `mean_s`·(shape − 1)/shape.
        mean_s: f64,
    },
    /// One of several laws, at random. Letter G.
    Mixture {
        /// The parts; their probabilities add up to 1.
        parts: Vec<Part>,
    },
    /// One of the samples of a measurement, all equally likely. Letter G.
    Empirical {
        /// The samples in ascending order.
        samples_s: Arc<[f64]>,
    },
}

/// One part of a [`Law::Mixture`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The probability of this part.
    pub probability: f64,
    /// The law of the part.
    pub of: Law,
}

/// The reason why a law is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LawError {
    #[error("the {what} of the {law} law is {value}; it must be {must}")]
    Parameter { law: &'static str, what: &'static str, value: f64, must: &'static str },
    #[error("the probabilities of the {law} law add up to {sum}; they must be positive and add up to 1")]
    Probabilities { law: &'static str, sum: f64 },
    #[error("an empirical law needs at least one sample")]
    NoSamples,
}

impl Law {
    /// Exponential with the given rate, in 1/s.
    pub fn exponential_rate(rate_per_s: f64) -> Self {
        Self::Exponential { mean_s: 1.0 / rate_per_s }
    }

    /// An empirical law from samples in any order.
    ///
    /// # Errors
    /// Fails without samples, or where one is negative or not a number.
    pub fn empirical(mut samples_s: Vec<f64>) -> Result<Self, LawError> {
        samples_s.sort_by(f64::total_cmp);
        let law = Self::Empirical { samples_s: samples_s.into() };
        law.validate()?;
        Ok(law)
    }

    /// Checks that the law is valid.
    ///
    /// # Errors
    /// Fails on parameters that are negative, not finite, or do not make a probability law.
    pub fn validate(&self) -> Result<(), LawError> {
        let name = self.name();
        let positive = |what, value: f64| {
            check(name, what, value, value > 0.0 && value.is_finite(), "positive and finite")
        };
        let not_negative = |what, value: f64| {
            check(name, what, value, value >= 0.0 && value.is_finite(), "zero or more, and finite")
        };
        match self {
            Self::Exponential { mean_s } => positive("mean", *mean_s),
            Self::Constant { mean_s } => not_negative("value", *mean_s),
            Self::Erlang { shape, mean_s } => {
                positive("shape", f64::from(*shape)).and_then(|()| positive("mean", *mean_s))
            }
            Self::Hyperexponential { parts } => {
                add_up_to_one(name, parts.iter().map(|part| part.0))?;
                parts.iter().try_for_each(|part| positive("mean", part.1))
            }
            Self::Uniform { low_s, high_s } => not_negative("lower end", *low_s).and_then(|()| {
                check(
                    name,
                    "upper end",
                    *high_s,
                    high_s.is_finite() && high_s > low_s,
                    "finite and above the lower end",
                )
            }),
            Self::LogNormal { mean_s, scv } => {
                positive("mean", *mean_s).and_then(|()| positive("squared coefficient of variation", *scv))
            }
            Self::Pareto { shape, mean_s } => positive("mean", *mean_s).and_then(|()| {
                check(
                    name,
                    "shape",
                    *shape,
                    *shape > 1.0 && shape.is_finite(),
                    "above 1, or the mean is infinite",
                )
            }),
            Self::Mixture { parts } => {
                add_up_to_one(name, parts.iter().map(|part| part.probability))?;
                parts.iter().try_for_each(|part| part.of.validate())
            }
            Self::Empirical { samples_s } => {
                if samples_s.is_empty() {
                    return Err(LawError::NoSamples);
                }
                samples_s.iter().try_for_each(|&sample| not_negative("sample", sample))
            }
        }
    }

    /// The name in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exponential { .. } => "exponential",
            Self::Constant { .. } => "constant",
            Self::Erlang { .. } => "Erlang",
            Self::Hyperexponential { .. } => "hyperexponential",
            Self::Uniform { .. } => "uniform",
            Self::LogNormal { .. } => "log-normal",
            Self::Pareto { .. } => "Pareto",
            Self::Mixture { .. } => "mixture",
            Self::Empirical { .. } => "empirical",
        }
    }

    /// The letter in Kendall's notation: M, D, E2, H2, U, LN, Pa, G.
    pub fn letter(&self) -> String {
        match self {
            Self::Exponential { .. } => "M".into(),
            Self::Constant { .. } => "D".into(),
            Self::Erlang { shape, .. } => format!("E{shape}"),
            Self::Hyperexponential { parts } => format!("H{}", parts.len()),
            Self::Uniform { .. } => "U".into(),
            Self::LogNormal { .. } => "LN".into(),
            Self::Pareto { .. } => "Pa".into(),
            Self::Mixture { .. } | Self::Empirical { .. } => "G".into(),
        }
    }

    /// The mean, E\[S\], in seconds.
    pub fn mean_s(&self) -> f64 {
        self.moment(1)
    }

    /// Variance over squared mean; 0 for a constant, 1 for an exponential law.
    pub fn scv(&self) -> f64 {
        match self {
            Self::Constant { .. } => 0.0,
            Self::Exponential { .. } => 1.0,
            Self::LogNormal { scv, .. } => *scv,
            _ => (self.moment(2) / self.mean_s().powi(2) - 1.0).max(0.0),
        }
    }

    /// E\[S^n\] for n from 1 to 4, in s^n; infinite where the tail is too heavy.
    pub fn moment(&self, n: u32) -> f64 {
        debug_assert!((1..=4).contains(&n), "moments are used up to the fourth");
        let power = n as i32;
        let factorial = f64::from((1..=n).product::<u32>());
        match self {
            Self::Exponential { mean_s } => factorial * mean_s.powi(power),
            Self::Constant { mean_s } => mean_s.powi(power),
            Self::Erlang { shape, mean_s } => {
                (0..n).map(|i| mean_s * (f64::from(*shape) + f64::from(i)) / f64::from(*shape)).product()
            }
            Self::Hyperexponential { parts } => {
                parts.iter().map(|(p, mean)| p * factorial * mean.powi(power)).sum()
            }
            // The mean of x^n between the ends, as a sum of positive terms.
            Self::Uniform { low_s, high_s } => {
                (0..=power).map(|i| low_s.powi(i) * high_s.powi(power - i)).sum::<f64>() / f64::from(n + 1)
            }
            Self::LogNormal { mean_s, scv } => {
                mean_s.powi(power) * libm::pow(1.0 + scv, f64::from(n * (n - 1) / 2))
            }
            Self::Pareto { shape, .. } if *shape <= f64::from(n) => f64::INFINITY,
            Self::Pareto { shape, .. } => self.minimum_s().powi(power) * shape / (shape - f64::from(n)),
            Self::Mixture { parts } => parts.iter().map(|part| part.probability * part.of.moment(n)).sum(),
            Self::Empirical { samples_s } => {
                samples_s.iter().map(|x| x.powi(power)).sum::<f64>() / samples_s.len() as f64
            }
        }
    }

    /// P(S > t).
    pub fn survival(&self, t_s: f64) -> f64 {
        if t_s < 0.0 {
            return 1.0;
        }
        match self {
            Self::Exponential { mean_s } => libm::exp(-t_s / mean_s),
            Self::Constant { mean_s } => f64::from(t_s < *mean_s),
            Self::Erlang { shape, mean_s } => poisson_cdf(shape - 1, t_s * f64::from(*shape) / mean_s),
            Self::Hyperexponential { parts } => {
                parts.iter().map(|(p, mean)| p * libm::exp(-t_s / mean)).sum()
            }
            Self::Uniform { low_s, high_s } => ((high_s - t_s) / (high_s - low_s)).clamp(0.0, 1.0),
            Self::LogNormal { .. } => {
                let (mu, sigma) = self.log_normal();
                normal_survival((libm::log(t_s) - mu) / sigma)
            }
            Self::Pareto { shape, .. } => libm::pow(self.minimum_s() / t_s.max(self.minimum_s()), *shape),
            Self::Mixture { parts } => {
                parts.iter().map(|part| part.probability * part.of.survival(t_s)).sum()
            }
            Self::Empirical { samples_s } => {
                let above = samples_s.len() - samples_s.partition_point(|&x| x <= t_s);
                above as f64 / samples_s.len() as f64
            }
        }
    }

    /// E\[min(S, t)\], in seconds: the service a request gets if it is cut off at t.
    pub fn limited_mean_s(&self, t_s: f64) -> f64 {
        if t_s <= 0.0 {
            return 0.0;
        }
        match self {
            Self::Exponential { mean_s } => -mean_s * libm::expm1(-t_s / mean_s),
            Self::Constant { mean_s } => t_s.min(*mean_s),
            // E[S; S ≤ t] = mean · P(one more stage also ends by t).
            Self::Erlang { shape, mean_s } => {
                let x = t_s * f64::from(*shape) / mean_s;
                mean_s * (1.0 - poisson_cdf(*shape, x)) + t_s * poisson_cdf(shape - 1, x)
            }
            Self::Hyperexponential { parts } => {
                parts.iter().map(|(p, mean)| -p * mean * libm::expm1(-t_s / mean)).sum()
            }
            Self::Uniform { low_s, high_s } => {
                let t_s = t_s.min(*high_s);
                let above = (t_s - low_s).max(0.0);
                t_s - above * above / (2.0 * (high_s - low_s))
            }
            Self::LogNormal { mean_s, .. } => {
                let (mu, sigma) = self.log_normal();
                let z = (libm::log(t_s) - mu) / sigma;
                mean_s * normal_survival(sigma - z) + t_s * normal_survival(z)
            }
            Self::Pareto { shape, mean_s } => {
                let minimum_s = self.minimum_s();
                if t_s <= minimum_s {
                    t_s
                } else {
                    mean_s - minimum_s / (shape - 1.0) * libm::pow(minimum_s / t_s, shape - 1.0)
                }
            }
            Self::Mixture { parts } => {
                parts.iter().map(|part| part.probability * part.of.limited_mean_s(t_s)).sum()
            }
            Self::Empirical { samples_s } => {
                samples_s.iter().map(|x| x.min(t_s)).sum::<f64>() / samples_s.len() as f64
            }
        }
    }

    /// The smallest t, to one part in 10¹², with P(S > t) ≤ 1 − p, in seconds.
    pub fn quantile_s(&self, p: f64) -> f64 {
        let mut high = self.mean_s().max(f64::MIN_POSITIVE);
        while self.survival(high) > 1.0 - p && high < f64::MAX / 2.0 {
            high *= 2.0;
        }
        let mut low = 0.0;
        if self.survival(low) <= 1.0 - p {
            return low;
        }
        while high - low > 1e-12 * high {
            let middle = low + (high - low) / 2.0;
            if self.survival(middle) > 1.0 - p { low = middle } else { high = middle }
        }
        high
    }

    /// Returns the law stretched by a factor in time.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        match self {
            Self::Exponential { mean_s } => Self::Exponential { mean_s: mean_s * factor },
            Self::Constant { mean_s } => Self::Constant { mean_s: mean_s * factor },
            Self::Erlang { shape, mean_s } => Self::Erlang { shape: *shape, mean_s: mean_s * factor },
            Self::Hyperexponential { parts } => Self::Hyperexponential {
                parts: parts.iter().map(|(probability, mean)| (*probability, mean * factor)).collect(),
            },
            Self::Uniform { low_s, high_s } => {
                Self::Uniform { low_s: low_s * factor, high_s: high_s * factor }
            }
            Self::LogNormal { mean_s, scv } => Self::LogNormal { mean_s: mean_s * factor, scv: *scv },
            Self::Pareto { shape, mean_s } => Self::Pareto { shape: *shape, mean_s: mean_s * factor },
            Self::Mixture { parts } => Self::Mixture {
                parts: parts
                    .iter()
                    .map(|part| Part { probability: part.probability, of: part.of.scaled(factor) })
                    .collect(),
            },
            Self::Empirical { samples_s } => {
                Self::Empirical { samples_s: samples_s.iter().map(|x| x * factor).collect() }
            }
        }
    }

    /// Returns the law stretched so that its mean is `mean_s`.
    #[must_use]
    pub fn with_mean(&self, mean_s: f64) -> Self {
        self.scaled(mean_s / self.mean_s())
    }

    /// μ and σ of the logarithm of a log-normal law.
    fn log_normal(&self) -> (f64, f64) {
        let Self::LogNormal { mean_s, scv } = self else { unreachable!("asked of log-normal laws only") };
        let sigma2 = libm::log1p(*scv);
        (libm::log(*mean_s) - sigma2 / 2.0, sigma2.sqrt())
    }

    /// The least value of a Pareto law.
    fn minimum_s(&self) -> f64 {
        let Self::Pareto { shape, mean_s } = self else { unreachable!("asked of Pareto laws only") };
        mean_s * (shape - 1.0) / shape
    }
}

/// P(Poisson(x) ≤ n), as a sum of positive terms from the largest down.
fn poisson_cdf(n: u32, x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let top = f64::from(n).min(x.floor());
    let largest = poisson_probability(top, x);
    let mut sum = largest;
    let mut term = largest;
    let mut k = top;
    while k > 0.0 && term > sum * 1e-18 {
        term *= k / x;
        k -= 1.0;
        sum += term;
    }
    (term, k) = (largest, top);
    while k < f64::from(n) && term > sum * 1e-18 {
        k += 1.0;
        term *= x / k;
        sum += term;
    }
    sum.min(1.0)
}

/// P(Poisson(x) = k). Where k is large, the logarithms of the power and of the factorial would cancel but for their last digits, so it is by
/// the distance of k from x and by Stirling's series (Loader, "Fast and accurate computation of binomial probabilities", 2000).
fn poisson_probability(k: f64, x: f64) -> f64 {
    if k < 1_000.0 {
        return libm::exp(k * libm::log(x) - x - libm::lgamma(k + 1.0));
    }
    let apart = (k - x) / x;
    // (1 + u)·ln(1 + u) − u
    let distance = if apart.abs() < 1e-2 {
        let (u, mut power, mut sum) = (apart, apart, 0.0);
        for j in 2..10 {
            power *= -u;
            sum -= power / f64::from(j * (j - 1));
        }
        sum
    } else {
        (1.0 + apart) * libm::log1p(apart) - apart
    };
    let stirling = 1.0 / (12.0 * k) - 1.0 / (360.0 * k * k * k);
    libm::exp(-x * distance - stirling) / (std::f64::consts::TAU * k).sqrt()
}

/// P(standard normal > z).
fn normal_survival(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

fn check(
    law: &'static str,
    what: &'static str,
    value: f64,
    holds: bool,
    must: &'static str,
) -> Result<(), LawError> {
    if holds { Ok(()) } else { Err(LawError::Parameter { law, what, value, must }) }
}

fn add_up_to_one(law: &'static str, probabilities: impl Iterator<Item = f64>) -> Result<(), LawError> {
    let (sum, positive) = probabilities.fold((0.0, true), |(sum, ok), p| (sum + p, ok && p > 0.0));
    if positive && (sum - 1.0).abs() < 1e-9 { Ok(()) } else { Err(LawError::Probabilities { law, sum }) }
}
