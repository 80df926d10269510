//! The records of `kendall transport flows` and `kendall transport compete`, as plain data.

use std::path::Path;

use kendall_archive::read_json;
use kendall_flows::{
    ABOUT, About, Competition, FlowAbout, TOURNAMENT, Tournament, Traces, competition, jain, measured_from_ns,
};
use kendall_record::RecordError;
use kendall_stats::number::{list, percent, significant, time};
use serde::Serialize;

use super::cloud::{self, Cloud};
use super::series::{Goodput, HopQueue, seconds};
use super::{goodput, queue};

/// The report of a record of flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowsReport {
    /// The flows: "tcp, tcp and curve", or "Every two of tcp and curve".
    pub title: String,
    /// The start of the run, in UTC.
    pub started_utc: String,
    /// The command that makes such a record again.
    pub command: String,
    /// The link and how flows were measured: what, and its value.
    pub settings: Vec<(String, String)>,
    /// The result in sentences.
    pub answers: Vec<String>,
    /// The runs: one, or one for each pair of a tournament.
    pub runs: Vec<FlowRun>,
    /// The goodput of each kind with each other kind; only of a tournament.
    pub matrix: Option<Matrix>,
    /// Delay against goodput of each kind, over all runs.
    pub clouds: Vec<Cloud>,
    /// The parts that cannot be shown, with the reasons.
    pub missing: Vec<String>,
    /// Flows that failed.
    pub failures: Vec<String>,
}

/// One run of several flows at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRun {
    /// The names of the flows, such as "tcp beside curve".
    pub name: String,
    /// The goodput of each flow; `None` where the run was too short.
    pub result: Option<Competition>,
    /// When the measured span begins, in seconds since the first flows began.
    pub measured_from_s: f64,
    /// The goodput of each flow along time.
    pub goodput: Goodput,
    /// The queues along time.
    pub queues: Vec<HopQueue>,
}

/// The goodput of each kind with each other kind. `None` where a pair was not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// The kinds.
    pub kinds: Vec<String>,
    /// The share of the row's kind against the column's, 0 to 1.
    pub share: Vec<Vec<Option<f64>>>,
    /// Jain's index of both.
    pub jain: Vec<Vec<Option<f64>>>,
}

/// Reads what `kendall transport flows` or `compete` recorded in a folder; `None` where it holds no such record.
///
/// # Errors
/// Fails where the record of flows, or that of a tournament itself, cannot be read. A pair of a tournament that cannot be read is
/// left out, and named.
pub fn read(folder: &Path) -> Result<Option<FlowsReport>, RecordError> {
    if folder.join(TOURNAMENT).exists() {
        return tournament(folder).map(Some);
    }
    if !folder.join(ABOUT).exists() {
        return Ok(None);
    }
    let (about, traces) = both(folder)?;
    let mut missing = Vec::new();
    let (run, clouds) = run(&about, &traces, &mut missing);
    missing.push(
        "There is no matrix of competition, because these flows ran once, all together: kendall transport compete measures every pair \
         of kinds."
            .to_owned(),
    );
    missing.extend(cloudless(&clouds));
    Ok(Some(FlowsReport {
        title: list(&about.flows.iter().map(FlowAbout::kind).collect::<Vec<_>>()),
        started_utc: about.started_utc.clone(),
        command: about.command.clone(),
        settings: settings(&about),
        answers: run.result.as_ref().map(answers).unwrap_or_default(),
        matrix: None,
        clouds,
        missing,
        failures: traces.seen.failures,
        runs: vec![run],
    }))
}

fn both(folder: &Path) -> Result<(About, Traces), RecordError> {
    Ok((read_json(&folder.join(ABOUT))?, Traces::read(folder)?))
}

fn tournament(folder: &Path) -> Result<FlowsReport, RecordError> {
    let Tournament { started_utc, command, kinds, pairs } = read_json(&folder.join(TOURNAMENT))?;
    let mut report = FlowsReport {
        title: format!("Every two of {}", list(&kinds)),
        started_utc,
        command,
        settings: Vec::new(),
        answers: Vec::new(),
        runs: Vec::new(),
        matrix: None,
        clouds: Vec::new(),
        missing: Vec::new(),
        failures: Vec::new(),
    };
    for pair in pairs {
        let (about, traces) = match both(&folder.join(&pair)) {
            Ok(both) => both,
            Err(error) => {
                report.missing.push(format!("The pair {pair} is left out: {error}."));
                continue;
            }
        };
        let (run, clouds) = run(&about, &traces, &mut report.missing);
        for cloud in clouds {
            match report.clouds.iter_mut().find(|known| known.kind == cloud.kind) {
                Some(known) => known.points.extend(cloud.points),
                None => report.clouds.push(cloud),
            }
        }
        report.settings = settings(&about);
        report.failures.extend(traces.seen.failures.iter().map(|why| format!("{}: {why}", run.name)));
        report.runs.push(run);
    }
    let matrix = matrix(&kinds, &report.runs);
    report.answers.extend(most_uneven(&matrix));
    if report.runs.iter().any(|run| run.result.is_some()) {
        report.matrix = Some(matrix);
    } else {
        let why = "There is no matrix of competition, because no pair was measured to its end.";
        report.missing.push(why.to_owned());
    }
    report.missing.extend(cloudless(&report.clouds));
    Ok(report)
}

/// What a run says, and the clouds of its kinds. What it cannot say goes to `missing`.
fn run(about: &About, traces: &Traces, missing: &mut Vec<String>) -> (FlowRun, Vec<Cloud>) {
    let names: Vec<String> = about.flows.iter().map(FlowAbout::kind).collect();
    let name = match &names[..] {
        [first, second] => format!("{first} beside {second}"),
        _ => list(&names),
    };
    let from_ns = measured_from_ns(about, &traces.seen);
    let to_ns = traces.seen.ticks.last().map_or(from_ns, |tick| tick.at_ns);
    let result = competition(about, traces);
    if let Err(why) = &result {
        missing.push(format!("There are no shares of {name}, because {why}."));
    }
    let goodput = goodput::of_flows(about, &traces.seen);
    if !goodput.has_any() {
        missing.push(format!("There is no plot of the goodput of {name}, because no byte arrived."));
    }
    let queues = queue::queues(&traces.link, traces.seen.from_ns.saturating_sub(traces.start_ns));
    if queues.is_empty() {
        missing.push(format!(
            "There is no plot of the queues of {name}, because the log of the link has no packet after the flows began."
        ));
    }
    let run = FlowRun {
        measured_from_s: seconds(from_ns - traces.seen.from_ns),
        goodput,
        queues,
        result: result.ok(),
        name,
    };
    (run, cloud::of_flows(about, traces, (from_ns, to_ns)))
}

/// The reason why kinds are without an ellipse.
fn cloudless(clouds: &[Cloud]) -> Option<String> {
    let without: Vec<String> =
        clouds.iter().filter(|cloud| cloud.ellipse().is_none()).map(|cloud| cloud.kind.clone()).collect();
    (!without.is_empty()).then(|| {
        format!(
            "There is no ellipse of {}, because its packets left the queues in fewer than three intervals.",
            list(&without)
        )
    })
}

fn matrix(kinds: &[String], runs: &[FlowRun]) -> Matrix {
    let pair = |own: &String, other: &String| {
        runs.iter().filter_map(|run| run.result.as_ref()).find_map(|result| match &result.flows[..] {
            [first, second] if (&first.source, &second.source) == (own, other) => Some((first, result)),
            [first, second] if (&second.source, &first.source) == (own, other) => Some((second, result)),
            _ => None,
        })
    };
    // Of a pair that got nothing there are no shares.
    let share = |own, other| {
        pair(own, other).filter(|(_, result)| result.goodput_bytes_per_s > 0.0).map(|(flow, _)| flow.share)
    };
    let index = |own, other| {
        let (_, result) = pair(own, other).filter(|(_, result)| result.goodput_bytes_per_s > 0.0)?;
        Some(jain(&result.flows.iter().map(|flow| flow.goodput_bytes_per_s).collect::<Vec<_>>()))
    };
    Matrix {
        share: kinds.iter().map(|own| kinds.iter().map(|other| share(own, other)).collect()).collect(),
        jain: kinds.iter().map(|own| kinds.iter().map(|other| index(own, other)).collect()).collect(),
        kinds: kinds.to_vec(),
    }
}

/// The pair of different kinds that shares least evenly.
fn most_uneven(matrix: &Matrix) -> Option<String> {
    let places =
        (0..matrix.kinds.len()).flat_map(|row| (0..matrix.kinds.len()).map(move |column| (row, column)));
    let known = places.filter(|(row, column)| row != column);
    let (share, row, column) = known
        .filter_map(|(row, column)| Some((matrix.share[row][column]?, row, column)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let Matrix { kinds, jain, .. } = matrix;
    let index = jain[row][column]
        .map_or_else(String::new, |index| format!(" (Jain's index {})", significant(index, 3)));
    Some(format!(
        "The most uneven pair is {} and {}: {} of their goodput goes to {}{index}.",
        kinds[row],
        kinds[column],
        percent(share),
        kinds[row],
    ))
}

fn answers(result: &Competition) -> Vec<String> {
    let all = significant(result.goodput_bytes_per_s * 8.0 / 1e6, 3);
    let mut answers = vec![match result.flows.len() {
        1 => format!("The flow gets {all} Mbit/s."),
        n => format!("{n} flows get {all} Mbit/s together; Jain's index is {}.", significant(result.jain, 3)),
    }];
    if let (Some(idle_s), Some(loaded_s)) = (result.idle.p50_s, result.loaded.p50_s) {
        answers.push(format!(
            "An echo of 64 bytes takes {} at the median without flows and {} with them.",
            time(idle_s),
            time(loaded_s)
        ));
    }
    answers
}

fn settings(about: &About) -> Vec<(String, String)> {
    let all = [
        ("link", about.link.clone()),
        ("congestion control of TCP", about.congestion.clone()),
        ("seed", about.seed.to_string()),
        ("warm-up", time(about.warm_up_s)),
        ("echoes over", about.echo.clone()),
    ];
    all.map(|(what, value)| (what.to_owned(), value)).to_vec()
}
