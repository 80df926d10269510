//! What the sections share: the number of rounds, the median over them, and the program that is measured.

use std::env;
use std::path::PathBuf;

use kendall_stats::number::significant;

/// Rounds in which both sides of a ratio run.
pub(crate) const ROUNDS: usize = 3;

/// The program that is measured: the release build beside this one.
///
/// # Panics
/// Where it is not built.
pub(crate) fn kendall() -> PathBuf {
    let own = env::current_exe().expect("a program knows its path");
    let program = own.with_file_name("kendall");
    assert!(
        program.exists(),
        "{} is missing; run cargo build --release --package kendall",
        program.display()
    );
    program
}

/// The middle of some values; the upper one of two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A ratio with two significant digits: what a few rounds on a shared machine support.
pub(crate) fn ratio(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "–".into();
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    significant((value / unit).round() * unit, 2)
}
