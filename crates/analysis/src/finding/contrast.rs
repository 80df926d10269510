//! Two ways of doing the same, along a line of numbers: how much longer one takes than the other.

use std::fmt;

use kendall_experiment::Measure;
use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::ratio::{ALIKE, measured_ratio, ratio_cell};
use crate::report::Report;
use crate::report::factor::{Factor, FactorKind, words};
use crate::report::point::Point;

/// The number of levels compared with the first: those that differ most from it.
const MOST: usize = 2;

/// The ratio of mean response times at one level of a factor to those at its first level, with all other factors equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub struct Contrast {
    pub level: String,
    pub first: String,
    pub least: (String, Estimate),
    pub most: (String, Estimate),
    pub shorter: usize,
    pub longer: usize,
    /// The number of points at which the two levels differ by too little to matter.
    pub alike: usize,
    pub of: usize,
}

/// The levels of the first factor with categories, each compared with the first; none where the points have no line of
/// numbers to go along, or one factor only.
pub(super) fn contrasts(report: &Report) -> Vec<Contrast> {
    let others = report.factors.iter().skip(1);
    let Some(factor) = others.into_iter().find(|factor| factor.kind == FactorKind::Category) else {
        return Vec::new();
    };
    let Some((first, levels)) = factor.values.split_first().filter(|_| !report.is_categorical()) else {
        return Vec::new();
    };
    let mut found: Vec<Contrast> =
        levels.iter().filter_map(|level| contrast(report, factor, first, level)).collect();
    found.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
    found.truncate(MOST);
    found
}

fn contrast(report: &Report, factor: &Factor, first: &str, level: &str) -> Option<Contrast> {
    let others: Vec<Factor> =
        report.factors.iter().filter(|other| other.name != factor.name).cloned().collect();
    let place = |point: &Point| words(&others, &point.settings);
    let steady_at = |level| {
        report.points.iter().filter(move |point| point.is_steady() && point.setting(&factor.name) == level)
    };
    let ratio = |point| {
        let base = steady_at(first).find(|base| place(base) == place(point))?;
        Some((place(point), measured_ratio(report, &Measure::MeanResponse, point, base)?))
    };
    let mut ratios: Vec<(String, Estimate)> = steady_at(level).filter_map(ratio).collect();
    ratios.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let count = |holds: fn((f64, f64)) -> bool| {
        ratios.iter().filter(|(_, ratio)| ratio.interval.is_some_and(holds)).count()
    };
    Some(Contrast {
        level: format!("{} {level}", factor.name),
        first: first.to_owned(),
        least: ratios.first()?.clone(),
        most: ratios.last()?.clone(),
        shorter: count(|(_, high)| high < 1.0),
        longer: count(|(low, _)| low > 1.0),
        alike: count(|(low, high)| {
            (1.0 - 2.0 * ALIKE..=1.0).contains(&low) && (1.0..=1.0 + 2.0 * ALIKE).contains(&high)
        }),
        of: ratios.len(),
    })
}

impl Contrast {
    /// The largest distance of a ratio from 1, as a logarithm.
    fn distance(&self) -> f64 {
        self.least.1.value.ln().abs().max(self.most.1.value.ln().abs())
    }
}

impl fmt::Display for Contrast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, first, least, most, shorter, longer, alike, of } = self;
        let cell = |(_, ratio): &(String, Estimate)| ratio_cell(Some(*ratio));
        write!(
            f,
            "The mean response time with {level} is {} × that with {first} at {}",
            cell(least),
            least.0
        )?;
        if *of == 1 {
            return f.write_str(".");
        }
        let untold = of - shorter - longer - alike;
        write!(f, ", the smallest ratio of {of} points, and {} × at {}, the largest:", cell(most), most.0)?;
        let parts = [
            (shorter, "shorter"),
            (longer, "longer"),
            (alike, "alike"),
            (&untold, "too uncertain to decide"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| **count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{what} at {count}")).collect();
        write!(f, " {}.", parts.join(", "))
    }
}
