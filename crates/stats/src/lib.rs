//! The statistics behind every interval and every check: Student's t, batch means, warm-up removal, quantiles, Little's
//! law, and tests of laws, of independence and of drift; the pinned [random numbers](random); and the [format of
//! numbers](number) in sentences.
//!
//! Everything here is a pure function of numbers. This crate does not know stations.

mod batches;
mod bootstrap;
#[cfg(test)]
mod draws;
mod exponential;
pub mod histogram;
mod hodges_lehmann;
mod kolmogorov;
pub mod least_squares;
pub mod number;
mod permutation;
mod poisson;
mod quantiles;
pub mod quantity;
pub mod random;
mod series;
mod share;
mod trend;
mod warmup;

pub use batches::{BatchMeans, batch_means, lag_one_correlation};
pub use bootstrap::{Bootstrapped, DRAWS, median, median_difference, median_interval};
pub use exponential::{anderson_darling_exponential, anderson_darling_modified, lilliefors_exponential};
pub use hodges_lehmann::{median_of_differences, median_of_walsh_averages};
pub use kolmogorov::{kolmogorov_survival, two_samples, uniform_distance};
pub use permutation::{Permuted, holm, rank_sum, signed_rank, smallest_rank_sum, smallest_signed_rank};
pub use poisson::{conditional_uniform, conditional_uniform_lewis, dispersion_index};
pub use quantiles::{minimum_samples, quantile_rank, quantile_ranks, quantile_ranks_with};
pub use series::{autocorrelation, cross_correlation, ljung_box, mann_kendall};
pub use share::share_interval;
pub use trend::{Trend, trend};
pub use warmup::{Cut, mser};

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The test's statistic.
    pub statistic: f64,
    /// The probability of a statistic at least as extreme under the null hypothesis.
    pub p_value: f64,
}

/// Little's law for a run: the mean number in the system, and throughput times mean response, each computed separately.
/// They agree on any complete and drained log, so a gap means an error in the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittleCheck {
    /// The time average of the number in the system.
    pub mean_in_system: f64,
    /// Requests per second.
    pub throughput_per_s: f64,
    /// Mean time in the system, in seconds.
    pub mean_response_s: f64,
    /// throughput × response / number − 1.
    pub relative_gap: f64,
}

impl LittleCheck {
    /// Compares the three figures.
    pub fn new(mean_in_system: f64, throughput_per_s: f64, mean_response_s: f64) -> Self {
        let relative_gap = throughput_per_s * mean_response_s / mean_in_system - 1.0;
        Self { mean_in_system, throughput_per_s, mean_response_s, relative_gap }
    }

    /// Whether the two sides agree within half a percent.
    pub fn holds(&self) -> bool {
        self.relative_gap.abs() <= 0.005
    }
}

/// The quantile of Student's t law for `freedom` > 0 degrees of freedom, which need not be whole; 0 < p < 1.
pub fn student_t(freedom: f64, p: f64) -> f64 {
    let law = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    if p < 0.5 {
        return -student_t(freedom, 1.0 - p);
    }
    // statrs inverts to about 1e-6 only; bisection on its distribution function is exact to rounding.
    let (mut low, mut high) = (0.0, 2.0);
    while law.cdf(high) < p {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if law.cdf(middle) < p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The mean of `values` and the half-width of its 95 % interval by Student's t, the values taken as independent.
/// `None` for fewer than two values.
pub fn t_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = mean(values);
    let half_width = student_t(n - 1.0, 0.975) * (variance(values) / n).sqrt();
    Some((mean, half_width))
}

/// The arithmetic mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The unbiased sample variance; NaN for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t_interval_is_the_textbook_one() {
        // Mean 3, variance 2.5, t(4; 0.975) = 2.776445: half-width 2.776445·√(2.5/5).
        let (mean, half_width) = t_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean - 3.0).abs() < 1e-15);
        assert!((half_width - 2.776_445_105_197_793 * 0.5f64.sqrt()).abs() < 1e-9, "{half_width}");
        assert_eq!(t_interval(&[1.0]), None);
        assert!((student_t(4.0, 0.025) + student_t(4.0, 0.975)).abs() < 1e-12);
    }
}
