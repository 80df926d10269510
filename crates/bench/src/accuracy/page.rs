//! `docs/accuracy.md`: the summary over all servers, simple methods on the same data, one row for each load, and each server's doubts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kendall_analysis::validation::accuracy::{Accuracy, BaselineErrors, QUANTITIES, StationKind};
use kendall_analysis::{Compared, Validated, ValidationReport};
use kendall_prediction::Baseline;
use kendall_stats::median;
use kendall_stats::number::{NONE, count, counted, difference, percent, time, time_with_interval};

use crate::common::ratio;

/// The validation of one server.
pub(super) struct Validation {
    pub(super) name: String,
    /// The question of its experiment file.
    pub(super) question: String,
    /// The versions of its programs.
    pub(super) versions: Vec<String>,
    /// A paragraph about it, in Markdown.
    pub(super) note: Option<String>,
    pub(super) report: ValidationReport,
}

/// The page. There is at least one validation.
pub(super) fn page(validations: &[Validation]) -> String {
    let accuracy = Accuracy::of(validations.iter().map(|one| &one.report));
    let mut page = String::from("# Accuracy of predictions\n\n");
    origin(&mut page, validations);
    summary(&mut page, &accuracy);
    simple_methods(&mut page, &accuracy);
    at_speed(&mut page, validations);
    every_load(&mut page, validations);
    page.push_str("\n## The servers\n");
    for validation in validations {
        one_server(&mut page, validation);
    }
    page
}

/// Each different value once, in order.
fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<BTreeSet<T>>().into_iter().collect()
}

fn origin(page: &mut String, validations: &[Validation]) {
    let reports = || validations.iter().map(|one| &one.report);
    let days = distinct(reports().map(|report| report.started_utc.chars().take(10).collect::<String>()));
    let days = match days.as_slice() {
        [first, .., last] => format!("from {first} to {last}"),
        _ => format!("on {}", days.concat()),
    };
    let machines = distinct(reports().map(|report| {
        let machine = &report.machine;
        format!("{} × {}, {}, kernel {}", machine.cores, machine.cpu, machine.os, machine.kernel)
    }));
    let versions = distinct(reports().map(|report| report.kendall.clone()));
    let lengths = distinct(reports().map(|report| {
        format!(
            "{} of {}, predicted loads of {}",
            counted(report.rounds.into(), "round"),
            time(report.low_duration_s),
            time(report.high_duration_s)
        )
    }));
    let awake = if validations.iter().all(|one| one.report.awake) {
        " No processor sleeps meanwhile ([why](prediction.md#processors-that-sleep))."
    } else {
        ""
    };
    let _ = write!(
        page,
        "Written by `make accuracy` from {}, measured {days}.\n\n{}; kendall {}. Versions of the servers are below.\n\n\
         `kendall validate` measures low loads and the capacity of each server of `experiments/validate`, in rounds and in random order. \
         It writes the prediction of a higher load to disk with its time and its hash, and then measures that load: {}.\n\n\
         Server and generator share the machine. So that they do not compete for its processors, an HTTP server that computes is kept to one \
         of them, and one with several processes or threads waits for each request, as for a database.{awake}\n\n\
         Errors are predicted over measured, less 1. An error *beyond noise* counts from the nearest end of the 95 % interval of the \
         measurement, and is 0 within it. The interval of a prediction is for a run of that length.\n",
        counted(validations.len() as u64, "server"),
        machines.join("; "),
        versions.join(", "),
        lengths.join("; "),
    );
}

fn summary(page: &mut String, accuracy: &Accuracy) {
    let share = |part: usize| percent(part as f64 / accuracy.values as f64);
    let limited = match accuracy.generator_limited {
        0 => String::new(),
        loads => format!(
            "The generator limited {} (GENERATOR-LIMITED below): their response times are not those of the server, so they do not \
             count.\n\n",
            counted(loads as u64, "load")
        ),
    };
    let _ = write!(
        page,
        "\n## How right\n\n{limited}Of {} (means and quantiles of {}), {} ({}) lie within the 95 % interval of their prediction. {} ({}) \
         make it confidently wrong: they are more than twice as far from the prediction as the end of its interval, as ratios.\n\n",
        counted(accuracy.values as u64, "measured value"),
        counted(accuracy.servers as u64, "server"),
        count(accuracy.inside as u64),
        share(accuracy.inside),
        count(accuracy.confidently_wrong as u64),
        share(accuracy.confidently_wrong),
    );
    error_table(page, accuracy);
}

fn error_table(page: &mut String, accuracy: &Accuracy) {
    page.push_str(
        "| quantity | load | servers | median error | beyond noise | median half-width of the interval | inside |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for errors in &accuracy.errors {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} of {} |",
            errors.quantity,
            percent(errors.share),
            errors.loads,
            percent(errors.error),
            percent(errors.beyond_noise),
            percent(errors.half_width),
            errors.inside,
            errors.loads,
        );
    }
}

fn simple_methods(page: &mut String, accuracy: &Accuracy) {
    page.push_str(
        "\n## Simple methods on the same data\n\nMedian error over all loads, and its ratio to that of kendall on the same loads. A server \
         counts as one with several servers if most of its predictions do.\n\n",
    );
    method_table(page, accuracy);
}

fn method_table(page: &mut String, accuracy: &Accuracy) {
    page.push_str("| method |");
    let columns: Vec<(StationKind, &str)> =
        StationKind::ALL.iter().flat_map(|kind| QUANTITIES.map(|quantity| (*kind, quantity))).collect();
    for (kind, quantity) in &columns {
        let _ = write!(page, " {}: {quantity} | ratio |", kind.name());
    }
    let _ = write!(page, "\n| --- |{}\n", " ---: | ---: |".repeat(columns.len()));
    let of = |baseline: Baseline, kind: StationKind, quantity: &str| {
        let same = |one: &&BaselineErrors| {
            one.baseline == baseline && one.stations == kind && one.quantity == quantity
        };
        accuracy.baselines.iter().find(same)
    };
    page.push_str("| kendall |");
    for (kind, quantity) in &columns {
        // The straight line and staying the same have a prediction of every load.
        let _ = match of(Baseline::Same, *kind, quantity) {
            Some(errors) => write!(page, " {} | 1 |", percent(errors.of_kendall)),
            None => write!(page, " {NONE} | {NONE} |"),
        };
    }
    page.push('\n');
    for baseline in Baseline::ALL {
        let _ = write!(page, "| {} |", baseline.name());
        for (kind, quantity) in &columns {
            let _ = match of(baseline, *kind, quantity) {
                Some(errors) => write!(page, " {} | {} |", percent(errors.error), ratio(errors.ratio())),
                None => write!(page, " {NONE} | {NONE} |"),
            };
        }
        page.push('\n');
    }
}

/// The errors that are left once the speed of the machine during each load is known.
fn at_speed(page: &mut String, validations: &[Validation]) {
    let known: Vec<ValidationReport> = validations.iter().map(|one| one.report.at_speed()).collect();
    let counts = |load: &&Validated| !load.generator_limited;
    let loads = || known.iter().flat_map(|report| &report.loads).filter(counts);
    let differences: Vec<f64> =
        loads().filter_map(|load| Some((load.at_speed.as_ref()?.slower - 1.0).abs())).collect();
    if differences.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "\n## At the speed of the machine\n\nA fixed computation on the processors of the server shows in each second how fast they are. During \
         the predicted loads work took {} longer or shorter than in the full loads (median over {}), and 1 % makes an error of 1/(1 − ρ) % \
         in response times. Predicted afterwards for the speed that the processors had, by every method, the same loads have these \
         errors:\n\n",
        percent(median(&differences)),
        counted(differences.len() as u64, "load"),
    );
    let accuracy = Accuracy::of(&known);
    error_table(page, &accuracy);
    page.push('\n');
    method_table(page, &accuracy);
}

fn every_load(page: &mut String, validations: &[Validation]) {
    page.push_str(
        "\n## Every load\n\nIn brackets are 95 % intervals. A measured value outside the interval of its prediction is bold. The station \
         is the likeliest one of the prediction, with its share of the draws.\n\n\
         | server | load | station | mean: predicted | measured | error | p99: predicted | measured | error |\n\
         | --- | ---: | --- | --- | --- | ---: | --- | --- | ---: |\n",
    );
    for Validation { name, report, .. } in validations {
        for load in &report.loads {
            let cells = QUANTITIES.map(|quantity| cells(load.quantity(quantity)));
            let limited = if load.generator_limited { " GENERATOR-LIMITED" } else { "" };
            let _ = writeln!(
                page,
                "| {name} | {}{limited} | {} | {} |",
                percent(load.predicted.share),
                load.station(),
                cells.concat().join(" | ")
            );
        }
    }
}

/// Prediction, measurement and error.
fn cells(compared: Option<&Compared>) -> [String; 3] {
    let Some(Compared { predicted_s, measured_s, error, inside, .. }) = compared else {
        return std::array::from_fn(|_| NONE.to_owned());
    };
    let measured = time_with_interval(measured_s.value, measured_s.interval);
    [
        time_with_interval(predicted_s.value, predicted_s.interval),
        if *inside { measured } else { format!("**{measured}**") },
        difference(1.0 + error, 1.0).unwrap_or_else(|| NONE.to_owned()),
    ]
}

fn one_server(page: &mut String, validation: &Validation) {
    let Validation { name, question, versions, note, report } = validation;
    let values = report.compared().count();
    let inside = report.compared().filter(|compared| compared.inside).count();
    let _ = write!(page, "\n### {name}\n\n{question} {inside} of {values} measured values are inside.");
    if !versions.is_empty() {
        let _ = write!(page, " {}.", versions.join(", "));
    }
    page.push_str("\n\n");
    if let Some(note) = note {
        let _ = write!(page, "{}\n\n", note.trim());
    }
    let _ = writeln!(page, "- {}", report.machine_words().join(" "));
    let wrong = report.loads.iter().flat_map(|load| load.compared.iter().map(move |one| (load, one)));
    let wrong: Vec<String> = wrong
        .filter(|(_, compared)| compared.is_confidently_wrong())
        .map(|(load, compared): (&Validated, &Compared)| {
            format!("{} at {}", compared.quantity, percent(load.predicted.share))
        })
        .collect();
    if !wrong.is_empty() {
        let _ = writeln!(page, "- Confidently wrong: {}.", wrong.join(", "));
    }
    for doubt in report.all_doubts() {
        let _ = writeln!(page, "- {doubt}");
    }
}

#[cfg(test)]
mod tests;
