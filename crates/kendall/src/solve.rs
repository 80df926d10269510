//! `kendall solve`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kendall_report::Modelling;
use kendall_solve::{NoFormula, SimulationError, StopRule, formula, simulate};
use kendall_station::{Discipline, Law, Notation, Station};

use crate::{UNSTABLE, print};

/// More servers or users than this do not fit into memory and patience.
const MOST: u32 = 1_000_000;

#[derive(Args)]
pub(crate) struct Options {
    /// The station in Kendall's notation, arrivals/service/servers/room/population/discipline: M/M/6, M/G/2/50,
    /// M/M/4/∞/20/PS
    station: Notation,

    /// Requests per second
    #[arg(long, value_name = "PER_S", allow_negative_numbers = true, value_parser = positive, required_unless_present = "think_time")]
    arrival_rate: Option<f64>,

    /// Mean think time of each user, in seconds, where the notation names a population
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = positive, conflicts_with = "arrival_rate")]
    think_time: Option<f64>,

    /// Requests per second that one busy server completes
    #[arg(long, value_name = "PER_S", allow_negative_numbers = true, value_parser = positive, required_unless_present = "service_time")]
    service_rate: Option<f64>,

    /// Mean service time in seconds, in place of a rate
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = positive, conflicts_with = "service_rate")]
    service_time: Option<f64>,

    /// Squared coefficient of variation of the service time, for G, LN, H2, Pa and U
    #[arg(long, value_name = "SCV", allow_negative_numbers = true, value_parser = not_negative)]
    service_scv: Option<f64>,

    /// Squared coefficient of variation of the gaps between arrivals, for the same
    #[arg(long, value_name = "SCV", allow_negative_numbers = true, value_parser = not_negative)]
    arrival_scv: Option<f64>,

    /// Order of service, in place of the one in the notation: fifo, lifo, priority, preemptive-priority,
    /// processor-sharing, shortest-remaining, cmu, gittins
    #[arg(long)]
    discipline: Option<Discipline>,

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

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1e-12..=1e12).contains(&value) => Ok(value),
        _ => Err("must be a positive number, from 1e-12 to 1e12".into()),
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to 1e6".into()),
    }
}

impl Options {
    fn station(&self) -> anyhow::Result<Station> {
        let mut notation = self.station.clone();
        notation.discipline = self.discipline.or(notation.discipline);
        if notation.servers.get() > MOST || notation.population.is_some_and(|population| population > MOST) {
            bail!("{notation} is too large to simulate; at most {MOST} servers or users can be");
        }
        let gap_s = match (notation.population, self.think_time, self.arrival_rate) {
            (Some(_), Some(think_s), _) => think_s,
            (None, _, Some(rate_per_s)) => 1.0 / rate_per_s,
            (Some(_), None, _) => {
                bail!("{notation} has a population of its own: give --think-time, not --arrival-rate")
            }
            (None, _, None) => bail!("{notation} is an open station: give --arrival-rate, not --think-time"),
        };
        let service_s = self.service_time.or_else(|| Some(1.0 / self.service_rate?));
        let law = |kind: kendall_station::Kind, mean_s, scv, option| -> anyhow::Result<Law> {
            kind.law(mean_s, scv).with_context(|| format!("see {option}"))
        };
        let gap = law(notation.arrivals, gap_s, self.arrival_scv, "--arrival-scv")?;
        let service_s = service_s.expect("the command line requires one of them");
        let service = law(notation.service, service_s, self.service_scv, "--service-scv")?;
        let station = notation.station(gap, service);
        station.validate()?;
        Ok(station)
    }
}

pub(crate) fn solve(options: &Options) -> anyhow::Result<ExitCode> {
    let station = options.station()?;
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
