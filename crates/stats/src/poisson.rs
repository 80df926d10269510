//! Tests for Poisson arrivals.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use super::kolmogorov::uniform_distance;
use super::{Tested, mean, variance};

/// The index of dispersion of counts in equal spans of time, variance over mean, and its two-sided p-value for a
/// Poisson stream of constant rate, where (n − 1) times the index is chi-squared with n − 1 degrees of freedom (Cox and
/// Lewis 1966, section 6.3). 1 for a Poisson stream, 0 for constant gaps. `None` for fewer than 2 counts, or if all are
/// 0.
pub fn dispersion_index(counts: &[f64]) -> Option<Tested> {
    let centre = mean(counts);
    if counts.len() < 2 || !centre.is_finite() || centre <= 0.0 {
        return None;
    }
    let freedom = (counts.len() - 1) as f64;
    let statistic = variance(counts) / centre;
    let law = ChiSquared::new(freedom).ok()?;
    let at = freedom * statistic;
    Some(Tested { statistic, p_value: (2.0 * law.cdf(at).min(law.sf(at))).min(1.0) })
}

/// The conditional-uniform test of Cox and Lewis (1966, section 6.2): given the number of arrivals until the last one,
/// the instants before it are uniform in a Poisson stream of constant rate. It detects a changing rate better than gaps
/// of another law. `None` for fewer than 2 gaps, or if one is negative or all are 0.
pub fn conditional_uniform(gaps: &[f64]) -> Option<Tested> {
    uniform_distance(&shares_of_time(gaps)?)
}

/// The test after the transformation of Durbin (1961) that Lewis (1965) proposed for it, which detects gaps of another
/// law far better (Kim and Whitt 2014, section 3): the gaps between the ordered instants are ordered, their differences
/// multiplied by the remaining number, and summed up. Two equal instants by the clock count as equal.
pub fn conditional_uniform_lewis(gaps: &[f64]) -> Option<Tested> {
    let shares = shares_of_time(gaps)?;
    let instants = [0.0].iter().chain(&shares).copied();
    let mut between: Vec<f64> =
        instants.zip(shares.iter().copied().chain([1.0])).map(|(a, b)| b - a).collect();
    between.sort_by(f64::total_cmp);
    let count = between.len();
    let (mut before, mut reached) = (0.0, 0.0);
    let mut transformed: Vec<f64> = between
        .iter()
        .enumerate()
        .map(|(i, &gap)| {
            reached += (count - i) as f64 * (gap - before);
            before = gap;
            reached.clamp(0.0, 1.0)
        })
        .collect();
    // The last sum is always 1.
    transformed.pop();
    uniform_distance(&transformed)
}

/// The instants but the last as shares of the time until the last.
fn shares_of_time(gaps: &[f64]) -> Option<Vec<f64>> {
    if gaps.len() < 2 || !gaps.iter().all(|gap| *gap >= 0.0) {
        return None;
    }
    let mut reached = 0.0;
    let mut instants: Vec<f64> = gaps
        .iter()
        .map(|gap| {
            reached += gap;
            reached
        })
        .collect();
    let last = instants.pop().filter(|last| *last > 0.0 && last.is_finite())?;
    Some(instants.into_iter().map(|instant| (instant / last).min(1.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Law;
    use crate::random::{Purpose, stream};

    fn rejected(law: &Law, test: fn(&[f64]) -> Option<Tested>) -> f64 {
        let runs = 1000;
        let gaps = |run: u64| {
            let mut rng = stream(9, Purpose::Arrivals, run);
            (0..200).map(|_| law.sample(&mut rng)).collect::<Vec<f64>>()
        };
        (0..runs).filter(|&run| test(&gaps(run)).unwrap().p_value < 0.05).count() as f64 / runs as f64
    }

    /// Counts in 25 spans of 8 mean gaps.
    fn by_counts(gaps: &[f64]) -> Option<Tested> {
        let (mut counts, mut at) = ([0.0; 25], 0.0);
        let span = gaps.iter().sum::<f64>() / 25.0;
        for gap in &gaps[..gaps.len() - 1] {
            at += gap;
            counts[(at / span) as usize] += 1.0;
        }
        dispersion_index(&counts)
    }

    /// 1,000 streams at 5 %: outside of 0.025 to 0.08 less than once in 3,000.
    #[test]
    fn a_poisson_stream_is_rejected_at_the_level() {
        let law = Law::Exponential { mean_s: 0.01 };
        for test in [conditional_uniform, conditional_uniform_lewis, by_counts] {
            let share = rejected(&law, test);
            assert!((0.025..0.08).contains(&share), "{share}");
        }
    }

    #[test]
    fn other_streams_are_detected_best_after_the_transformation() {
        let constant_and_more = Law::Uniform { low_s: 0.02, high_s: 0.04 };
        let bursts = Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] };
        for law in [&constant_and_more, &bursts] {
            assert!(rejected(law, conditional_uniform_lewis) > 0.95, "{law:?}");
            assert!(rejected(law, by_counts) > 0.8, "{law:?}");
        }
        assert!(rejected(&constant_and_more, conditional_uniform) < 0.05);
    }

    #[test]
    fn odd_gaps_have_no_test_and_equal_instants_a_finite_one() {
        for test in [conditional_uniform, conditional_uniform_lewis] {
            for gaps in [&[][..], &[1.0], &[0.0; 4], &[1.0, -1.0], &[f64::NAN, 1.0], &[1.0, f64::INFINITY]] {
                assert_eq!(test(gaps), None, "{gaps:?}");
            }
            let found = test(&[0.0, 0.0, 1.0, 0.0, 2.0]).unwrap();
            assert!(found.statistic.is_finite() && (0.0..=1.0).contains(&found.p_value));
        }
        assert_eq!(dispersion_index(&[0.0; 9]), None);
    }
}
