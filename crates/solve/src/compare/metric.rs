//! What is measured of a run.

use serde::Serialize;

/// One number of each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// What it is called: "p99".
    pub name: String,
    /// The unit of its values: "s", "/s", or nothing.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// How its values are compared.
    pub scale: Scale,
}

/// Which way is better.
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
    /// By their ratio. Values must be above 0.
    Ratio,
    /// By their difference, because they may be 0.
    Difference,
}

impl Metric {
    /// The metrics that kendall measures of every run, in this order: mean, p50, p90, p99 and p99.9 of the response time in
    /// seconds, throughput per second, CPU seconds a request and the share of errors.
    pub fn all() -> Vec<Self> {
        let time = |name: &str| Self::new(name, "s", Better::Lower, Scale::Ratio);
        let mut all: Vec<Self> = ["mean", "p50", "p90", "p99", "p99.9"].map(time).into();
        all.push(Self::new("throughput", "/s", Better::Higher, Scale::Ratio));
        all.push(Self::new("CPU/request", "s", Better::Lower, Scale::Ratio));
        all.push(Self::new("errors", "", Better::Lower, Scale::Difference));
        all
    }

    /// A metric.
    pub fn new(name: &str, unit: &'static str, better: Better, scale: Scale) -> Self {
        Self { name: name.to_owned(), unit, better, scale }
    }

    /// Whether it is a time that a request takes.
    pub fn is_time(&self) -> bool {
        self.unit == "s" && self.better == Better::Lower && !self.name.starts_with("CPU")
    }

    /// Its scale for these values: what is not above 0 everywhere has no ratio.
    pub(super) fn scale_of(&self, a: &[f64], b: &[f64]) -> Scale {
        let positive = a.iter().chain(b).all(|&value| value > 0.0);
        if positive { self.scale } else { Scale::Difference }
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
