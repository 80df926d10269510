//! The options that make a station out of its notation, for every command that takes one.

use anyhow::{Context, bail};
use clap::Args;
use kendall_station::{Discipline, Kind, Law, Notation, Station};

/// More servers or users than this do not fit into memory and patience.
const MOST: u32 = 1_000_000;

/// What Kendall's notation leaves open. A command takes the notation itself as its own argument.
#[derive(Args)]
#[command(next_help_heading = "The station")]
pub(crate) struct StationOptions {
    /// Requests per second
    #[arg(long, value_name = "PER_S", allow_negative_numbers = true, value_parser = positive)]
    arrival_rate: Option<f64>,

    /// Mean think time of each user, in seconds, where the notation names a population
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = positive, conflicts_with = "arrival_rate")]
    think_time: Option<f64>,

    /// Requests per second that one busy server completes
    #[arg(long, value_name = "PER_S", allow_negative_numbers = true, value_parser = positive)]
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

impl StationOptions {
    /// The station that the notation and the options describe.
    ///
    /// # Errors
    /// Says which option is missing, or what is impossible about the station.
    pub(crate) fn station(&self, notation: &Notation) -> anyhow::Result<Station> {
        let mut notation = notation.clone();
        notation.discipline = self.discipline.or(notation.discipline);
        if notation.servers.get() > MOST || notation.population.is_some_and(|population| population > MOST) {
            bail!("{notation} is too large to simulate; at most {MOST} servers or users can be");
        }
        let gap = law(notation.arrivals, self.gap_s(&notation)?, self.arrival_scv, "--arrival-scv")?;
        let service = law(notation.service, self.service_s(&notation)?, self.service_scv, "--service-scv")?;
        let station = notation.station(gap, service);
        station.validate()?;
        Ok(station)
    }

    /// The mean gap between arrivals, or the mean think time of a population.
    fn gap_s(&self, notation: &Notation) -> anyhow::Result<f64> {
        match (notation.population, self.think_time, self.arrival_rate) {
            (Some(_), Some(think_s), _) => Ok(think_s),
            (None, _, Some(rate_per_s)) => Ok(1.0 / rate_per_s),
            (Some(_), None, Some(_)) => {
                bail!("{notation} has a population of its own: give --think-time, not --arrival-rate")
            }
            (Some(_), None, None) => bail!("{notation} has a population: give its --think-time"),
            (None, Some(_), None) => {
                bail!("{notation} is an open station: give --arrival-rate, not --think-time")
            }
            (None, None, None) => bail!("{notation} is an open station: give its --arrival-rate"),
        }
    }

    /// The mean service time, where it is given.
    pub(crate) fn service_mean_s(&self) -> Option<f64> {
        self.service_time.or_else(|| Some(1.0 / self.service_rate?))
    }

    fn service_s(&self, notation: &Notation) -> anyhow::Result<f64> {
        self.service_mean_s()
            .with_context(|| format!("how fast does {notation} serve? Give --service-rate or --service-time"))
    }
}

fn law(kind: Kind, mean_s: f64, scv: Option<f64>, option: &str) -> anyhow::Result<Law> {
    kind.law(mean_s, scv).with_context(|| format!("see {option}"))
}
