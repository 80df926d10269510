//! The effects of an experiment's factors on the response time, alone and two by two.

use crate::factorial::{Cell, effects};
use crate::ratio::ratio_cell;
use crate::report::Report;
use crate::report::effects::EffectsSeen;
use crate::report::factor::{Factor, with_unit};
use crate::report::point::Point;
use crate::report::trial::TrialLine;
use crate::table::Table;
use kendall_stats::number::{NONE, percent};

/// The name of a level: "rate 80/s".
pub fn level(report: &Report, factor: usize, level: usize) -> String {
    let Some(factor) = report.factors.get(factor) else { return String::new() };
    let value = factor.values.get(level).map_or("", String::as_str);
    format!("{} {}", factor.name, with_unit(value, &factor.unit))
}

/// Each effect as a row, and what share of the variation its factor explains.
pub fn table(report: &Report) -> Table {
    let Some(first) = report.effects.first() else { return Table::default() };
    let mut head = vec!["what".to_owned()];
    head.extend(report.effects.iter().map(|seen| format!("{}, ratio", seen.of)));
    head.push("explains".to_owned());
    let share = |factors: &[usize]| {
        let known = first.effects.explained.iter().find(|(of, _)| of == factors);
        known.map_or_else(|| NONE.to_owned(), |(_, share)| percent(*share))
    };
    let mut rows = Vec::new();
    let mut before = Vec::new();
    // The share that a factor explains is in the row of its first level.
    let mut row = |what: String, factors: Vec<usize>, cells: Vec<String>| {
        let explains = if before == factors { String::new() } else { share(&factors) };
        rows.push([vec![what], cells, vec![explains]].concat());
        before = factors;
    };
    for (place, main) in first.effects.main.iter().enumerate() {
        let cells =
            report.effects.iter().map(|seen| ratio_cell(Some(seen.effects.main[place].ratio))).collect();
        row(level(report, main.factor, main.level), vec![main.factor], cells);
    }
    for (place, pair) in first.effects.pairs.iter().enumerate() {
        let cells =
            report.effects.iter().map(|seen| ratio_cell(Some(seen.effects.pairs[place].ratio))).collect();
        let what = format!(
            "{} with {}",
            level(report, pair.factors.0, pair.levels.0),
            level(report, pair.factors.1, pair.levels.1)
        );
        row(what, vec![pair.factors.0, pair.factors.1], cells);
    }
    Table { head, rows }
}

/// The effects on the mean response and on that of 99 % of the requests, where several factors were varied and every
/// combination was measured.
pub fn of_report(report: &Report) -> Vec<EffectsSeen> {
    let mean = of(report, "mean response", |trial| trial.response_s);
    let p99 = of(report, "p99 response", |trial| trial.response_p99_s);
    mean.into_iter().chain(p99).collect()
}

fn of(report: &Report, name: &str, value: impl Fn(&TrialLine) -> Option<f64>) -> Option<EffectsSeen> {
    let levels: Vec<usize> = report.factors.iter().map(|factor| factor.values.len()).collect();
    let cell = |(place, point): (usize, &Point)| {
        let level =
            |factor: &Factor| factor.values.iter().position(|value| value == point.setting(&factor.name));
        let levels = report.factors.iter().map(level).collect::<Option<Vec<usize>>>()?;
        // A trial without the value must not count as one with it.
        let values = report.trials_of(place).map(&value).collect::<Option<Vec<f64>>>()?;
        Some(Cell { levels, values })
    };
    let cells = report.points.iter().enumerate().map(cell).collect::<Option<Vec<Cell>>>()?;
    let effects = effects(&levels, &cells).ok()?;
    Some(EffectsSeen { of: name.to_owned(), effects })
}
