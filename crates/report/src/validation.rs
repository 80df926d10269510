//! A validation: its page, and the same numbers on the terminal. Predicted bands with measured points on top, the table of both with
//! the errors, and simple predictions from the same data beside them.

#[cfg(test)]
mod tests;

use askama::Template;
use kendall_analysis::{Compared, Table, Validated, ValidationReport};
use kendall_stats::number::{NONE, difference, percent, significant, time, time_with_interval};

use crate::figure::validation::{distribution, response};
use crate::figure::{Figure, Named};

/// The page of a validation, as HTML: self-contained, and it reads without script.
pub fn validation_page(found: &ValidationReport) -> String {
    let view = ValidationView {
        found,
        style: crate::style::STYLE,
        answer: found.answer(),
        doubts: found.all_doubts(),
        machine: found.machine_words(),
        response: response(found),
        distribution: distribution(found),
        compared: compared(found),
        methods: methods(found),
        written: written(found),
    };
    view.render().expect("rendering to a string fails only where a value's Display does")
}

/// The figures of that page.
pub fn validation_figures(found: &ValidationReport) -> Vec<Named> {
    let figures = [("response", response(found)), ("distribution", distribution(found))];
    figures.into_iter().filter_map(|(name, figure)| Some(Named { name, figure: figure?, left: 2 })).collect()
}

/// The validation as text, for a terminal.
pub fn validation_text(found: &ValidationReport) -> String {
    let mut lines = vec![row(&["load", "", "predicted", "measured", "error", "beyond noise"], "")];
    for load in &found.loads {
        lines.extend(load_lines(load));
    }
    lines.push(found.answer());
    lines.extend(found.all_doubts().into_iter().map(|doubt| format!("Doubt: {doubt}")));
    lines.extend(found.machine_words());
    lines.join("\n") + "\n"
}

fn row(cells: &[&str; 6], note: &str) -> String {
    let [load, quantity, predicted, measured, error, beyond] = cells;
    let row =
        format!("{load:<14} {quantity:<6} {predicted:>30} {measured:>30} {error:>8} {beyond:>13}{note}");
    row.trim_end().to_owned()
}

fn load_lines(load: &Validated) -> Vec<String> {
    let mut lines = Vec::new();
    let mut place = place(load);
    for compared in &load.compared {
        let [quantity, predicted, measured, error, beyond] = cells(compared);
        let note = if compared.inside { "" } else { "  outside" };
        lines.push(row(&[&place, &quantity, &predicted, &measured, &error, &beyond], note));
        place.clear();
    }
    let simple = load.baselines.iter().filter_map(|simple| {
        let p99_s = simple.p99_s?;
        Some(format!("{} {}", simple.baseline.name(), time(p99_s)))
    });
    lines.push(format!("{:<14} simple predictions of p99: {}", "", simple.collect::<Vec<_>>().join(", ")));
    lines
}

/// The load: "85 % 381/s".
fn place(load: &Validated) -> String {
    let rate_per_s = load.predicted.prediction.rate_per_s;
    format!("{} {}/s", percent(load.predicted.share), significant(rate_per_s, 3))
}

/// Quantity, prediction, measurement, error, and error beyond the noise of the measurement.
fn cells(compared: &Compared) -> [String; 5] {
    let Compared { quantity, predicted_s, measured_s, error, error_beyond_noise, .. } = compared;
    [
        quantity.clone(),
        time_with_interval(predicted_s.value, predicted_s.interval),
        time_with_interval(measured_s.value, measured_s.interval),
        signed(*error),
        signed(*error_beyond_noise),
    ]
}

/// A relative error with its sign.
fn signed(error: f64) -> String {
    difference(1.0 + error, 1.0).unwrap_or_else(|| NONE.to_owned())
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Every value that was predicted and measured.
fn compared(found: &ValidationReport) -> Table {
    let rows = found.loads.iter().flat_map(|load| {
        load.compared.iter().map(|compared| {
            let inside = if compared.inside { "inside" } else { "outside" };
            [place(load)].into_iter().chain(cells(compared)).chain([inside.to_owned()]).collect()
        })
    });
    let names =
        ["load", "quantity", "predicted", "measured", "error", "error beyond noise", "measured value"];
    Table { head: head(&names), rows: rows.collect() }
}

/// The predictions of each method beside each other: those of kendall first.
fn methods(found: &ValidationReport) -> Table {
    let mut rows = Vec::new();
    for load in &found.loads {
        let measured_s = |name: &str| load.quantity(name).map(|compared| compared.measured_s.value);
        let cells = |name: &str, value_s: Option<f64>| {
            let shown = value_s.map_or_else(|| NONE.to_owned(), time);
            let error = value_s.zip(measured_s(name)).and_then(|(value_s, of_s)| difference(value_s, of_s));
            [shown, error.unwrap_or_else(|| NONE.to_owned())]
        };
        let predicted_s = |name: &str| load.quantity(name).map(|compared| compared.predicted_s.value);
        let kendall = ("kendall", predicted_s("mean"), predicted_s("p99"));
        let simple =
            load.baselines.iter().map(|simple| (simple.baseline.name(), simple.mean_s, simple.p99_s));
        for (name, mean_s, p99_s) in [kendall].into_iter().chain(simple) {
            let values = cells("mean", mean_s).into_iter().chain(cells("p99", p99_s));
            rows.push([place(load), name.to_owned()].into_iter().chain(values).collect());
        }
    }
    Table { head: head(&["load", "method", "mean", "error", "p99", "error"]), rows }
}

/// When each prediction was written, and from which station.
fn written(found: &ValidationReport) -> Table {
    let rows = found.loads.iter().map(|load| {
        let predicted = &load.predicted;
        let capacity = predicted.prediction.capacity_per_s;
        let interval = capacity.interval.map_or_else(String::new, |(low, high)| {
            format!(" [{}, {}]", significant(low, 4), significant(high, 4))
        });
        vec![
            place(load),
            load.station(),
            format!("{}{interval}", significant(capacity.value, 4)),
            predicted.written_utc.clone(),
            predicted.blake3.clone(),
        ]
    });
    let names = ["load", "likeliest station", "capacity [1/s]", "written (UTC)", "BLAKE3"];
    Table { head: head(&names), rows: rows.collect() }
}

#[derive(Template)]
#[template(path = "validation.html")]
struct ValidationView<'a> {
    found: &'a ValidationReport,
    style: &'static str,
    answer: String,
    doubts: Vec<String>,
    machine: Vec<String>,
    response: Option<Figure>,
    distribution: Option<Figure>,
    compared: Table,
    methods: Table,
    written: Table,
}
