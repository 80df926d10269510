//! Printing to the terminal.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use kendall_record::Outcome;
use kendall_report::terminal::{self, Style};
use kendall_report::{Report, number};
use kendall_solve::check::Finding;
use kendall_solve::{ClassScore, Score};
use kendall_station::{By, Estimate, Summary};
use serde::Serialize;

use crate::load::Found;

/// Writes to standard output. Whoever closed the other end has seen enough, which is no error.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the output");
    written.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Whether something could not be written because nobody reads it any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Writes a line to standard error, if it can be.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    out(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Prints the report of an experiment.
pub(crate) fn report(report: &Report) -> anyhow::Result<()> {
    let (width, style) = screen();
    out(&terminal::render(report, width, style))
}

/// Prints what checks found.
pub(crate) fn checks(findings: &[Finding]) -> anyhow::Result<()> {
    let (width, style) = screen();
    out(&terminal::checks(findings, width, style))
}

/// How wide standard output is, and whether it takes escape codes.
fn screen() -> (usize, Style) {
    let style = if io::stdout().is_terminal() { Style::Bold } else { Style::Plain };
    (terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0)), style)
}

/// A share in per cent to three digits, never rounded up to all.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match number::significant(percent, 3).as_str() {
        "100" if percent < 100.0 => "just under 100 %".to_owned(),
        text => format!("{text} %"),
    }
}

/// A share with its interval.
pub(crate) fn share(estimate: Estimate) -> String {
    shown(estimate, percent)
}

/// A number with its interval.
pub(crate) fn shown(estimate: Estimate, value: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{} [{}, {}]", value(estimate.value), value(low), value(high)),
        None => value(estimate.value),
    }
}

/// A time with its interval.
pub(crate) fn interval(time_s: Estimate) -> String {
    number::time_with_interval(time_s.value, time_s.interval)
}

/// Who answers.
pub(crate) fn by(by: &By) -> String {
    match by {
        By::Formula { source, approximate: None } => source.clone(),
        By::Formula { source, approximate: Some(how) } => format!("{source} (approximation: {how})"),
        By::Simulation { customers, seed, needed, .. } => {
            let run = format!("{customers} customers after the warm-up, seed {seed}; 95 % intervals");
            let doubt = needed.map(|needed| {
                format!(
                    ".\nDoubt: so near its limit the station needs some {} customers to settle, so these numbers are of one \
                     that is still filling; give --customers",
                    number::significant(needed as f64, 2)
                )
            });
            run + &doubt.unwrap_or_default()
        }
        By::Measurement { requests, trials } => format!("{requests} requests in {trials} trials"),
    }
}

/// Prints what a load run found.
pub(crate) fn found(found: &Found) -> anyhow::Result<()> {
    let run = &found.run;
    let offered = found
        .offered_per_s
        .map_or_else(String::new, |rate| format!(", offered {}/s", number::significant(rate, 4)));
    let ended = Outcome::ALL.iter().map(|&outcome| format!("{} {}", run.count(outcome), outcome.name()));
    let mut lines = vec![
        found.target.clone(),
        format!("{} requests in {:.2} s{offered}, seed {}", run.sent, run.wall_s, found.seed),
        ended.collect::<Vec<_>>().join(", ") + "\n",
    ];
    match &found.clients {
        Err(why) => lines.push(format!("No response time: {why}.")),
        Ok(seen) => {
            let row = |name: &str, value: String| format!("{name:<24} {value}");
            lines.extend(times("response time", &seen.response));
            let rate = |value| number::significant(value, 4);
            lines.push(row("throughput, 1/s", shown(seen.throughput_per_s, rate)));
            lines
                .push(row("out at once, mean", shown(seen.in_system, |value| number::significant(value, 3))));
            lines.push(row("lost", shown(seen.lost, percent)));
        }
    }
    lines.extend(found.score.iter().flat_map(score_lines));
    let ns = |ns: u64| number::time(ns as f64 / 1e9);
    let lag = run.lag;
    let lag = format!("p50 {}, p99 {}, at most {}", ns(lag.p50_ns), ns(lag.p99_ns), ns(lag.max_ns));
    lines.push(format!("{:<24} {lag}\n", "send lag"));
    let doubts = doubts(found);
    if doubts.is_empty() {
        lines.push("The generator kept its schedule, and every request was answered.".into());
    }
    lines.extend(doubts.iter().map(|doubt| format!("Doubt: {doubt}.")));
    lines.push(format!("\nThe same again: {}", found.again));
    out(&(lines.join("\n") + "\n"))
}

/// The score of a run, and a table of its classes if there are several.
fn score_lines(score: &Score) -> Vec<String> {
    let least = if score.without_answer > 0 { "at least " } else { "" };
    let mut lines = vec![
        format!("{:<24} {}", "right answers", percent(score.right)),
        format!(
            "{:<24} {least}{} µs: the mean of weight × response over {} requests; the lower the better",
            "score", score.weighted_response_us, score.requests
        ),
    ];
    if score.classes.len() > 1 {
        lines.push(String::new());
        lines.extend(classes(&score.classes));
        lines.push(String::new());
    }
    lines
}

/// A table of the classes that had requests.
fn classes(classes: &[ClassScore]) -> Vec<String> {
    let head =
        format!("{:<24} {:>6} {:>9} {:>9}   response time, mean", "class", "weight", "requests", "right");
    let row = |class: &ClassScore| {
        let mean = number::time(class.mean_response_s?);
        let ClassScore { name, weight, requests, right, .. } = class;
        Some(format!("{name:<24} {weight:>6} {requests:>9} {right:>9}   {mean}"))
    };
    std::iter::once(head).chain(classes.iter().filter_map(row)).collect()
}

/// Every reason to doubt what a load run found.
fn doubts(found: &Found) -> Vec<String> {
    let run = &found.run;
    let answered = run.count(Outcome::Answered);
    let missing = run.sent - answered - run.count(Outcome::Wrong);
    let share = |count: u64| percent(count as f64 / run.sent.max(1) as f64);
    let mut doubts: Vec<String> = run.doubts.iter().map(ToString::to_string).collect();
    if missing > 0 {
        doubts.push(format!(
            "{} of the requests had no answer; the times are of those that had one, and in the score the others end \
             when they were given up",
            share(missing)
        ));
    }
    if run.count(Outcome::Wrong) > 0 {
        doubts.push(format!("{} of the answers were wrong", share(run.count(Outcome::Wrong))));
    }
    doubts
}

fn times(name: &str, summary: &Summary) -> Vec<String> {
    let mean = (format!("{name}, mean"), interval(summary.mean_s));
    // Rounded to six digits, so that 0.99 · 100 is written as 99.
    let quantile = |p: f64| format!("{name}, p{}", (p * 1e8).round() / 1e6);
    let quantiles = summary.quantiles.iter().filter(|quantile| quantile.p >= 0.5);
    let quantiles = quantiles.map(|one| (quantile(one.p), interval(one.value_s)));
    std::iter::once(mean).chain(quantiles).map(|(name, value)| format!("{name:<24} {value}")).collect()
}
