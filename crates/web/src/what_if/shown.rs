//! What a what-if view shows: plain data, which the page's script draws.

use kendall_analysis::MeasuredLoad;
use kendall_report::terminal::{percent, with_interval};
use kendall_station::{Estimate, Quantile, Summary};
use kendall_stats::number::{NONE, significant, time_with_interval};
use serde::Serialize;

use super::question::AnsweredValues;

/// The shares of a distribution that is drawn, ascending. Those of a prediction and of an answer are among them.
pub(super) const SHARES: [f64; 19] = [
    0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999,
];
/// The quantiles that the table has.
pub(super) const TABLED: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// The load along which response times are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Axis {
    /// "rate" or "users".
    pub(crate) along: &'static str,
    /// The load of the answer.
    pub(crate) here: f64,
    /// The highest load that the control offers.
    pub(crate) most: f64,
    /// The rate at which utilisation reaches 100 %.
    pub(crate) capacity: Option<f64>,
}

impl Axis {
    /// The axis of rates, up to a little more than the capacity, so that the view shows what happens there.
    pub(super) fn of_rates(here: f64, capacity_per_s: f64) -> Self {
        let most = (1.1 * capacity_per_s).max(here);
        Self { along: "rate", here, most, capacity: Some(capacity_per_s) }
    }

    pub(super) fn of_users(here: u32) -> Self {
        let here = f64::from(here);
        Self { along: "users", here, most: (2.0 * here).max(10.0), capacity: None }
    }
}

/// Response times at one load, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CurvePoint {
    /// The load.
    pub(crate) at: f64,
    pub(crate) mean: Estimate,
    pub(crate) p50: Option<Estimate>,
    pub(crate) p99: Option<Estimate>,
}

impl CurvePoint {
    pub(super) fn of(at: f64, response: &Summary) -> Self {
        let quantile = |p| response.quantile(p);
        Self { at, mean: response.mean_s, p50: quantile(0.5), p99: quantile(0.99) }
    }
}

/// A row of the table: its name, and a cell for each column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

impl TableRow {
    pub(super) fn new(name: impl Into<String>, cells: Vec<String>) -> Self {
        Self { name: name.into(), cells }
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct WhatIf {
    /// The values that the answer is for.
    pub(crate) answered: AnsweredValues,
    /// The address of the view with these values.
    pub(crate) address: String,
    /// The command that prints the same numbers.
    pub(crate) command: String,
    /// The groups of the run's trials, where there are several.
    pub(crate) groups: Vec<String>,
    pub(crate) axis: Option<Axis>,
    /// Response times along the load; absent if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) curve: Option<Vec<CurvePoint>>,
    /// The mean response time, in seconds.
    pub(crate) mean: Option<Estimate>,
    /// Shares of the requests and the response times that they do not exceed, in seconds.
    pub(crate) distribution: Vec<(f64, Estimate)>,
    /// The same by simulation, with intervals, where the distribution has none.
    pub(crate) simulated: Vec<(f64, Estimate)>,
    /// The measured loads of the run.
    pub(crate) measured: Vec<MeasuredLoad>,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<TableRow>,
    /// The reason why there is no steady state.
    pub(crate) unstable: Option<String>,
    /// The reasons why something is missing.
    pub(crate) no_answer: Vec<String>,
    /// Sources, doubts and advice, as sentences.
    pub(crate) notes: Vec<String>,
    /// How much was computed, as sentences.
    pub(crate) effort: Vec<String>,
}

/// Shares and times, the known ones.
pub(super) fn pairs(quantiles: &[Quantile], delay_s: f64) -> Vec<(f64, Estimate)> {
    quantiles.iter().map(|quantile| (quantile.p, quantile.value_s.shifted(delay_s))).collect()
}

/// A time with its interval.
pub(super) fn time_cell(time_s: Option<Estimate>) -> String {
    let shown = |time_s: Estimate| match time_s.interval {
        Some((_, high)) if high.is_infinite() => {
            format!("{}, no upper end", time_with_interval(time_s.value, None))
        }
        interval => time_with_interval(time_s.value, interval),
    };
    time_s.map_or_else(|| NONE.to_owned(), shown)
}

/// A share with its interval.
pub(super) fn share_cell(share: Option<Estimate>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| with_interval(share, percent))
}

/// A number with its interval.
pub(super) fn number_cell(number: Option<Estimate>) -> String {
    number.map_or_else(|| NONE.to_owned(), |number| with_interval(number, |value| significant(value, 4)))
}
