//! Published figures and ours: the table, and in words where the order of things is the same.
//!
//! Machines differ, so the numbers themselves need not agree. What is compared is the shape: each number relative to
//! that of a baseline, and what is larger than what.

use kendall_station::Estimate;

use crate::ratio::{Order, measured_ratio, order, ratio_cell};
use crate::report::Report;
use crate::report::factor::{Factor, with_unit};
use crate::report::point::Point;
use crate::report::published::{Published, PublishedRow};
use crate::table::Table;
use kendall_stats::number::{NONE, list, significant};

/// Pairs that are listed; more are only counted.
const MOST_PAIRS: usize = 6;

/// A comparison of two tables, with its result in words.
pub struct Comparison {
    /// The title of the comparison.
    pub title: String,
    /// The table.
    pub table: Table,
    /// The points of agreement and of difference.
    pub sentences: Vec<String>,
}

/// Every published table of a report with our measurements.
pub fn comparisons(report: &Report) -> Vec<Comparison> {
    let comparison = |published: &Published| {
        let rows = rows(report, published);
        Comparison {
            title: format!("{}: {}", published.source, published.measure.words()),
            table: table(report, published, &rows),
            sentences: sentences(report, published, &rows),
        }
    };
    report.published.iter().map(comparison).collect()
}

/// The pairs of published figures that differ only in the factors of a baseline: how many have the published order here, and how many
/// there are.
pub fn orders(report: &Report) -> (usize, usize) {
    let pairs = |published: &Published| pairs(report, published, &rows(report, published));
    let of_baselines = report.published.iter().filter(|published| !published.baseline.is_empty());
    let pairs: Vec<Pair> = of_baselines.flat_map(pairs).collect();
    (pairs.iter().filter(|pair| pair.order == Order::Same).count(), pairs.len())
}

/// A published row, what was measured of it, and the place of the row that it is put in relation to.
struct Row<'a> {
    published: &'a PublishedRow,
    point: Option<&'a Point>,
    ours: Option<Estimate>,
    baseline: Option<usize>,
}

fn rows<'a>(report: &'a Report, published: &'a Published) -> Vec<Row<'a>> {
    let baseline = |row: &PublishedRow| {
        let level = |(name, value): &(String, String)| {
            let given = published.baseline.iter().find(|(factor, _)| factor == name);
            (name.clone(), given.map_or(value, |(_, level)| level).clone())
        };
        let wanted: Vec<_> = row.settings.iter().map(level).collect();
        published.rows.iter().position(|other| other.settings == wanted)
    };
    let point = |row: &PublishedRow| report.points.iter().find(|point| point.settings == row.settings);
    let row = |row: &'a PublishedRow| Row {
        published: row,
        point: point(row),
        ours: point(row).and_then(|point| published.measured(point)),
        baseline: if published.baseline.is_empty() { None } else { baseline(row) },
    };
    published.rows.iter().map(row).collect()
}

fn table(report: &Report, published: &Published, rows: &[Row<'_>]) -> Table {
    let unit = if published.unit.is_empty() { String::new() } else { format!(" [{}]", published.unit) };
    let mut head: Vec<String> = report.factors.iter().map(|factor| factor.name.clone()).collect();
    head.extend([format!("published{unit}"), format!("here{unit}"), "here ÷ published".to_owned()]);
    if !published.baseline.is_empty() {
        let baseline = levels(&published.baseline);
        head.extend([format!("published ÷ {baseline}"), format!("here ÷ {baseline}")]);
    }
    let cells = |row: &Row<'_>| {
        let value = |factor: &Factor| {
            let (_, value) = row.published.settings.iter().find(|(name, _)| *name == factor.name)?;
            Some(with_unit(value, &factor.unit))
        };
        let value = |factor| value(factor).unwrap_or_default();
        let mut cells: Vec<String> = report.factors.iter().map(value).collect();
        let own = row.published.value;
        cells.extend([own.to_string(), plain(row.ours)]);
        cells.push(row.ours.map_or_else(|| NONE.to_owned(), |ours| significant(ours.value / own, 2)));
        if !published.baseline.is_empty() {
            let base = row.baseline.map(|at| &rows[at]);
            let claimed = base.map(|base| Estimate::exact(own / base.published.value));
            let found =
                base.and_then(|base| measured_ratio(report, &published.measure, row.point?, base.point?));
            // A number relative to itself is not a finding.
            let itself = base.is_some_and(|base| std::ptr::eq(base.published, row.published));
            cells.extend(if itself {
                ["1".to_owned(), "1".to_owned()]
            } else {
                [ratio_cell(claimed), ratio_cell(found)]
            });
        }
        cells
    };
    Table { head, rows: rows.iter().map(cells).collect() }
}

/// A number and its half-width.
fn plain(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return NONE.to_owned() };
    let value = significant(estimate.value, 3);
    match estimate.interval {
        Some(_) => format!("{value} ± {}", significant(estimate.half_width(), 2)),
        None => value,
    }
}

/// The values of some settings: "thread-pool" or "one big, thread-pool".
fn levels(settings: &[(String, String)]) -> String {
    settings.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
}

/// Two rows that differ in the factors of the baseline only, and whether their order is the published one.
struct Pair {
    /// "At repeat-percent 20", empty where the rows have no other factors.
    place: String,
    first: String,
    second: String,
    claimed: f64,
    found: Estimate,
    order: Order,
}

fn pairs(report: &Report, published: &Published, rows: &[Row<'_>]) -> Vec<Pair> {
    let varies = |name: &String| published.baseline.iter().any(|(factor, _)| factor == name);
    let part = |row: &Row<'_>, varying: bool| {
        let settings = row.published.settings.iter().filter(|(name, _)| varies(name) == varying);
        settings.cloned().collect::<Vec<_>>()
    };
    let mut pairs = Vec::new();
    for (at, second) in rows.iter().enumerate() {
        for first in rows[..at].iter().filter(|first| part(first, false) == part(second, false)) {
            let points = second.point.zip(first.point);
            let found = points.and_then(|(of, to)| measured_ratio(report, &published.measure, of, to));
            let Some(found) = found else { continue };
            let claimed = second.published.value / first.published.value;
            let place = part(second, false);
            pairs.push(Pair {
                place: place
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect::<Vec<_>>()
                    .join(", "),
                first: levels(&part(first, true)),
                second: levels(&part(second, true)),
                claimed,
                found,
                order: order(claimed, found),
            });
        }
    }
    pairs
}

fn sentences(report: &Report, published: &Published, rows: &[Row<'_>]) -> Vec<String> {
    let mut sentences = Vec::new();
    let missing = rows.iter().filter(|row| row.ours.is_none()).count();
    if missing > 0 && !report.points.is_empty() {
        sentences.push(format!("{missing} of {} published figures were not measured here.", rows.len()));
    }
    if published.baseline.is_empty() {
        return sentences;
    }
    let pairs = pairs(report, published, rows);
    let of = |order| pairs.iter().filter(move |pair: &&Pair| pair.order == order);
    let count = |order| of(order).count();
    let names: Vec<String> = published.baseline.iter().map(|(name, _)| name.clone()).collect();
    if !pairs.is_empty() {
        sentences.push(format!(
            "Of {} that differ only in {}, {} have the published order here, {} have another order, and in {} the intervals are too \
             wide to decide.",
            if pairs.len() == 1 { "1 pair".to_owned() } else { format!("{} pairs", pairs.len()) },
            list(&names),
            count(Order::Same),
            count(Order::Other),
            count(Order::CannotTell),
        ));
    }
    let sentence = |pair: &Pair| {
        let at = if pair.place.is_empty() { String::new() } else { format!(" at {}", pair.place) };
        let (claimed, found) = (significant(pair.claimed, 3), ratio_cell(Some(pair.found)));
        format!(
            "A different order{at}: published, {} is {claimed} × {}; here {found} ×.",
            pair.second, pair.first
        )
    };
    sentences.extend(of(Order::Other).take(MOST_PAIRS).map(sentence));
    sentences
}
