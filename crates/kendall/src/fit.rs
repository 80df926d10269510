//! `kendall fit`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kendall_evidence::check::{AssumptionVerdict, Finding, check_table};
use kendall_evidence::fit::{
    Candidate, Fit, KnownParameters, Observation, Origin, Parameter, ServiceTime, Source, fit as fit_points,
};
use kendall_report::picture;
use kendall_solvecli::Figure;
use kendall_station::Servers;
use kendall_stats::number::{self, list};

use crate::options::seconds;
use crate::systems::SYSTEMS;
use crate::{input, print};

/// The source of measured points, and further data of it.
#[derive(Args)]
pub(crate) struct Measured {
    /// The folder of a run, results/EXPERIMENT/INSTANT, or the folders of recorded loads of one server; tables as CSV, JSON or Parquet with headers such as rate,mean_ms; or outputs of
    /// wrk, wrk2, oha, k6, vegeta, fortio, hey or Locust, one file per load
    #[arg(required = true, value_name = "MEASURED")]
    pub(crate) measured: Vec<PathBuf>,

    /// The points to use of a run that varied more than the load, such as "workers 2"
    #[arg(long, value_name = "FACTOR VALUE")]
    pub(crate) group: Option<String>,

    /// Time that passes outside the station, such as 0.02 or 20ms; from timestamps or fitted if not given
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    delay: Option<f64>,

    /// How many servers the measured station had; as measured or fitted if not given
    #[arg(long, alias = "measured-servers", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    servers: Option<u32>,

    /// The capacity of the station: the most requests in it
    #[arg(long, value_name = "N")]
    capacity: Option<u64>,
}

#[derive(Args)]
pub(crate) struct FitOptions {
    #[command(flatten)]
    measured: Measured,

    #[command(flatten)]
    figure: Figure,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was read, and what fits it.
pub(crate) struct Read {
    /// The fit, or why it is missing.
    pub(crate) fit: anyhow::Result<Fit>,
    pub(crate) warnings: Vec<String>,
    /// What contradicts itself in a table, or holds. The requests of a run are for `kendall check`.
    pub(crate) findings: Vec<Finding>,
}

/// Points, as they were read.
struct Points {
    points: Vec<Observation>,
    warnings: Vec<String>,
    findings: Vec<Finding>,
    /// The columns of a table and what they were taken for.
    understood: Option<String>,
}

impl Measured {
    /// Reads the points and fits them.
    pub(crate) fn fit(&self) -> anyhow::Result<Read> {
        let Points { points, warnings, findings, understood } = self.points()?;
        let given = KnownParameters { servers: self.servers, delay_s: self.delay, capacity: self.capacity };
        let has_time =
            points.iter().any(|point| point.response_s.is_some() || point.throughput_per_s.is_some());
        let columns =
            understood.filter(|_| !has_time).map_or_else(String::new, |columns| format!(", for {columns}"));
        let fit = fit_points(&points, given).with_context(|| format!("cannot fit {}{columns}", self.name()));
        Ok(Read { fit, warnings, findings })
    }

    /// The names of what was given.
    fn name(&self) -> String {
        let names: Vec<String> = self.measured.iter().map(|path| path.display().to_string()).collect();
        if names.len() > 3 { format!("{} files", names.len()) } else { list(&names) }
    }

    fn points(&self) -> anyhow::Result<Points> {
        let name = self.name();
        let folder = match input::measured(&self.measured)? {
            input::Measured::Run(folder) => folder,
            input::Measured::Table(table) => {
                return Ok(Points {
                    points: Observation::of_table(&table),
                    warnings: table.warnings(),
                    findings: check_table(&table, self.servers.and_then(Servers::new)),
                    understood: Some(table.understood()),
                });
            }
        };
        let mut groups = kendall_analysis::observe(folder, SYSTEMS)?;
        if let Some(wanted) = &self.group {
            groups.retain(|points| points.group == *wanted);
        }
        match groups.as_slice() {
            [] => bail!(
                "{name} has no finished point{}",
                self.group.as_ref().map_or(String::new(), |group| format!(" with {group:?}"))
            ),
            [only] => Ok(Points {
                points: only.points.clone(),
                warnings: only.doubts.clone(),
                findings: Vec::new(),
                understood: None,
            }),
            several => {
                let names: Vec<String> = several.iter().map(|points| format!("{:?}", points.group)).collect();
                bail!("{name} varied more than the load; choose with --group: {}", names.join(", "))
            }
        }
    }
}

pub(crate) fn fit(options: &FitOptions) -> anyhow::Result<ExitCode> {
    let Read { fit, warnings, findings } = options.measured.fit()?;
    if let Ok(fit) = &fit {
        options.figure.draw(|| picture::fitted(options.measured.name(), fit))?;
    }
    if options.json {
        let found = fit.as_ref().ok();
        print::json(&serde_json::json!({ "warnings": warnings, "findings": findings, "fit": found }))?;
        return fit.map(|_| ExitCode::SUCCESS);
    }
    warnings.iter().for_each(|warning| print::note(&format!("Note: {warning}.")));
    let broken: Vec<Finding> =
        findings.into_iter().filter(|finding| finding.verdict == AssumptionVerdict::Broken).collect();
    if !broken.is_empty() {
        print::checks(&broken)?;
        print::out("\n")?;
    }
    print::out(&(lines(&fit?).join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The most points that are listed with the reason why they were left out.
const MOST_SHOWN: usize = 5;

/// The line that follows a list that was cut short.
fn more(total: usize) -> Option<String> {
    (total > MOST_SHOWN).then(|| format!("… and {} more; --json lists all.", total - MOST_SHOWN))
}

/// The fit as it is printed.
fn lines(fit: &Fit) -> Vec<String> {
    let [first, .., last] = fit.points.as_slice() else { return Vec::new() };
    let reduced = fit.reduced_to.map_or_else(String::new, |few| format!(", reduced to {few} for the fit"));
    let mut lines = vec![format!("{} points, {} to {}{reduced}", fit.points.len(), first.load, last.load)];
    lines.extend(fit.left_out.iter().take(MOST_SHOWN).map(|why| format!("Left out: {why}.")));
    lines.extend(more(fit.left_out.len()).map(|more| format!("Left out: {more}")));
    if !fit.service.is_empty() {
        lines.push("\nService time, by what is at hand, best first".into());
        lines.extend(fit.service.iter().map(source));
    }
    let judged = fit.split.as_ref().map_or_else(
        || "there are too few points for cross-validation".into(),
        |split| {
            format!(
                "fitted on {} points up to {}, asked for the {} from {} to {}",
                split.fitted, split.up_to, split.predicted, split.from, split.to
            )
        },
    );
    lines.push(format!("\nModels, {judged}"));
    lines.push(format!(
        "  {:<34} {:>14} {:>8} {:>14} {:>8}",
        "model", "error there", "worst", "error on all", "AICc"
    ));
    lines.extend(fit.candidates.iter().map(ranked));
    lines.push(String::new());
    lines.extend(best(fit.best()));
    lines
}

fn source(service: &ServiceTime) -> String {
    let name = match service.source {
        Source::Stamps => "timestamps of the server",
        Source::Utilisation => "slope of the CPU use",
        Source::LowLoad => "response at the lowest load",
        Source::Curve => "curve of the best model",
    };
    let used = if service.used { "used" } else { "for comparison" };
    let doubt = service.doubt.as_ref().map_or(String::new(), |doubt| format!("; {doubt}"));
    let time = number::time_with_interval(service.mean_s, service.interval_s);
    format!("  {name:<30} {time}, {used}{doubt}")
}

fn ranked(candidate: &Candidate) -> String {
    let share = |error: f64| if error.is_finite() { number::percent(error) } else { "unstable".into() };
    let [error, worst] = match &candidate.held_out {
        Some(held_out) => [share(held_out.error), share(held_out.worst)],
        None => [number::NONE.into(), number::NONE.into()],
    };
    let aicc = candidate.aicc.map_or_else(|| number::NONE.into(), |aicc| format!("{aicc:.1}"));
    let on_all = share(candidate.error);
    format!("  {:<34} {error:>14} {worst:>8} {on_all:>14} {aicc:>8}", candidate.name)
}

/// The winner, with its formula and parameters.
pub(crate) fn best(candidate: &Candidate) -> Vec<String> {
    let mut lines = vec![format!("Best: {}", candidate.name), format!("  {}", candidate.formula)];
    lines.extend(candidate.parameters.iter().map(parameter));
    lines.extend(candidate.notes.iter().map(|note| format!("  Note: {note}.")));
    lines
}

fn parameter(parameter: &Parameter) -> String {
    let quantity = parameter.quantity;
    let show = |value: f64| match value {
        value if quantity.is_time() => number::time(value),
        value if quantity.is_count() => format!("{value:.0}"),
        value => number::significant(value, 3),
    };
    let value = match parameter.interval {
        Some((low, high)) if quantity.is_time() && high.is_finite() => {
            number::time_with_interval(parameter.value, Some((low, high)))
        }
        Some((low, high)) if high.is_finite() => {
            format!("{} [{}, {}]", show(parameter.value), show(low), show(high))
        }
        Some((low, _)) => format!("{} [from {}]", show(parameter.value), show(low)),
        None => show(parameter.value),
    };
    let given = if parameter.origin == Origin::Given { ", given" } else { "" };
    format!("  {:<2} {:<30} {value}{given}", quantity.symbol(), quantity.name())
}
