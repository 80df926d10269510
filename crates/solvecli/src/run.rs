//! Options of a simulation: its length, its seed, and its trace of single customers.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, value_parser};
use kendall_simulation::{
    NetworkAnswer, SimulationError, StopRule, Traced, simulate, simulate_network, simulate_network_traced,
    simulate_traced,
};
use kendall_station::{Answer, Arrivals, Network, QUANTILES, Station};

/// The most customers of a simulation: hours of work.
const MOST_CUSTOMERS: u64 = 1_000_000_000_000;
/// The most runs, each of which is kept as some numbers.
const MOST_REPLICATIONS: u64 = 1_000_000;

/// How a simulation is run.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "The simulation")]
pub(crate) struct RunOptions {
    /// Seed of the simulation [default: 1]
    #[arg(long)]
    seed: Option<u64>,

    /// Simulate at most this many customers [default: two million, or a hundred times as many with --precision]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=MOST_CUSTOMERS))]
    customers: Option<u64>,

    /// Simulate until the 95 % interval of the mean response time is this narrow: 1%, or that of a quantile: p99=5%
    /// [default: 1%]
    #[arg(long, value_name = "[QUANTILE=]SHARE", value_parser = precision)]
    precision: Option<Precision>,

    /// Simulate this number of runs of --customers each that begin and end with an empty station, instead of the steady state
    #[arg(
        long,
        value_name = "N",
        requires = "customers",
        conflicts_with = "precision",
        value_parser = value_parser!(u64).range(1..=MOST_REPLICATIONS)
    )]
    replications: Option<u64>,

    /// Write the times and the outcome of each customer to a CSV file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write at most this many customers to the trace
    #[arg(
        long,
        value_name = "N",
        requires = "trace",
        value_parser = value_parser!(u64).range(1..),
        default_value_if("trace", clap::builder::ArgPredicate::IsPresent, "100000")
    )]
    trace_customers: Option<u64>,
}

/// How well what is to be known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Precision {
    /// One of [`QUANTILES`]; `None` is the mean.
    p: Option<f64>,
    /// Half the width of its interval over itself.
    relative_half_width: f64,
}

fn precision(text: &str) -> Result<Precision, String> {
    let (of, share) = match text.split_once('=') {
        Some((of, share)) => (of.trim(), share.trim()),
        None => ("mean", text.trim()),
    };
    let is_plain = |per_cent: &&str| per_cent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let per_cent = of.strip_prefix('p').filter(is_plain);
    let p = match per_cent.and_then(|per_cent| per_cent.parse::<f64>().ok()) {
        Some(per_cent) => Some(per_cent / 100.0),
        None if of == "mean" => None,
        None => return Err(format!("{of:?} is neither the mean nor a quantile such as p99")),
    };
    if !p.is_none_or(|p| QUANTILES.iter().any(|known| (known - p).abs() < 1e-12)) {
        let known = QUANTILES.map(quantile_name).join(", ");
        return Err(format!("{of} is not one of the quantiles of an answer: {known}"));
    }
    let number = match share.strip_suffix('%') {
        Some(per_cent) => per_cent.trim().parse::<f64>().map(|per_cent| per_cent / 100.0),
        None => share.parse(),
    };
    match number {
        Ok(share) if share > 0.0 && share <= 0.5 => Ok(Precision { p, relative_half_width: share }),
        _ => Err("must be a share such as 1% or 0.01, above zero and at most 50%".into()),
    }
}

/// The name of a quantile, such as p99.9.
fn quantile_name(p: f64) -> String {
    format!("p{}", (p * 1e6).round() / 1e4)
}

impl RunOptions {
    const PRECISION: Precision = Precision { p: None, relative_half_width: 0.01 };

    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    pub(crate) fn stop(&self) -> StopRule {
        // A requested precision may take longer.
        let patience = if self.precision.is_some() { 100 } else { 1 };
        let max_customers = self.customers.unwrap_or(patience * StopRule::MOST_CUSTOMERS);
        let Precision { p, relative_half_width } = self.precision.unwrap_or(Self::PRECISION);
        match (self.replications, p) {
            (Some(runs), _) => StopRule::Runs { customers: max_customers, runs },
            (None, Some(p)) => StopRule::Quantile { p, relative_half_width, max_customers },
            (None, None) => {
                StopRule::Steady { max_customers, relative_half_width: Some(relative_half_width) }
            }
        }
    }

    /// Likewise, but a number of customers without a precision means all of them.
    pub(crate) fn stop_after_all(&self) -> StopRule {
        match (self.customers, self.precision, self.replications) {
            (Some(customers), None, None) => StopRule::customers(customers),
            _ => self.stop(),
        }
    }

    /// Simulates a station, and writes the trace that is asked for.
    ///
    /// # Errors
    /// Fails where the trace cannot be written. That a station has no answer is not an error of the command.
    pub(crate) fn simulate(&self, station: &Station) -> anyhow::Result<Result<Answer, SimulationError>> {
        let classes = station.classes.iter().map(|class| class.name.clone()).collect();
        self.traced(classes, |sink| match sink {
            None => simulate(station, self.stop(), self.seed()),
            Some(sink) => simulate_traced(station, self.stop(), self.seed(), sink),
        })
    }

    /// Simulates a station, with conditions or a rate that changes if it has them.
    ///
    /// # Errors
    /// As [`simulate`](Self::simulate).
    pub(crate) fn simulate_any(&self, station: &Station) -> anyhow::Result<Result<Answer, SimulationError>> {
        if is_plain(station) {
            return self.simulate(station);
        }
        Ok(self.simulate_network(&Network::from(station))?.map(|answer| answer.overall))
    }

    /// A trace is of one simulation.
    ///
    /// # Errors
    /// Fails where one is asked for.
    pub(crate) fn refuse_trace(&self) -> anyhow::Result<()> {
        ensure!(self.trace.is_none(), "--trace needs one station without a range");
        Ok(())
    }

    /// Simulates a network likewise.
    ///
    /// # Errors
    /// As [`simulate`](Self::simulate).
    pub(crate) fn simulate_network(
        &self,
        network: &Network,
    ) -> anyhow::Result<Result<NetworkAnswer, SimulationError>> {
        let classes = network.classes.iter().map(|class| class.name.clone()).collect();
        self.traced(classes, |sink| match sink {
            None => simulate_network(network, self.stop(), self.seed()),
            Some(sink) => simulate_network_traced(network, self.stop(), self.seed(), sink),
        })
    }

    /// Runs with the trace that is asked for, if one is.
    fn traced<T>(
        &self,
        classes: Vec<String>,
        run: impl FnOnce(Option<&mut dyn FnMut(&Traced)>) -> T,
    ) -> anyhow::Result<T> {
        let (Some(path), Some(most)) = (&self.trace, self.trace_customers) else { return Ok(run(None)) };
        let cannot_write = || format!("cannot write {}", path.display());
        let mut trace = Trace::to(path, most, classes).with_context(cannot_write)?;
        let answer = run(Some(&mut |customer| trace.add(customer)));
        trace.end().with_context(cannot_write)?;
        Ok(answer)
    }

    /// What is wanting where the answer of a simulation is not as precise as was asked for.
    pub(crate) fn shortfall(&self, answer: &Answer) -> Option<String> {
        let Precision { p, relative_half_width: wanted } = self.precision?;
        let (name, estimate) = match p {
            None => ("mean response time".to_owned(), answer.response.mean_s),
            Some(p) => {
                let name = format!("{} of the response time", quantile_name(p));
                let Some(estimate) = answer.response.quantile(p) else {
                    return Some(format!("the {name} is not known; give more --customers"));
                };
                (name, estimate)
            }
        };
        let reached = estimate.half_width() / estimate.value;
        (reached > wanted).then(|| {
            format!(
                "the {name} is known to ±{:.2} % only, not to ±{} %; give more --customers",
                reached * 100.0,
                wanted * 100.0
            )
        })
    }
}

/// Whether the simulation of a single station covers all of its conditions.
pub(crate) fn is_plain(station: &Station) -> bool {
    station.conditions.are_none() && !matches!(station.arrivals, Arrivals::Varying(_))
}

/// A CSV file of customers.
struct Trace {
    writer: csv::Writer<File>,
    left: u64,
    classes: Vec<String>,
    fault: Option<csv::Error>,
}

impl Trace {
    const COLUMNS: [&'static str; 11] = [
        "run",
        "customer",
        "class",
        "arrival_s",
        "service_s",
        "started_s",
        "departure_s",
        "waiting_s",
        "response_s",
        "server",
        "outcome",
    ];

    fn to(path: &Path, most: u64, classes: Vec<String>) -> anyhow::Result<Self> {
        let mut writer = csv::Writer::from_path(path)?;
        writer.write_record(Self::COLUMNS)?;
        Ok(Self { writer, left: most, classes, fault: None })
    }

    fn add(&mut self, customer: &Traced) {
        if self.left == 0 || self.fault.is_some() {
            return;
        }
        self.left -= 1;
        let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
        let record = [
            customer.run.to_string(),
            customer.index.to_string(),
            self.classes.get(customer.class).cloned().unwrap_or_default(),
            customer.arrival_s.to_string(),
            customer.service_s.to_string(),
            number(customer.started_s),
            customer.departure_s.to_string(),
            customer.waiting_s.to_string(),
            customer.response_s().to_string(),
            customer.server.map_or_else(String::new, |server| server.to_string()),
            customer.fate.name().to_owned(),
        ];
        self.fault = self.writer.write_record(record).err();
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.fault.map_or(Ok(()), Err)?;
        Ok(self.writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use kendall_station::{Law, Servers};

    use super::*;

    #[test]
    fn a_precision_is_of_the_mean_or_of_a_quantile() {
        let of = |p, relative_half_width| Ok(Precision { p, relative_half_width });
        assert_eq!(precision("1%"), of(None, 0.01));
        assert_eq!(precision("0.25"), of(None, 0.25));
        assert_eq!(precision("p99 = 5 %"), of(Some(0.99), 0.05));
        assert_eq!(precision("mean=2%"), of(None, 0.02));
        for text in [
            "", "0", "-1%", "60%", "p0=1%", "p97=1%", "p100=1%", "p101=1%", "p200=1%", "pfoo=1%", "pnan=1%",
            "p1e1=1%", "p=1%", "q=1%", "nan",
        ] {
            assert!(precision(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_precision_that_is_missed_is_reported_and_also_where_there_are_too_few_customers_for_the_quantile() {
        let law = Law::Exponential { mean_s: 0.1 };
        let station = Station::new(Arrivals::poisson(5.0), law, Servers::MIN);
        let shortfall = |text| {
            let precision = Some(precision(text).unwrap());
            let run = RunOptions { customers: Some(10_000), precision, ..RunOptions::default() };
            run.shortfall(&run.simulate(&station).unwrap().unwrap())
        };
        assert_eq!(shortfall("50%"), None);
        assert!(shortfall("0.01%").unwrap().contains("mean response time is known to ±"));
        let unknown = "the p99.9 of the response time is not known; give more --customers";
        assert_eq!(shortfall("p99.9=50%").as_deref(), Some(unknown));
    }
}
