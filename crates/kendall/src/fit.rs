//! `kendall fit`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kendall_evidence::check::{AssumptionVerdict, Finding, check_table};
use kendall_evidence::fit::{Fit, KnownParameters, Observation, fit as fit_points};
use kendall_report::picture;
use kendall_solvecli::Figure;
use kendall_station::Servers;
use kendall_stats::number::list;

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
    print::out(&(kendall_report::fitted::lines(&fit?).join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
