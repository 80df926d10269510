//! The exceptions of the package, with the sentences of the command line.

use std::fmt::Display;

use kendall_simulation::SimulationError;
use kendall_theory::{NoFormula, NoNetworkFormula};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(kendall, KendallError, PyException, "What kendall cannot do, and why.");
create_exception!(kendall, NoAnswer, KendallError, "A method that has no answer, and why.");
create_exception!(
    kendall,
    Unstable,
    NoAnswer,
    "A station without a steady state: its utilisation would be 1 or more."
);

/// An invalid question.
pub(crate) fn failed(why: impl Display) -> PyErr {
    // With its causes, as the command line prints them.
    KendallError::new_err(with_keywords(&format!("{why:#}")))
}

/// A sentence about options of the command line, with the keyword arguments in their place: `--service-rate` is `service_rate`.
fn with_keywords(sentence: &str) -> String {
    let mut parts = sentence.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let (name, rest) = part.split_at(part.find(|letter| !is_name(letter)).unwrap_or(part.len()));
        text += &name.replace('-', "_");
        text += rest;
    }
    text
}

pub(crate) fn no_formula(why: &NoFormula) -> PyErr {
    match why {
        NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. } => Unstable::new_err(why.to_string()),
        _ => NoAnswer::new_err(why.to_string()),
    }
}

pub(crate) fn no_network_formula(why: &NoNetworkFormula) -> PyErr {
    match why {
        NoNetworkFormula::Unstable { .. }
        | NoNetworkFormula::Node {
            why: NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. },
            ..
        } => Unstable::new_err(why.to_string()),
        _ => NoAnswer::new_err(why.to_string()),
    }
}

pub(crate) fn not_simulated(why: &SimulationError) -> PyErr {
    match why {
        SimulationError::Unstable { .. } => Unstable::new_err(why.to_string()),
        _ => NoAnswer::new_err(why.to_string()),
    }
}
