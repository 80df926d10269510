//! `kendall check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kendall_evidence::check::{Finding, check_table};
use kendall_evidence::table::Table;
use kendall_station::Servers;

use crate::print;
use crate::systems::SYSTEMS;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder of a run, results/EXPERIMENT/INSTANT, or a CSV table with headers such as
    /// rate_per_s,service_mean_ms,response_mean_ms
    measured: PathBuf,

    /// How many servers the station of a table has, where the table does not tell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    servers: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn check(options: &Options) -> anyhow::Result<ExitCode> {
    let (findings, warnings) = options.findings()?;
    if options.json {
        print::json(&serde_json::json!({ "warnings": warnings, "findings": findings }))?;
    } else {
        warnings.iter().for_each(|warning| print::note(&format!("Note: {warning}.")));
        print::checks(&findings)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Options {
    fn findings(&self) -> anyhow::Result<(Vec<Finding>, Vec<String>)> {
        if self.measured.is_dir() {
            return Ok((kendall_analysis::analyse(&self.measured, SYSTEMS)?.checks, Vec::new()));
        }
        let name = self.measured.display();
        let text = kendall_stdio::read(&self.measured)?;
        let table = Table::read(&text).with_context(|| name.to_string())?;
        Ok((check_table(&table, self.servers.and_then(Servers::new)), table.warnings()))
    }
}
