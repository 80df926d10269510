//! How numbers read, and experiments as files.

use kendall_stats::number;
use pyo3::prelude::*;

use crate::errors::failed;

/// A time in seconds, in the unit that suits it.
#[pyfunction]
pub(crate) fn time(seconds: f64) -> String {
    number::time(seconds)
}

/// A time in seconds with its 95 % interval.
#[pyfunction]
#[pyo3(signature = (seconds, interval=None))]
pub(crate) fn time_with_interval(seconds: f64, interval: Option<(f64, f64)>) -> String {
    number::time_with_interval(seconds, interval)
}

/// A share in per cent.
#[pyfunction]
pub(crate) fn percent(share: f64) -> String {
    number::percent(share)
}

/// A number with this many significant digits.
#[pyfunction]
pub(crate) fn significant(value: f64, digits: i32) -> String {
    number::significant(value, digits)
}

/// JSON as TOML.
#[pyfunction]
pub(crate) fn toml(json: &str) -> PyResult<String> {
    let table: ::toml::Table = serde_json::from_str(json).map_err(failed)?;
    ::toml::to_string(&table).map_err(failed)
}
