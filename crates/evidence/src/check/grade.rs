//! The grade of a check by effect and significance, and the error of a prediction in words.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::AssumptionVerdict;

/// A p-value below this is not put down to chance. A report makes some hundred tests, so that one in ten is wrong once,
/// and only if the effect is large as well.
pub(super) const CHANCE: f64 = 1e-3;

/// Grades by effect and significance: broken if `effect` is above `limit` and significant; holds if it is not above and there are at
/// least `enough` of the `n` values that show such an effect.
pub(super) fn grade(n: usize, enough: usize, p_value: f64, effect: f64, limit: f64) -> AssumptionVerdict {
    match effect.abs() > limit {
        true if p_value < CHANCE => AssumptionVerdict::Broken,
        false if n >= enough => AssumptionVerdict::Holds,
        _ => AssumptionVerdict::CannotTell,
    }
}

/// The chance of a standard normal value so far from 0 or farther.
pub(super) fn two_sided(z: f64) -> f64 {
    if z.is_nan() { 1.0 } else { (2.0 * Normal::standard().sf(z.abs())).min(1.0) }
}

/// The error of a prediction in words, where the truth is `factor` times the prediction.
pub(super) fn off(factor: f64) -> String {
    use kendall_stats::number::{percent, significant};
    match 1.0 / factor {
        over if !over.is_finite() || over > 100.0 => "overestimates waits by far".to_owned(),
        over if over >= 2.0 => format!("overestimates waits by a factor of {}", significant(over, 2)),
        over if over > 1.0 => format!("overestimates waits by {}", percent(over - 1.0)),
        over if over >= 0.5 => format!("underestimates waits by {}", percent(1.0 - over)),
        _ => format!("underestimates waits by a factor of {}", significant(factor, 2)),
    }
}
