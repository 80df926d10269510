//! The metrics of a run.

use serde::Serialize;

/// A metric: one number of each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The metric's name: "p99".
    pub name: String,
    /// The unit of the metric's values.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
}

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Times of requests, in seconds.
    Seconds,
    /// Time of processors, in seconds.
    CpuSeconds,
    /// Rates per second.
    PerSecond,
    /// Shares of all requests.
    Share,
    /// Whatever it is.
    Plain,
}

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less of it: times, costs, errors.
    Lower,
    /// More of it: throughput.
    Higher,
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The ratio of the values, which are all above 0.
    Ratio,
    /// The difference of the values.
    Difference,
}

impl Metric {
    /// The metrics that kendall measures of every run, in this order: mean, p50, p90, p99 and p99.9 of the response time,
    /// throughput, CPU time a request and the share of errors.
    pub fn all() -> Vec<Self> {
        let times = ["mean", "p50", "p90", "p99", "p99.9"].map(|name| Self::new(name, Unit::Seconds));
        let others = [
            Self::new("throughput", Unit::PerSecond),
            Self::new("CPU/request", Unit::CpuSeconds),
            Self::new("errors", Unit::Share),
        ];
        times.into_iter().chain(others).collect()
    }

    /// Makes a metric. A rate is better if it is higher, any other metric if it is lower.
    pub fn new(name: &str, unit: Unit) -> Self {
        let better = if unit == Unit::PerSecond { Better::Higher } else { Better::Lower };
        Self { name: name.to_owned(), unit, better }
    }

    /// The scale on which such values are compared: the difference for shares and for values that are not above 0
    /// everywhere.
    pub(super) fn scale(&self, a: &[f64], b: &[f64]) -> Scale {
        let positive = a.iter().chain(b).all(|&value| value > 0.0);
        if positive && self.unit != Unit::Share { Scale::Ratio } else { Scale::Difference }
    }
}

impl Scale {
    /// The values on the scale on which differences add up.
    pub(super) fn added(self, values: &[f64]) -> Vec<f64> {
        match self {
            Self::Ratio => values.iter().map(|&value| libm::log(value)).collect(),
            Self::Difference => values.to_vec(),
        }
    }

    /// A difference on that scale as it is shown.
    pub(super) fn shown(self, difference: f64) -> f64 {
        match self {
            Self::Ratio => libm::exp(difference),
            Self::Difference => difference,
        }
    }
}
