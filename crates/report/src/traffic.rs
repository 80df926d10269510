//! Traffic over links: the page of flows that compete, and the section of a run whose trials crossed a link.

use askama::Template;
use kendall_analysis::traffic::{Cloud, FlowRun, FlowsReport, TrialTraffic};
use kendall_analysis::{Report, Table};
use kendall_stats::number::{NONE, percent, significant, time};

use crate::figure::Named;
use crate::figure::traffic::{Along, clouds, goodput, matrix, queues};

/// Runs that are drawn along time; of more, the first.
const MOST_PANELS: usize = 36;

/// The figures of a record of flows that have something to show.
pub fn flows_figures(found: &FlowsReport) -> Vec<Named> {
    let runs = &found.runs[..found.runs.len().min(MOST_PANELS)];
    let title = |run: &FlowRun| if runs.len() > 1 { run.name.clone() } else { String::new() };
    let rates: Vec<_> = runs
        .iter()
        .map(|run| Along { title: title(run), measured_from_s: run.measured_from_s, data: &run.goodput })
        .collect();
    let waits: Vec<_> = runs
        .iter()
        .map(|run| Along { title: title(run), measured_from_s: run.measured_from_s, data: &run.queues[..] })
        .collect();
    let caption = "The rate at which data reached the receiving program, in intervals of 0.1 s or more. Each flow is stacked on the \
                   flows named before it, so the upper edge is their sum. Flows of one kind have one colour. The shaded part is the \
                   warm-up.";
    let figures = [
        ("competition", found.matrix.as_ref().and_then(matrix), 1),
        ("goodput", goodput("Goodput along time", "goodput", caption, &rates), 4),
        ("delay-goodput", clouds("goodput", "one flow", &[(String::new(), found.clouds.clone())]), 2),
        ("queue-delay", queues(&waits), 2),
    ];
    figures
        .into_iter()
        .filter_map(|(name, figure, left)| Some(Named { name, figure: figure?, left }))
        .collect()
}

/// The page of a record of flows, as HTML: self-contained, and it reads without script.
pub fn flows_page(found: &FlowsReport) -> String {
    let mut missing = found.missing.clone();
    if found.runs.len() > MOST_PANELS {
        let all = found.runs.len();
        missing.push(format!(
            "Of {all} runs the first {MOST_PANELS} are drawn along time; --json prints the result of all."
        ));
    }
    let view = FlowsView {
        found,
        style: crate::style::STYLE,
        figures: flows_figures(found),
        missing,
        results: results(found),
    };
    view.render().expect("rendering to a string fails only where a value's Display does")
}

/// The report as text, for a terminal: the result in sentences, and what is missing.
pub fn flows_text(found: &FlowsReport) -> String {
    let lines =
        [std::slice::from_ref(&found.title), &found.answers, &found.failures, &found.missing].concat();
    lines.join("\n") + "\n"
}

#[derive(Template)]
#[template(path = "flows.html")]
struct FlowsView<'a> {
    found: &'a FlowsReport,
    style: &'static str,
    figures: Vec<Named>,
    missing: Vec<String>,
    results: Table,
}

/// What each flow got, run by run.
fn results(found: &FlowsReport) -> Table {
    let head = [
        "run",
        "flow",
        "Mbit/s",
        "share",
        "longest pause",
        "Jain's index",
        "longest queue",
        "echo p50",
        "echo p95",
        "round trips per minute",
        "bytes on the wire per byte",
        "sender's processor per GB",
        "receiver's processor per GB",
    ];
    let known = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), time);
    let figure = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| significant(value, 4));
    let rows = found.runs.iter().filter_map(|run| Some((&run.name, run.result.as_ref()?))).flat_map(
        |(name, result)| {
            let queue_s = result.hops.iter().map(|hop| hop.queue_delay_max_s).reduce(f64::max);
            (1..).zip(&result.flows).map(move |(number, flow)| {
                vec![
                    name.clone(),
                    format!("{number} {}", flow.source),
                    significant(flow.goodput_bytes_per_s * 8.0 / 1e6, 3),
                    percent(flow.share),
                    format!("{:.1} s", flow.longest_pause_s),
                    significant(result.jain, 3),
                    known(queue_s),
                    known(result.loaded.p50_s),
                    known(result.loaded.p95_s),
                    figure(result.loaded.round_trips_per_min),
                    figure(result.wire_bytes_per_byte),
                    known(result.sender_cpu_s_per_gb),
                    known(result.receiver_cpu_s_per_gb),
                ]
            })
        },
    );
    Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
}

/// The figures of the link in a run's trials: one trial of each combination.
pub(crate) fn link_figures(report: &Report) -> Vec<Named> {
    let trials = &report.traffic.trials[..report.traffic.trials.len().min(MOST_PANELS)];
    let title = |trial: &TrialTraffic| {
        let line = report.trials.iter().find(|line| line.id == trial.trial);
        let point = line.and_then(|line| report.points.get(line.point?));
        point.map_or_else(|| trial.trial.clone(), |point| report.place(point))
    };
    let rates: Vec<_> = trials
        .iter()
        .map(|one| Along { title: title(one), measured_from_s: 0.0, data: &one.rates })
        .collect();
    let waits: Vec<_> = trials
        .iter()
        .map(|one| Along { title: title(one), measured_from_s: 0.0, data: &one.queues[..] })
        .collect();
    let caption = "What left the link's last hop in the first trial of each combination, in the direction with more bytes, packet \
                   headers included. Connections are stacked, those with most bytes at the bottom.";
    let figures = [
        ("link-rate", goodput("Throughput of the link along time", "throughput", caption, &rates), 4),
        ("delay-goodput", clouds("throughput", "all traffic of a trial", &link_clouds(report, trials)), 2),
        ("queue-delay", queues(&waits), 2),
    ];
    figures
        .into_iter()
        .filter_map(|(name, figure, left)| Some(Named { name, figure: figure?, left }))
        .collect()
}

/// A panel for each group of combinations, which differ in the first factor only.
fn link_clouds(report: &Report, trials: &[TrialTraffic]) -> Vec<(String, Vec<Cloud>)> {
    let first = report.factors.first().map(|factor| factor.name.as_str());
    let of_point = |place: usize| {
        let point = &report.points[place];
        let trial = trials.iter().find(|trial| report.trials_of(place).any(|line| line.id == trial.trial))?;
        let kind = first.map_or_else(|| trial.trial.clone(), |name| point.setting(name).to_owned());
        Some(Cloud { kind, points: trial.cloud.points.clone() })
    };
    let groups = report.groups().into_iter().map(|(name, points)| {
        let places =
            points.iter().filter_map(|point| report.points.iter().position(|one| std::ptr::eq(one, *point)));
        (name, places.filter_map(of_point).collect())
    });
    groups.collect()
}
