//! The interval of a counted share.

use statrs::distribution::{Beta, ContinuousCDF as _};

use super::quantiles::NORMAL_FROM;

/// The quantile of the normal law that 2.5 % exceed.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a probability of which `count` of `of` independent trials were successes, by Clopper and Pearson (1934):
/// exact, so that its coverage is at least 95 %, also if none or all were successes. The whole range without a trial.
///
/// For counts large enough for the normal approximation, it is that of Wilson (1927) with half a count for continuity, which
/// differs by less than a hundredth of its width; the library's incomplete beta function does not converge there.
pub fn share_interval(count: u64, of: u64) -> (f64, f64) {
    let (k, n) = (count.min(of) as f64, of as f64);
    if k * (n - k) > NORMAL_FROM * n {
        return (wilson(k - 0.5, n, -Z), wilson(k + 0.5, n, Z));
    }
    let bound = |a: f64, b: f64, p: f64| {
        let law = Beta::new(a, b).expect("both shapes are at least 1, because the count is neither 0 nor n");
        // The library's inverse does not terminate for shares of millions; 200 halvings are exact to rounding.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if law.cdf(middle) < p { low = middle } else { high = middle }
        }
        high
    };
    let low = if count == 0 { 0.0 } else { bound(k, n - k + 1.0, 0.025) };
    let high = if count >= of { 1.0 } else { bound(k + 1.0, n - k, 0.975) };
    (low, high)
}

/// One end of Wilson's score interval.
fn wilson(k: f64, n: f64, z: f64) -> f64 {
    let spread = (k * (n - k) / n + z * z / 4.0).sqrt();
    (k + z * z / 2.0 + z * spread) / (n + z * z)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF as _};

    use super::*;

    /// At each end the probability of the observed count or a more extreme one is 2.5 %: that makes it exact.
    #[test]
    fn each_end_errs_with_a_fortieth() {
        for (count, of) in [(1, 10), (5, 10), (3, 1000), (999, 1000), (2000, 1_000_000)] {
            let (low, high) = share_interval(count, of);
            let so_many = 1.0 - Binomial::new(low, of).unwrap().cdf(count - 1);
            let so_few = Binomial::new(high, of).unwrap().cdf(count);
            assert!((so_many - 0.025).abs() < 1e-4 && (so_few - 0.025).abs() < 1e-4, "{count} of {of}");
        }
    }

    /// At the limit between the two methods, they agree.
    #[test]
    fn both_ways_meet() {
        let (n, k) = (100_000u64, 4000u64);
        assert!(k as f64 * (n - k) as f64 <= NORMAL_FROM * n as f64);
        let (low, high) = share_interval(k, n);
        let near = |a: f64, b: f64| (a - b).abs() < 0.02 * (high - low);
        let (k, n) = (k as f64, n as f64);
        assert!(near(low, wilson(k - 0.5, n, -Z)) && near(high, wilson(k + 0.5, n, Z)), "{low} {high}");
    }

    #[test]
    fn none_and_all_have_an_interval_too() {
        let none = share_interval(0, 300);
        assert!(none.0 == 0.0 && (none.1 - (1.0 - 0.025f64.powf(1.0 / 300.0))).abs() < 1e-6, "{none:?}");
        let all = share_interval(300, 300);
        assert!(all.1 == 1.0 && (all.0 - (1.0 - none.1)).abs() < 1e-6, "{all:?}");
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
        // The rule of three, −ln 0.025 / n, of an hour's requests.
        let (_, high) = share_interval(0, 72_000_000);
        assert!((high * 72e6 / -0.025f64.ln() - 1.0).abs() < 1e-3, "{high}");
        let (low, high) = share_interval(36_000_000, 72_000_000);
        let half = Z * (0.25f64 / 72e6).sqrt();
        assert!(
            ((0.5 - low) / half - 1.0).abs() < 1e-3 && ((high - 0.5) / half - 1.0).abs() < 1e-3,
            "{low} {high}"
        );
    }
}
