//! Figures that others published, as the laboratory hands them in, and what they measure.

use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::report::point::Point;
use crate::report::trial::TrialLine;

/// A table of figures that others published of the same experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where they stand in print.
    pub source: String,
    /// What they measure.
    pub measure: Measure,
    /// The unit of the values: one of [`Measure::units`].
    pub unit: String,
    /// The levels of those rows to which the others are put in relation; empty for none.
    pub baseline: Vec<(String, String)>,
    /// The figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Factor and value, as in [`Point::settings`].
    pub settings: Vec<(String, String)>,
    /// The figure, in the unit of its table.
    pub value: f64,
}

/// What a published figure measures.
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
    /// From the first request due to the last answer of a trial.
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

    /// The measure of this name, of one class or of all. `None` where there is none.
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

    /// Its name in experiment files.
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

    /// What it is in words.
    pub fn words(&self) -> String {
        match self {
            Self::ClassResponse { class } => format!("mean response of {class}"),
            Self::Idle => "idle share".to_owned(),
            other => other.name().replace('-', " "),
        }
    }

    /// The units in which it can be given, and how many seconds, requests per second or wholes each is.
    pub fn units(&self) -> &'static [(&'static str, f64)] {
        match self {
            Self::MeanResponse | Self::ClassResponse { .. } | Self::WeightedResponse | Self::TotalTime => {
                TIMES
            }
            Self::Throughput => RATES,
            Self::Utilisation | Self::Idle => SHARES,
        }
    }

    /// What was measured of it at a point, if it was.
    pub fn of(&self, point: &Point) -> Option<Estimate> {
        let answer = &point.measured;
        match self {
            Self::MeanResponse => Some(answer.response.mean_s),
            Self::ClassResponse { class } => {
                let found = answer.classes.iter().find(|known| known.name == *class);
                found.map(|found| found.response.mean_s)
            }
            Self::WeightedResponse => answer.weighted_response_s,
            Self::TotalTime => point.total_time_s,
            Self::Throughput => Some(answer.throughput_per_s),
            Self::Utilisation => Some(answer.utilisation),
            Self::Idle => {
                let Estimate { value, interval } = answer.utilisation;
                let interval = interval.map(|(low, high)| (1.0 - high, 1.0 - low));
                Some(Estimate { value: 1.0 - value, interval })
            }
        }
    }

    /// What was measured of it in one trial, if that is kept.
    pub fn of_trial(&self, trial: &TrialLine) -> Option<f64> {
        match self {
            Self::MeanResponse => trial.response_s,
            Self::WeightedResponse => trial.weighted_response_s,
            _ => None,
        }
    }
}

impl Published {
    /// What was measured at the point of a row, in the unit of the table, if it was.
    pub fn measured(&self, point: &Point) -> Option<Estimate> {
        let (_, per_unit) = self.measure.units().iter().find(|(unit, _)| *unit == self.unit)?;
        let Estimate { value, interval } = self.measure.of(point)?;
        let interval = interval.map(|(low, high)| (low / per_unit, high / per_unit));
        Some(Estimate { value: value / per_unit, interval })
    }
}
