//! Text with stations next to each other.

use kendall_report::terminal::percent;
use kendall_station::{Answer, By, Estimate, Station};
use kendall_stats::number::{significant, time};

use crate::column::{Column, StationAnswer};
use crate::shown::by;
use crate::table::aligned;
use crate::values::{Quantity, Sweep};

/// What is not known.
const NONE: &str = "–";

/// Stands where the queue would grow without bound.
const UNSTABLE: &str = "unstable";

/// How a quantity of an answer reads.
type Cell = fn(&Station, &Answer) -> Option<String>;
/// A quantity that answers have.
type Row = (&'static str, Cell);

/// The quantities of each station without a range. Where stations share their servers, nothing waits.
const ROWS: [Row; 11] = [
    ("utilisation", |_, answer| Some(percent(answer.utilisation.value))),
    ("response time, mean", |_, answer| Some(time(answer.response.mean_s.value))),
    ("response time, p50", |_, answer| quantile(answer, 0.5)),
    ("response time, p90", |_, answer| quantile(answer, 0.9)),
    ("response time, p99", |_, answer| quantile(answer, 0.99)),
    ("waiting time, mean", |station, answer| unless(shares(station), time(answer.waiting.mean_s.value))),
    ("delay by sharing, mean", |station, answer| unless(!shares(station), time(answer.waiting.mean_s.value))),
    ("P(wait)", |station, answer| unless(shares(station), percent(answer.p_wait.value))),
    ("in the station, mean", |_, answer| Some(number(answer.in_system))),
    ("throughput, 1/s", |_, answer| Some(number(answer.throughput_per_s))),
    ("lost", |_, answer| Some(percent(answer.lost.value))),
];
/// The places of the mean and of a high quantile there.
const MEAN: usize = 1;
const P99: usize = 4;
/// The quantities of one station along a range.
const COLUMNS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];

fn shares(station: &Station) -> bool {
    station.discipline.shares()
}

fn unless(is_out: bool, cell: String) -> Option<String> {
    (!is_out).then_some(cell)
}

fn number(estimate: Estimate) -> String {
    significant(estimate.value, 4)
}

fn quantile(answer: &Answer, p: f64) -> Option<String> {
    answer.response.quantile(p).map(|estimate| time(estimate.value))
}

/// The table, what its marks mean, and who answered.
pub(crate) fn text(columns: &[Column], sweep: Option<&Sweep>) -> Vec<String> {
    let mut lines = match (sweep, columns) {
        (None, _) => aligned(&stations(columns)),
        (Some(sweep), [one]) => {
            let mut lines = vec![one.name.clone(), String::new()];
            lines.extend(aligned(&along(one, sweep)));
            lines
        }
        (Some(sweep), _) => {
            let tables = [MEAN, P99].map(|row| compared(columns, sweep, row));
            tables.into_iter().flatten().collect::<Vec<_>>().join(&[String::new()][..])
        }
    };
    lines.push(String::new());
    lines.extend(marks(columns));
    lines.extend(columns.iter().map(source));
    lines
}

/// A row of cells behind its name.
fn row(name: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// A column for each station.
fn stations(columns: &[Column]) -> Vec<Vec<String>> {
    let mut rows = vec![row("", columns.iter().map(|column| column.name.clone()))];
    let known = ROWS.map(|(name, of)| row(name, columns.iter().map(|column| cell(column, 0, of))));
    // What is known of none need not be said.
    rows.extend(known.into_iter().filter(|row| row[1..].iter().any(|cell| cell != NONE)));
    rows
}

/// A row for each value of the range, with a column for each quantity that is known.
fn along(column: &Column, sweep: &Sweep) -> Vec<Vec<String>> {
    let known = |(_, of): &Row| {
        column
            .stations
            .iter()
            .zip(&column.found)
            .any(|(station, found)| found.answer().is_some_and(|answer| of(station, answer).is_some()))
    };
    let rows: Vec<Row> = COLUMNS.iter().map(|&place| ROWS[place]).filter(known).collect();
    let short = |name: &str| name.replace(" time", "").replace("in the station", "inside");
    let mut table = vec![row(sweep.quantity.title(), rows.iter().map(|(name, _)| short(name)))];
    table.extend(sweep.values.iter().enumerate().map(|(place, &value)| {
        row(&shown(sweep.quantity, value), rows.iter().map(|(_, of)| cell(column, place, *of)))
    }));
    table
}

/// A row for each value of the range, with a column for each station; nothing where no station has the quantity.
fn compared(columns: &[Column], sweep: &Sweep, quantity: usize) -> Option<Vec<String>> {
    let (name, of) = ROWS[quantity];
    let mut table = vec![row(sweep.quantity.title(), columns.iter().map(|column| column.name.clone()))];
    table.extend(sweep.values.iter().enumerate().map(|(place, &value)| {
        row(&shown(sweep.quantity, value), columns.iter().map(|column| cell(column, place, of)))
    }));
    let is_known = |cell: &String| cell != NONE && cell != UNSTABLE;
    let known = table[1..].iter().flat_map(|row| &row[1..]).any(is_known);
    let mut lines = vec![name.to_owned(), String::new()];
    lines.extend(aligned(&table));
    known.then_some(lines)
}

fn shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Utilisation => percent(value),
        _ => value.to_string(),
    }
}

/// A cell, with the mark of who answered.
fn cell(column: &Column, place: usize, of: Cell) -> String {
    match &column.found[place] {
        StationAnswer::Answer(answer) => match of(&column.stations[place], answer) {
            Some(cell) => format!("{}{cell}", mark(answer)),
            None => NONE.to_owned(),
        },
        StationAnswer::Unstable(_) => UNSTABLE.to_owned(),
        StationAnswer::NoAnswer(_) => NONE.to_owned(),
    }
}

fn mark(answer: &Answer) -> &'static str {
    match answer.by {
        By::Formula { approximate: None, .. } | By::Measurement { .. } => "",
        By::Formula { approximate: Some(_), .. } => "≈",
        By::Simulation { .. } => "~",
    }
}

fn marks(columns: &[Column]) -> Vec<String> {
    let is_used = |wanted: &str| {
        let answers = columns.iter().flat_map(|column| &column.found).filter_map(StationAnswer::answer);
        answers.map(mark).any(|mark| mark == wanted)
    };
    let known = [("~", "by simulation"), ("≈", "by an approximation")];
    let used: Vec<String> = known
        .into_iter()
        .filter(|(mark, _)| is_used(mark))
        .map(|(mark, meaning)| format!("{mark} {meaning}"))
        .collect();
    if used.is_empty() { Vec::new() } else { vec![used.join(";  ")] }
}

/// The source of a station's answer, or why there is no answer.
fn source(column: &Column) -> String {
    let said = match column.found.iter().find_map(StationAnswer::answer) {
        Some(answer) => by(&answer.by),
        None => match &column.found[0] {
            StationAnswer::Unstable(why) | StationAnswer::NoAnswer(why) => format!("no answer. {why}"),
            StationAnswer::Answer(answer) => by(&answer.by),
        },
    };
    format!("{}: {said}", column.name)
}
