//! Tests for exponential values with an unknown mean.

use std::sync::OnceLock;

use crate::random::{Purpose, exponential, stream};

use super::kolmogorov::distance_to_uniform;
use super::{Tested, mean};

/// The number of random samples behind the p-value of the test of Lilliefors.
const DRAWS: u64 = 10_000;
const SEED: u64 = 1969;
/// The law of the modified distance no longer changes much with the size of the sample from here on.
const SETTLED: usize = 64;

/// The test of Anderson and Darling against the exponential law with its mean estimated: A² (Anderson and Darling 1954). The
/// p-value is that of A²(1 + 0.6/n), by the fit of D'Agostino and Stephens (1986, section 4.9), accurate to 0.005: for 20 values or
/// more, and for p-values up to 0.2 from 5 values on. No p-value below 10⁻⁶ is reported. `None` for fewer than 2 values, or if one
/// is negative or all are 0.
pub fn anderson_darling_exponential(values: &[f64]) -> Option<Tested> {
    let scaled = in_means(values)?;
    let n = scaled.len() as f64;
    // No exponential time is 0; a zero from a coarse clock counts as the least positive time.
    let log_below = |x: f64| libm::log(-libm::expm1(-x.max(f64::MIN_POSITIVE)));
    let pairs = scaled.iter().zip(scaled.iter().rev()).enumerate();
    let sum: f64 = pairs.map(|(i, (&low, &high))| (2 * i + 1) as f64 * (log_below(low) - high)).sum();
    let statistic = -n - sum / n;
    Some(Tested {
        statistic,
        p_value: anderson_darling_chance(anderson_darling_modified(statistic, values.len())),
    })
}

/// A²(1 + 0.6/n), whose law no longer depends on the number of values (Stephens 1974).
pub fn anderson_darling_modified(statistic: f64, n: usize) -> f64 {
    statistic * (1.0 + 0.6 / n as f64)
}

fn anderson_darling_chance(modified: f64) -> f64 {
    let at = |a: f64, b: f64, c: f64| libm::exp(a + b * modified + c * modified * modified);
    let chance = match modified {
        x if x < 0.26 => 1.0 - at(-12.2204, 67.459, -110.3),
        x if x < 0.51 => 1.0 - at(-6.1327, 20.218, -18.663),
        x if x < 0.95 => at(0.9209, -3.353, 0.3),
        x if x < 10.0 => at(0.731, -3.009, 0.15),
        _ => 0.0,
    };
    chance.clamp(1e-6, 1.0)
}

/// The test of Lilliefors (1969): Kolmogorov's distance to the exponential law of the sample's own mean. The p-value is the share
/// of 10,000 random exponential samples with at least this distance, by a fixed seed; above 64 values by the modified distance of
/// Stephens (1974), (D − 0.2/n)(√n + 0.26 + 0.5/√n), whose law is the same for all sizes. `None` for fewer than 2 values, or if one
/// is negative or all are 0.
pub fn lilliefors_exponential(values: &[f64]) -> Option<Tested> {
    let scaled = in_means(values)?;
    let statistic = distance_to_exponential(&scaled);
    // Each law is drawn once.
    static LAWS: [OnceLock<Vec<f64>>; SETTLED + 1] = [const { OnceLock::new() }; SETTLED + 1];
    let size = scaled.len().min(SETTLED);
    let drawn = LAWS[size].get_or_init(|| random_distances(size));
    Some(Tested { statistic, p_value: share_at_least(drawn, modified_distance(statistic, scaled.len())) })
}

/// The values in ascending order, in units of their mean.
fn in_means(values: &[f64]) -> Option<Vec<f64>> {
    let centre = mean(values);
    let sound = values.len() >= 2
        && values.iter().all(|value| *value >= 0.0)
        && centre.is_finite()
        && centre > f64::MIN_POSITIVE;
    sound.then(|| {
        let mut scaled: Vec<f64> = values.iter().map(|value| value / centre).collect();
        scaled.sort_by(f64::total_cmp);
        scaled
    })
}

fn distance_to_exponential(scaled: &[f64]) -> f64 {
    let uniform: Vec<f64> = scaled.iter().map(|x| -libm::expm1(-x)).collect();
    distance_to_uniform(&uniform)
}

fn modified_distance(distance: f64, n: usize) -> f64 {
    let n = n as f64;
    (distance - 0.2 / n) * (n.sqrt() + 0.26 + 0.5 / n.sqrt())
}

/// The modified distances of random exponential samples, ascending.
fn random_distances(n: usize) -> Vec<f64> {
    let mut rng = stream(SEED, Purpose::Service, n as u64);
    let mut draw = || {
        // The gaps between ordered exponential values are exponential themselves (Rényi 1953): no sorting.
        let (mut reached, mut total) = (0.0, 0.0);
        let mut sorted: Vec<f64> = (0..n)
            .map(|i| {
                reached += exponential(&mut rng) / (n - i) as f64;
                total += reached;
                reached
            })
            .collect();
        sorted.iter_mut().for_each(|x| *x *= n as f64 / total);
        modified_distance(distance_to_exponential(&sorted), n)
    };
    let mut drawn: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    drawn.sort_by(f64::total_cmp);
    drawn
}

/// The share of the drawn values that are at least as large, counting the tested one (Davison and Hinkley 1997, 4.2.5).
fn share_at_least(drawn: &[f64], value: f64) -> f64 {
    let below = drawn.partition_point(|&x| x < value);
    (drawn.len() - below + 1) as f64 / (drawn.len() + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Law;

    fn sample(law: &Law, n: usize, run: u64) -> Vec<f64> {
        let mut rng = stream(3, Purpose::Trial, run);
        (0..n).map(|_| law.sample(&mut rng)).collect()
    }

    type Test = fn(&[f64]) -> Option<Tested>;

    const TESTS: [Test; 2] = [anderson_darling_exponential, lilliefors_exponential];

    fn chances(law: &Law, n: usize, runs: u64, test: Test) -> Vec<f64> {
        (0..runs).map(|run| test(&sample(law, n, run)).unwrap().p_value).collect()
    }

    /// The share of the samples that are rejected at a level.
    fn rejected(chances: &[f64], level: f64) -> f64 {
        chances.iter().filter(|chance| **chance < level).count() as f64 / chances.len() as f64
    }

    /// 2,000 samples at each level: four standard errors and 0.005 for the fit; each fails in 1 of 16,000 runs.
    #[test]
    fn exponential_values_are_rejected_at_the_level() {
        let law = Law::Exponential { mean_s: 0.02 };
        for test in TESTS {
            for n in [5, 20, 200] {
                let chances = chances(&law, n, 2_000, test);
                let levels = [0.01, 0.05, 0.2, 0.5, 0.8].into_iter().filter(|level| n > 5 || *level <= 0.2);
                for level in levels {
                    let share = rejected(&chances, level);
                    let room = 4.0 * (level * (1.0 - level) / 2_000.0_f64).sqrt() + 0.005;
                    assert!((share - level).abs() < room, "n = {n}, level {level}: {share}");
                }
            }
        }
    }

    #[test]
    fn other_laws_are_seen() {
        let uniform = Law::Uniform { low_s: 0.0, high_s: 2.0 };
        let mixed = Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] };
        for test in TESTS {
            for law in [&uniform, &mixed] {
                assert!(rejected(&chances(law, 200, 50, test), 0.01) > 0.95, "{law:?}");
            }
        }
    }

    #[test]
    fn the_chance_falls_with_the_distance_and_meets_the_printed_points() {
        // Upper 15, 10, 5, 2.5 and 1 % points (Stephens 1974).
        for (point, chance) in [(0.922, 0.15), (1.078, 0.10), (1.341, 0.05), (1.606, 0.025), (1.957, 0.01)] {
            assert!((anderson_darling_chance(point) / chance - 1.0).abs() < 0.04, "{point}");
        }
        let chances: Vec<f64> = (0..2000).map(|i| anderson_darling_chance(f64::from(i) / 100.0)).collect();
        assert!(chances.windows(2).all(|pair| pair[1] <= pair[0] + 2e-3));
    }

    #[test]
    fn odd_values_have_no_test_and_zeros_a_finite_one() {
        for test in TESTS {
            for values in
                [&[][..], &[1.0], &[0.0; 5], &[1.0, -1.0, 3.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]]
            {
                assert_eq!(test(values), None, "{values:?}");
            }
            let found = test(&[0.0, 0.0, 1.0, 2.0]).unwrap();
            assert!(found.statistic.is_finite() && (0.0..=1.0).contains(&found.p_value));
        }
    }
}
