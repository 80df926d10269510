//! What the factors of an experiment do to the response time, alone and two by two.

use kendall_evidence::effects::Effects;
use serde::{Deserialize, Serialize};

use crate::figure::Table;
use crate::model::{Report, with_unit};
use crate::number::{NONE, percent};
use crate::ratio::ratio_cell;

/// The effects on one measure. Factors are counted as in [`Report::factors`], levels as in [`crate::Factor::values`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectsSeen {
    /// On what: "mean response".
    pub of: String,
    /// What they are.
    pub effects: Effects,
}

/// The name of a level: "rate 80/s".
pub(crate) fn level(report: &Report, factor: usize, level: usize) -> String {
    let Some(factor) = report.factors.get(factor) else { return String::new() };
    let value = factor.values.get(level).map_or("", String::as_str);
    format!("{} {}", factor.name, with_unit(value, &factor.unit))
}

/// Each effect as a row, and what share of the variation its factor explains.
pub(crate) fn table(report: &Report) -> Table {
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
    // What a factor explains stands beside its first level.
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
