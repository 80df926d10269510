//! The interval of a share that was counted.

use statrs::distribution::{Beta, ContinuousCDF as _};

/// The 95 % interval of a probability of which `count` of `of` independent trials came true, by Clopper and Pearson (1934):
/// exact, so that it holds at least as often as it says, also where none or all came true. The whole range without a trial.
pub fn share_interval(count: u64, of: u64) -> (f64, f64) {
    let (k, n) = (count.min(of) as f64, of as f64);
    let bound = |a: f64, b: f64, p: f64| {
        Beta::new(a, b)
            .expect("both shapes are at least 1, since neither none nor all came true")
            .inverse_cdf(p)
    };
    let low = if count == 0 { 0.0 } else { bound(k, n - k + 1.0, 0.025) };
    let high = if count >= of { 1.0 } else { bound(k + 1.0, n - k, 0.975) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF as _};

    use super::*;

    /// At its ends the chance of so few, or so many, is 2.5 %: that is what makes it exact.
    #[test]
    fn each_end_errs_with_a_fortieth() {
        for (count, of) in [(1, 10), (5, 10), (3, 1000), (999, 1000), (20_000, 1_000_000)] {
            let (low, high) = share_interval(count, of);
            let so_many = 1.0 - Binomial::new(low, of).unwrap().cdf(count - 1);
            let so_few = Binomial::new(high, of).unwrap().cdf(count);
            assert!((so_many - 0.025).abs() < 1e-4 && (so_few - 0.025).abs() < 1e-4, "{count} of {of}");
        }
    }

    #[test]
    fn none_and_all_have_an_interval_too() {
        let none = share_interval(0, 300);
        assert!(none.0 == 0.0 && (none.1 - (1.0 - 0.025f64.powf(1.0 / 300.0))).abs() < 1e-6, "{none:?}");
        let all = share_interval(300, 300);
        assert!(all.1 == 1.0 && (all.0 - (1.0 - none.1)).abs() < 1e-6, "{all:?}");
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
    }
}
