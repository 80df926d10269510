//! `kendall check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kendall_evidence::check::{Finding, check_table};
use kendall_station::Servers;

use crate::input::{self, Measured};
use crate::print;
use crate::systems::SYSTEMS;

#[derive(Args)]
pub(crate) struct CheckOptions {
    /// The folder of a run, results/EXPERIMENT/INSTANT; tables as CSV, JSON or Parquet with headers such as
    /// rate,service_mean_ms,mean_ms; or outputs of wrk, wrk2, oha, k6, vegeta, fortio, hey or Locust, one file per load
    #[arg(required = true, value_name = "MEASURED")]
    measured: Vec<PathBuf>,

    /// How many servers the station of a table had, if the table does not say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    servers: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn check(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let (findings, warnings) = options.findings()?;
    if options.json {
        print::json(&serde_json::json!({ "warnings": warnings, "findings": findings }))?;
    } else {
        warnings.iter().for_each(|warning| print::note(&format!("Note: {warning}.")));
        print::checks(&findings)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl CheckOptions {
    fn findings(&self) -> anyhow::Result<(Vec<Finding>, Vec<String>)> {
        Ok(match input::measured(&self.measured)? {
            Measured::Run(folder) => (kendall_analysis::analyse(folder, SYSTEMS)?.checks, Vec::new()),
            Measured::Table(table) => {
                (check_table(&table, self.servers.and_then(Servers::new)), table.warnings())
            }
        })
    }
}
