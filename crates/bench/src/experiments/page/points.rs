//! The points of an experiment as a table: a row for each, or one measure as a matrix where there are many.

use kendall_analysis::table::time_cell;
use kendall_analysis::{Modelled, Point, Report, Table};
use kendall_stats::number::{NONE, percent, significant, time};

use super::markdown::write_table;

/// More points than this, in several groups, are a matrix.
const MOST_ROWS: usize = 20;

/// A column of the table.
struct Column {
    head: String,
    cell: Box<dyn Fn(&Point) -> String>,
}

impl Column {
    fn new(head: &str, cell: impl Fn(&Point) -> String + 'static) -> Self {
        Self { head: head.to_owned(), cell: Box::new(cell) }
    }
}

pub(super) fn write(page: &mut String, report: &Report) {
    let groups = report.groups();
    if report.points.len() <= MOST_ROWS || groups.len() == 1 {
        return write_table(page, &rows(report), report.factors.len());
    }
    for (at, column) in measures(report).iter().enumerate() {
        let above = if at > 0 { "\n" } else { "" };
        page.push_str(&format!("{above}{}:\n\n", capitalised(&column.head)));
        write_table(page, &matrix(report, &groups, column), 1);
    }
}

/// The measures of a matrix: throughput, if it is a result of the load, the weighted response time and the mean.
fn measures(report: &Report) -> Vec<Column> {
    let mut columns = measured(report);
    columns.truncate(columns.iter().position(|column| column.head == MEAN).map_or(1, |at| at + 1));
    columns
}

const MEAN: &str = "mean response time";

/// The columns of measurements.
fn measured(report: &Report) -> Vec<Column> {
    let mut columns = Vec::new();
    if report.points.iter().all(|point| point.offered_per_s.is_none()) {
        columns.push(Column::new("throughput [1/s]", |point| {
            significant(point.measured.throughput_per_s.value, 3)
        }));
    }
    if report.is_weighted() {
        columns.push(Column::new("weighted response time", |point| {
            time_cell(point.measured.weighted_response_s)
        }));
    }
    columns.push(Column::new(MEAN, |point| time_cell(Some(point.measured.response.mean_s))));
    columns.push(Column::new("99 %", |point| {
        point.measured.response.quantile(0.99).map_or_else(|| NONE.to_owned(), |p99_s| time(p99_s.value))
    }));
    if report.is_limited() {
        columns.push(Column::new("lost", |point| percent(point.measured.lost.value)));
    }
    columns
}

/// A row for each point: the measurements, and the mean that each model predicts, by formula if it has one.
fn rows(report: &Report) -> Table {
    let mut columns = measured(report);
    for notation in report.notations().into_iter().map(str::to_owned) {
        let head = format!("mean by {notation}");
        columns.push(Column::new(&head, move |point| {
            let mean_s = point.model(&notation).and_then(predicted_s);
            mean_s.map_or_else(|| NONE.to_owned(), time)
        }));
    }
    let mut head = report.place_head();
    head.extend(columns.iter().map(|column| column.head.clone()));
    let row = |point: &Point| {
        let mut row = report.place_cells(point);
        row.extend(columns.iter().map(|column| (column.cell)(point)));
        row
    };
    Table { head, rows: report.points.iter().map(row).collect() }
}

fn predicted_s(model: &Modelled) -> Option<f64> {
    let answer = model.formula.answer().or_else(|| model.simulation.answer())?;
    Some(answer.response.mean_s.value)
}

/// One measure: a row for each value of the first factor, a column for each group.
fn matrix(report: &Report, groups: &[(String, Vec<&Point>)], measure: &Column) -> Table {
    let first = &report.factors[0];
    let mut head = vec![first.title()];
    head.extend(groups.iter().map(|(group, _)| group.clone()));
    let row = |value: &String| {
        let cell = |(_, points): &(String, Vec<&Point>)| {
            let point = points.iter().find(|point| point.setting(&first.name) == value);
            point.map_or_else(|| NONE.to_owned(), |point| (measure.cell)(point))
        };
        [value.clone()].into_iter().chain(groups.iter().map(cell)).collect()
    };
    Table { head, rows: first.values.iter().map(row).collect() }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
