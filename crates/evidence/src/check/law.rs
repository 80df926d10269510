//! Finds the law that times are closest to.

use kendall_station::Law;

use kendall_stats::{Tested, mean, uniform_distance, variance};

/// The law closest to a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Closest {
    /// The law, with the parameters of largest likelihood.
    pub law: Law,
    /// Akaike's information criterion, 2·parameters − 2·log likelihood; `None` for a constant, which has no density.
    pub aic: Option<f64>,
    /// Kolmogorov's distance between the sample and the law.
    pub distance: Tested,
}

/// More values than this, in order and evenly thinned, say no more of the shape of a law.
const MOST: usize = 2_000;
/// Times that vary by less than 10 % are constant for every prediction: a mean wait goes with 1 + scv.
const CONSTANT_SCV: f64 = 0.01;
/// Laws within 2 % of each other everywhere predict alike; the simpler one is taken.
const ALIKE: f64 = 0.02;
/// The most stages of an Erlang law that is tried.
const MOST_STAGES: f64 = 400.0;

/// The closest of the constant, exponential, uniform, Erlang, log-normal and hyperexponential laws: the least AIC (Akaike
/// 1974), but a law with fewer parameters where it is as near to the sample, within 0.02 everywhere. `None` for fewer than
/// 10 values, or where one is negative or all are 0.
pub fn closest_law(times_s: &[f64]) -> Option<Closest> {
    if times_s.len() < 10 || times_s.iter().any(|x| !x.is_finite() || *x < 0.0) {
        return None;
    }
    let mean_s = mean(times_s);
    let scv = variance(times_s) / (mean_s * mean_s);
    if mean_s <= f64::MIN_POSITIVE || !scv.is_finite() {
        return None;
    }
    if scv < CONSTANT_SCV {
        let distance = Tested { statistic: 0.0, p_value: 1.0 };
        return Some(Closest { law: Law::Constant { mean_s }, aic: None, distance });
    }
    let sorted = thinned(times_s);
    let mut candidates = vec![exponential(mean_s), uniform(&sorted), log_normal(&sorted)];
    candidates.extend(erlang(&sorted, scv));
    candidates.push(hyperexponential(&sorted));
    let fitted = |(law, parameters): (Law, u32)| {
        law.validate().ok()?;
        let log_likelihood: f64 = sorted.iter().map(|&x| log_density(&law, x)).sum();
        let aic = 2.0 * f64::from(parameters) - 2.0 * log_likelihood;
        let shares: Vec<f64> = sorted.iter().map(|&x| (1.0 - law.survival(x)).clamp(0.0, 1.0)).collect();
        let distance = uniform_distance(&shares)?;
        aic.is_finite().then_some((parameters, Closest { law, aic: Some(aic), distance }))
    };
    let fitted: Vec<(u32, Closest)> = candidates.into_iter().filter_map(fitted).collect();
    let aic = |closest: &Closest| closest.aic.unwrap_or(f64::INFINITY);
    let best = fitted.iter().min_by(|a, b| aic(&a.1).total_cmp(&aic(&b.1)))?;
    let (least, nearest) = (aic(&best.1), best.1.distance.statistic);
    let as_good = |candidate: &&(u32, Closest)| {
        aic(&candidate.1) <= least + 2.0 || candidate.1.distance.statistic <= nearest + ALIKE
    };
    let simplest =
        fitted.iter().filter(as_good).min_by(|a, b| a.0.cmp(&b.0).then(aic(&a.1).total_cmp(&aic(&b.1))));
    simplest.map(|(_, closest)| closest.clone())
}

/// The values in order, evenly thinned; a time of 0 counts as the least time that is not.
fn thinned(times_s: &[f64]) -> Vec<f64> {
    let mut sorted = times_s.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = sorted.iter().copied().find(|x| *x > 0.0).unwrap_or(1.0);
    let count = sorted.len().min(MOST);
    // From the first to the last, both with it.
    let at = |i: usize| sorted[i * (sorted.len() - 1) / (count - 1)].max(least);
    (0..count).map(at).collect()
}

fn exponential(mean_s: f64) -> (Law, u32) {
    (Law::Exponential { mean_s }, 1)
}

fn uniform(sorted: &[f64]) -> (Law, u32) {
    let (low_s, high_s) = (sorted[0], sorted[sorted.len() - 1]);
    // From near 0 it is taken to be from 0, which saves a parameter.
    if low_s < 0.02 * high_s {
        (Law::Uniform { low_s: 0.0, high_s }, 1)
    } else {
        (Law::Uniform { low_s, high_s }, 2)
    }
}

fn log_normal(sorted: &[f64]) -> (Law, u32) {
    let logs: Vec<f64> = sorted.iter().map(|&x| libm::log(x)).collect();
    let (centre, spread) = (mean(&logs), variance(&logs));
    (Law::LogNormal { mean_s: libm::exp(centre + spread / 2.0), scv: libm::expm1(spread) }, 2)
}

fn erlang(sorted: &[f64], scv: f64) -> Vec<(Law, u32)> {
    let mean_s = mean(sorted);
    let about = (1.0 / scv).round().clamp(2.0, MOST_STAGES) as u32;
    (about.saturating_sub(1).max(2)..=about + 1).map(|shape| (Law::Erlang { shape, mean_s }, 2)).collect()
}

/// Two exponential laws by expectation maximisation (Dempster, Laird and Rubin 1977), from halves of the sample.
fn hyperexponential(sorted: &[f64]) -> (Law, u32) {
    let half = sorted.len() / 2;
    let (mut share, mut means) = (0.5, [mean(&sorted[..half]), mean(&sorted[half..])]);
    for _ in 0..60 {
        let (mut weight, mut sums) = (0.0, [0.0; 2]);
        for &x in sorted {
            let density = |share: f64, mean: f64| share / mean * libm::exp(-x / mean);
            let (first, second) = (density(share, means[0]), density(1.0 - share, means[1]));
            let part = if first + second > 0.0 { first / (first + second) } else { 0.0 };
            weight += part;
            sums[0] += part * x;
            sums[1] += (1.0 - part) * x;
        }
        let n = sorted.len() as f64;
        // A part that nothing belongs to has no mean; the law is then no mixture, and another one wins.
        if weight < 1e-6 || n - weight < 1e-6 {
            break;
        }
        share = weight / n;
        means = [sums[0] / weight, sums[1] / (n - weight)];
    }
    (Law::Hyperexponential { parts: vec![(share, means[0]), (1.0 - share, means[1])] }, 3)
}

/// The logarithm of a law's density at x > 0.
fn log_density(law: &Law, x: f64) -> f64 {
    match law {
        Law::Exponential { mean_s } => -libm::log(*mean_s) - x / mean_s,
        Law::Uniform { low_s, high_s } => -libm::log(high_s - low_s),
        Law::Erlang { shape, mean_s } => {
            let (k, rate) = (f64::from(*shape), f64::from(*shape) / mean_s);
            k * libm::log(rate) + (k - 1.0) * libm::log(x) - rate * x - libm::lgamma(k)
        }
        Law::LogNormal { mean_s, scv } => {
            let spread = libm::log1p(*scv);
            let z = libm::log(x) - libm::log(*mean_s) + spread / 2.0;
            -z * z / (2.0 * spread) - libm::log(x) - 0.5 * libm::log(2.0 * std::f64::consts::PI * spread)
        }
        Law::Hyperexponential { parts } => {
            let density: f64 = parts.iter().map(|(share, mean)| share / mean * libm::exp(-x / mean)).sum();
            libm::log(density)
        }
        _ => f64::NEG_INFINITY,
    }
}

/// The law in words, within a sentence.
pub(super) fn in_words(law: &Law) -> String {
    use kendall_stats::number::time;
    match law {
        Law::Constant { mean_s } => format!("constant at {}", time(*mean_s)),
        Law::Uniform { low_s, high_s } => format!("uniform from {} to {}", time(*low_s), time(*high_s)),
        Law::Erlang { shape, .. } => format!("Erlang with {shape} stages"),
        other => other.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_stats::random::{Purpose, stream};

    /// Each of 20 samples of 500 values; a wrong name in more than one is statistically significant.
    #[test]
    fn the_law_that_a_sample_was_drawn_from_is_named() {
        let laws = [
            Law::Exponential { mean_s: 0.01 },
            Law::Uniform { low_s: 0.0, high_s: 0.02 },
            Law::Uniform { low_s: 0.01, high_s: 0.02 },
            Law::Erlang { shape: 4, mean_s: 0.01 },
            Law::LogNormal { mean_s: 0.01, scv: 2.0 },
            Law::Hyperexponential { parts: vec![(0.8, 0.001), (0.2, 0.05)] },
            Law::Constant { mean_s: 0.3 },
        ];
        for law in &laws {
            let named = |run: &u64| {
                let mut rng = stream(2, Purpose::Service, *run);
                let times: Vec<f64> = (0..500).map(|_| law.sample(&mut rng)).collect();
                closest_law(&times).unwrap().law.name() == law.name()
            };
            let right = (0..20).filter(named).count();
            assert!(right >= 19, "{law:?}: {right} of 20");
        }
    }

    #[test]
    fn odd_times_have_no_law() {
        for times in [&[1.0; 9][..], &[0.0; 50], &[f64::NAN; 50], &[-1.0; 50]] {
            assert_eq!(closest_law(times), None);
        }
        let mut with_zeros = vec![0.0; 20];
        with_zeros.extend([1.0; 20]);
        assert!(closest_law(&with_zeros).is_some_and(|closest| closest.law.validate().is_ok()));
    }
}
