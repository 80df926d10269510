//! The method of a prediction, and the reason why it misses.

use std::fmt;

use kendall_stats::number::significant;
use serde::{Deserialize, Serialize};

/// The way of modelling that a prediction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictedBy {
    /// Queueing theory.
    Formula,
    /// The simulator.
    Simulation,
}

/// Whether some formula has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// No formula has one.
    None,
    /// Some formula has an answer, for a station with limited capacity.
    Some,
}

/// What becomes of the requests beyond what the servers can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// They queue.
    Queues,
    /// A full station rejects them.
    Lost,
}

/// Whether response times grow during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Response times grow during the trial.
    Rising,
    /// Response times do not grow during the trial.
    Steady,
}

/// The reason why a model misses: the assumption that broke.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Reason {
    /// Service times vary otherwise than the model's law.
    ServiceVariation {
        /// The law that the model assumes.
        assumed: AssumedLaw,
        /// The squared coefficient of variation of that law.
        assumed_scv: f64,
        /// The measured one.
        seen_scv: f64,
    },
}

/// A law of service times whose variation is fixed by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssumedLaw {
    /// M.
    Exponential,
    /// D.
    Constant,
    /// E.
    Erlang,
}

impl fmt::Display for PredictedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Formula => "formula",
            Self::Simulation => "simulation",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::ServiceVariation { assumed, assumed_scv, seen_scv } = self;
        let (seen, scv) = (significant(*seen_scv, 2), significant(*assumed_scv, 2));
        let numbers =
            format!("squared coefficient of variation {seen}, not {scv}").replace("not 1.0", "not 1");
        let compared = if seen_scv < assumed_scv { "less" } else { "more" };
        match assumed {
            AssumedLaw::Exponential => {
                write!(f, "Service times vary {compared} than exponential ones ({numbers}).")
            }
            AssumedLaw::Constant => write!(f, "Service times are not constant ({numbers})."),
            AssumedLaw::Erlang => write!(f, "Service times vary {compared} than Erlang ones ({numbers})."),
        }
    }
}
