//! Printing to the terminal.

use std::io::{self, IsTerminal, Write};

use kendall_record::Outcome;
use kendall_report::terminal::{self, Style};
use kendall_report::{Modelling, Report, number};
use kendall_station::{Answer, Estimate, Station, Summary};
use serde::Serialize;

use crate::load::Found;

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    Ok(writeln!(out)?)
}

/// Prints the report of an experiment.
pub(crate) fn report(report: &Report) {
    let out = io::stdout();
    let style = if out.is_terminal() { Style::Bold } else { Style::Plain };
    let width = terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0));
    print!("{}", terminal::render(report, width, style));
}

/// Prints what formula and simulation say of a station.
pub(crate) fn answers(station: &Station, formula: &Modelling, simulation: &Modelling) {
    println!("{station}");
    if let Some(rho) = station.offered_utilisation() {
        println!("offered utilisation {}", number::percent(rho));
    }
    println!();
    println!("{:<24} {:>14}   simulation", "", "formula");
    let ways = [formula.answer(), simulation.answer()];
    let share =
        |estimate: Estimate| shown(estimate, |share| format!("{} %", number::significant(share * 100.0, 3)));
    let count = |estimate: Estimate| shown(estimate, |value| number::significant(value, 4));
    row("utilisation", ways, |answer| Some(share(answer.utilisation)));
    row("response time, mean", ways, |answer| Some(interval(answer.response.mean_s)));
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        row(&format!("response time, {name}"), ways, |answer| answer.response.quantile(p).map(interval));
    }
    row("waiting time, mean", ways, |answer| Some(interval(answer.waiting.mean_s)));
    row("P(wait)", ways, |answer| Some(share(answer.p_wait)));
    row("in the station, mean", ways, |answer| Some(count(answer.in_system)));
    row("throughput, 1/s", ways, |answer| Some(count(answer.throughput_per_s)));
    row("lost", ways, |answer| Some(share(answer.lost)));
    println!();
    for (name, way) in [("formula", formula), ("simulation", simulation)] {
        match way {
            Modelling::Answer(answer) => println!("{name}: {}", by(answer)),
            Modelling::NoAnswer(why) => println!("{name}: no answer. {why}"),
        }
    }
}

fn row(name: &str, ways: [Option<&Answer>; 2], value: impl Fn(&Answer) -> Option<String>) {
    let cell = |way: Option<&Answer>| way.and_then(&value).unwrap_or_else(|| "–".into());
    println!("{name:<24} {:>14}   {}", cell(ways[0]), cell(ways[1]));
}

fn shown(estimate: Estimate, value: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{} [{}, {}]", value(estimate.value), value(low), value(high)),
        None => value(estimate.value),
    }
}

fn interval(time_s: Estimate) -> String {
    number::time_with_interval(time_s.value, time_s.interval)
}

fn by(answer: &Answer) -> String {
    use kendall_station::By;
    match &answer.by {
        By::Formula { source } => source.clone(),
        By::Simulation { customers, seed } => {
            format!("{customers} customers after the warm-up, seed {seed}; 95 % intervals")
        }
        By::Measurement { requests, trials } => format!("{requests} requests in {trials} trials"),
    }
}

/// Prints what a load run found.
pub(crate) fn found(found: &Found) {
    let run = &found.run;
    println!("{}", found.target);
    let offered = found
        .offered_per_s
        .map_or_else(String::new, |rate| format!(", offered {}/s", number::significant(rate, 4)));
    println!("{} requests in {:.2} s{offered}, seed {}", run.sent, run.wall_s, found.seed);
    let ended = Outcome::ALL.iter().map(|&outcome| format!("{} {}", run.count(outcome), outcome.name()));
    println!("{}", ended.collect::<Vec<_>>().join(", "));
    println!();
    match &found.clients {
        None => println!("Nothing was answered after the warm-up, so there is no response time."),
        Some(seen) => {
            times("response time", &seen.response);
            println!(
                "{:<24} {}",
                "throughput, 1/s",
                shown(seen.throughput_per_s, |value| number::significant(value, 4))
            );
            println!(
                "{:<24} {}",
                "out at once, mean",
                shown(seen.in_system, |value| number::significant(value, 3))
            );
            println!("{:<24} {}", "lost", shown(seen.lost, number::percent));
        }
    }
    let ns = |ns: u64| number::time(ns as f64 / 1e9);
    println!(
        "{:<24} p50 {}, p99 {}, at most {}",
        "send lag",
        ns(run.lag.p50_ns),
        ns(run.lag.p99_ns),
        ns(run.lag.max_ns)
    );
    println!();
    if run.doubts.is_empty() {
        println!("The generator kept its schedule.");
    }
    for doubt in &run.doubts {
        println!("Doubt: {doubt}.");
    }
}

fn times(name: &str, summary: &Summary) {
    println!("{:<24} {}", format!("{name}, mean"), interval(summary.mean_s));
    for quantile in summary.quantiles.iter().filter(|quantile| quantile.p >= 0.5) {
        // Rounded to six digits, so that 0.99 · 100 is written as 99.
        let name = format!("{name}, p{}", (quantile.p * 1e8).round() / 1e6);
        println!("{name:<24} {}", interval(quantile.value_s));
    }
}
