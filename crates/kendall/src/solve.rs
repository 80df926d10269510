//! `kendall solve`.

mod station;

use std::process::ExitCode;

use clap::Args;
use kendall_report::Modelling;
use kendall_solve::{NoFormula, SimulationError, StopRule, formula, simulate};
use kendall_station::Notation;

use crate::{UNSTABLE, print};

pub(crate) use station::StationOptions;

#[derive(Args)]
pub(crate) struct Options {
    /// The station in Kendall's notation, arrivals/service/servers/room/population/discipline: M/M/6, M/G/2/50,
    /// M/M/4/∞/20/PS
    notation: Notation,

    #[command(flatten)]
    station: StationOptions,

    /// Seed of the simulation
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Simulate at most this many customers
    #[arg(long, value_name = "N", default_value_t = StopRule::MOST_CUSTOMERS)]
    customers: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn solve(options: &Options) -> anyhow::Result<ExitCode> {
    let station = options.station.station(&options.notation)?;
    let by_formula = formula(&station);
    let stop = StopRule::Steady { max_customers: options.customers, relative_half_width: Some(0.01) };
    let by_simulation = simulate(&station, stop, options.seed);
    let unstable = matches!(by_formula, Err(NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. }))
        || matches!(by_simulation, Err(SimulationError::Unstable { .. }));
    let (by_formula, by_simulation) = (Modelling::from(by_formula), Modelling::from(by_simulation));
    if options.json {
        print::json(&serde_json::json!({
            "station": station,
            "notation": station.to_string(),
            "offered_utilisation": station.offered_utilisation(),
            "formula": by_formula,
            "simulation": by_simulation,
        }))?;
    } else {
        print::answers(&station, &by_formula, &by_simulation)?;
    }
    Ok(ExitCode::from(if unstable { UNSTABLE } else { 0 }))
}
