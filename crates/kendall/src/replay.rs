//! `kendall replay`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kendall_station::Notation;

use crate::print;
use crate::systems::SYSTEMS;

#[derive(Args)]
pub(crate) struct ReplayOptions {
    /// The folder of a run, results/EXPERIMENT/INSTANT, whose server recorded its service times
    results: PathBuf,

    /// The station, such as G/G/3/50/LIFO: its servers, capacity and discipline count, and the last two are those of the system if left
    /// out; arrivals and service times are those of the run
    station: Notation,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn replay(options: &ReplayOptions) -> anyhow::Result<ExitCode> {
    let points = kendall_analysis::replays(&options.results, SYSTEMS, &options.station)?;
    match options.json {
        true => print::json(&points)?,
        false => print::replays(&options.station, &points)?,
    }
    Ok(ExitCode::SUCCESS)
}
