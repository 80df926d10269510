//! What the sections share: the number of rounds, the median over them, the program that is measured, and how a series ends.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kendall_stats::number::significant;

/// Rounds in which both sides of a ratio run.
pub(crate) const ROUNDS: usize = 3;

/// The variable of the environment that names the program that is measured.
const PROGRAM: &str = "KENDALL_PROGRAM";

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the sources are where they were compiled")
}

/// The exit status of a series, given the names of those that failed, or the reason why it could not begin.
pub(crate) fn status(series: Result<Vec<String>, String>) -> ExitCode {
    match series {
        Ok(failed) if failed.is_empty() => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("No result of {}; the reason is above.", failed.join(", "));
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The program that is measured: the release build beside this one, or the one that the environment names.
///
/// # Panics
/// Where it is not built.
pub(crate) fn kendall() -> PathBuf {
    if let Some(program) = env::var_os(PROGRAM) {
        return program.into();
    }
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

/// Every table of a page has as many cells in each line as in its head.
#[cfg(test)]
pub(crate) fn check_tables(text: &str) {
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = None;
    for line in text.lines() {
        match (line.starts_with('|'), head) {
            (false, _) => head = None,
            (true, None) => head = Some(columns(line)),
            (true, Some(expected)) => assert_eq!(columns(line), expected, "{line}"),
        }
    }
}
