//! Whether two numbers agree.

use crate::check::{AssumptionVerdict, Check, Finding};

/// The relative error of a number.
pub(super) fn apart(found: f64, expected: f64) -> f64 {
    let share = found / expected - 1.0;
    if share.is_finite() { share } else { 0.0 }
}

/// A finding that holds where two numbers are within some part of each other.
pub(super) fn agreement(
    check: Check,
    effect: f64,
    within: f64,
    what: &str,
    holds: String,
    broken: String,
) -> Finding {
    let (verdict, sentence) = if effect.abs() <= within {
        (AssumptionVerdict::Holds, holds)
    } else {
        (AssumptionVerdict::Broken, broken)
    };
    Finding::new(check, verdict, sentence).effect(what, effect)
}
