//! The measures of published figures, and their units.

use serde::{Deserialize, Serialize};

/// The measure of a published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Measure {
    /// The mean response time.
    MeanResponse,
    /// The mean response time of one class.
    ClassResponse {
        /// The name of the class.
        class: String,
    },
    /// The mean of weight × response time: the score of priority workloads.
    WeightedResponse,
    /// The time from the first due request to the last answer of a trial.
    TotalTime,
    /// Completed requests per second.
    Throughput,
    /// The mean share of the servers that is busy.
    Utilisation,
    /// The mean share of the servers that is idle.
    Idle,
}

const TIMES: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("min", 60.0)];
const RATES: &[(&str, f64)] = &[("/s", 1.0), ("/min", 1.0 / 60.0)];
const SHARES: &[(&str, f64)] = &[("%", 0.01), ("", 1.0)];

impl Measure {
    /// The names of all measures in experiment files. A class makes mean-response that of the class.
    pub const NAMES: [&str; 6] =
        ["mean-response", "weighted-response", "total-time", "throughput", "utilisation", "idle"];

    /// The measure of this name, for one class or for all requests. `None` if there is no such measure.
    pub fn named(name: &str, class: Option<String>) -> Option<Self> {
        Some(match (name, class) {
            ("mean-response", Some(class)) => Self::ClassResponse { class },
            ("mean-response", None) => Self::MeanResponse,
            ("weighted-response", None) => Self::WeightedResponse,
            ("total-time", None) => Self::TotalTime,
            ("throughput", None) => Self::Throughput,
            ("utilisation", None) => Self::Utilisation,
            ("idle", None) => Self::Idle,
            _ => return None,
        })
    }

    /// The measure's name in experiment files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MeanResponse | Self::ClassResponse { .. } => "mean-response",
            Self::WeightedResponse => "weighted-response",
            Self::TotalTime => "total-time",
            Self::Throughput => "throughput",
            Self::Utilisation => "utilisation",
            Self::Idle => "idle",
        }
    }

    /// The measure in words.
    pub fn words(&self) -> String {
        match self {
            Self::ClassResponse { class } => format!("mean response of {class}"),
            Self::Idle => "idle share".to_owned(),
            other => other.name().replace('-', " "),
        }
    }

    /// The units of its values, each in seconds, requests per second or as a share.
    pub fn units(&self) -> &'static [(&'static str, f64)] {
        match self {
            Self::MeanResponse | Self::ClassResponse { .. } | Self::WeightedResponse | Self::TotalTime => {
                TIMES
            }
            Self::Throughput => RATES,
            Self::Utilisation | Self::Idle => SHARES,
        }
    }
}
