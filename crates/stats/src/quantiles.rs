//! Quantiles of a sample and their distribution-free intervals.

use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, Normal};

/// From this variance on a binomial count is taken as normal: its ends are then off by a rank or two in more than a hundred,
/// and the library's incomplete beta function no longer converges within its limit of steps.
pub(super) const NORMAL_FROM: f64 = 4000.0;

/// The fewest independent samples for which any two of them bracket the quantile `p` with 95 % confidence: 6 for the median,
/// 29 for p = 0.9, 2995 for p = 0.999. With fewer, a quantile must not be printed.
pub fn minimum_samples(p: f64) -> u64 {
    fewest(p, 0.05)
}

fn fewest(p: f64, error: f64) -> u64 {
    let outer = p.max(1.0 - p);
    let mut n = (error.ln() / outer.ln()).floor() as u64;
    while outer.powf(n as f64) + (1.0 - outer).powf(n as f64) > error {
        n += 1;
    }
    n
}

/// The ranks, counted from 1, of the two order statistics of `n` independent samples that bracket the quantile `p` with 95 %
/// confidence (David and Nagaraja 2003, section 7.1). Each end errs with probability at most 2.5 %, if the sample is large
/// enough for that; otherwise both together err with at most 5 %. `None` below [`minimum_samples`].
pub fn quantile_ranks(n: u64, p: f64) -> Option<(u64, u64)> {
    ranks(n, p, 0.05)
}

/// The ranks with another confidence than 95 %; both are above 0 and below 1.
pub fn quantile_ranks_with(n: u64, p: f64, confidence: f64) -> Option<(u64, u64)> {
    ranks(n, p, 1.0 - confidence)
}

fn ranks(n: u64, p: f64, error: f64) -> Option<(u64, u64)> {
    if n < fewest(p, error) {
        return None;
    }
    let half = error / 2.0;
    let variance = n as f64 * p * (1.0 - p);
    if variance > NORMAL_FROM {
        let reach = Normal::standard().inverse_cdf(1.0 - half) * variance.sqrt();
        let centre = n as f64 * p;
        return Some(((centre - reach).floor() as u64, (centre + reach).ceil() as u64 + 1));
    }
    let count = Binomial::new(p, n).expect("p is a probability");
    let below = |rank: u64| rank.checked_sub(1).map_or(0.0, |rank| count.cdf(rank));
    // The error probability of the largest or the smallest sample as the end, if that is more than half of the allowed one.
    let at_top = 1.0 - below(n);
    let at_bottom = below(1);
    let lower_error = if at_top > half { error - at_top } else { half };
    let upper_error = if at_bottom > half { error - at_bottom } else { half };
    let lower = last(n, |rank| below(rank) <= lower_error).max(1);
    let upper = last(n, |rank| 1.0 - below(rank) > upper_error) + 1;
    Some((lower, upper.min(n)))
}

/// The rank, counted from 1, of the smallest of `n` > 0 ordered samples that at least a share `p` of them stay below or
/// at.
pub fn quantile_rank(n: u64, p: f64) -> u64 {
    // 0.9 · 10 must be 9, despite rounding.
    ((p * n as f64 * (1.0 - 1e-12)).ceil() as u64).clamp(1, n)
}

/// The last rank in 0..=n for which a condition holds that holds up to some rank and no further.
fn last(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n + 1);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_are_those_of_the_exact_binomial() {
        let vectors = [
            (1000, 0.5, 469, 532),
            (1000, 0.9, 881, 919),
            (1000, 0.99, 983, 997),
            (10_000, 0.5, 4902, 5099),
            (10_000, 0.9, 8941, 9059),
            (10_000, 0.99, 9880, 9920),
            (10_000, 0.999, 9983, 9997),
            (100_000, 0.99, 98_938, 99_062),
            (100_000, 0.999, 99_880, 99_920),
        ];
        for (n, p, lower, upper) in vectors {
            assert_eq!(quantile_ranks(n, p), Some((lower, upper)), "n = {n}, p = {p}");
        }
    }

    /// Of an hour's requests: the ends lie 1.96 standard deviations from the middle.
    #[test]
    fn large_samples_have_their_ranks_by_the_normal_approximation() {
        let (lower, upper) = quantile_ranks(72_000_000, 0.5).unwrap();
        let reach = 1.959_964 * (72e6f64 / 4.0).sqrt();
        assert!((36e6 - lower as f64 - reach).abs() < 2.0 && (upper as f64 - 36e6 - reach).abs() < 3.0);
        // At the limit between the two methods, they agree.
        let (exact, normal) = (quantile_ranks(15_999, 0.5).unwrap(), quantile_ranks(16_001, 0.5).unwrap());
        assert!(
            normal.0.abs_diff(exact.0 + 1) <= 2 && normal.1.abs_diff(exact.1 + 1) <= 2,
            "{exact:?} {normal:?}"
        );
    }

    #[test]
    fn too_small_a_sample_has_no_quantile() {
        for (p, n) in [(0.5, 6), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995), (0.05, 59)] {
            assert_eq!(minimum_samples(p), n);
            assert_eq!(quantile_ranks(n - 1, p), None);
            let (lower, upper) = quantile_ranks(n, p).unwrap();
            let count = Binomial::new(p, n).unwrap();
            let covered = count.cdf(upper - 1) - if lower > 0 { count.cdf(lower - 1) } else { 0.0 };
            assert!(covered >= 0.95 - 1e-12, "p = {p}: {covered}");
        }
    }

    #[test]
    fn a_quantile_is_a_value_of_the_sample() {
        for (n, p, rank) in [(4, 0.5, 2), (4, 0.51, 3), (4, 0.999, 4), (10, 0.9, 9), (1, 0.05, 1)] {
            assert_eq!(quantile_rank(n, p), rank, "{n} {p}");
        }
    }
}
