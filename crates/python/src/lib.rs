//! The compiled part of the Python package `kendall`.
//!
//! It hands answers over as JSON, which the Python side makes objects of: serialising one takes microseconds, and both sides stay small.
//! Simulations run without the interpreter's lock, on all processors; the thread that called looks for Ctrl-C meanwhile.

mod errors;
mod network;
mod numbers;
mod station;
mod watching;

use pyo3::prelude::*;
use serde::Serialize;

use errors::failed;

/// The compiled part of kendall.
#[pymodule]
mod _kendall {
    #[pymodule_export]
    use crate::errors::{KendallError, NoAnswer, Unstable};
    #[pymodule_export]
    use crate::network::{Network, model, models};
    #[pymodule_export]
    use crate::numbers::{percent, significant, time, time_with_interval, toml};
    #[pymodule_export]
    use crate::station::Station;
}

/// A value as JSON.
fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(failed)
}
