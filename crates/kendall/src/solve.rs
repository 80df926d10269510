//! `kendall solve`: a station, a network, a named model, or a table of rows, asked on the command line.

mod approximation;
mod batch;
mod class;
mod condition;
mod model;
mod run;
mod scenario;
mod station;
mod table;
mod written;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use kendall_analysis::Modelling;
use kendall_report::picture;
use kendall_simulation::{NetworkAnswer, SimulationError};
use kendall_station::{Answer, Arrivals, Network, Notation, Station};
use kendall_stats::number::significant;
use kendall_theory::closed::Bounds;
use kendall_theory::{NoFormula, closed_network, formula, sweep};

use crate::figure::Figure;
use crate::{UNSTABLE, print};

use run::RunOptions;
pub(crate) use station::StationOptions;

/// What to type.
const EXAMPLES: &str = "\
Examples:
  kendall solve M/M/6 --arrival-rate 20 --service-rate 4.2
  kendall solve M/G/2/50 --arrival-rate 20 --service-time 0.08 --service-scv 3
  kendall solve M/M/4/∞/200 --think-time 5 --service-time 0.2
  kendall solve M/M/2/PRP --arrival-rate 12 --service-time 0.1 \\
      --class name=urgent,share=0.2,weight=10 --class name=other,share=0.8
  kendall solve G/G/3 --arrivals instants.txt --services seconds.txt
  kendall solve M/M/3/10 --arrival-rate 30 --service-time 0.1 --patience 0.5 --retry after=1/2/4
  kendall solve examples/networks/web-and-database.toml
  kendall solve closed_mva D=0.05,0.03,0.08 Z=1 N=20
  kendall solve --models
  kendall solve --batch questions.csv > answers.csv

The exit status is 3 where a station is unstable, so that it has no steady state; with --batch it is 1 where a row has no
value.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A station in Kendall's notation, arrivals/service/servers/room/population/discipline (M/M/6, M/G/2/50,
    /// M/M/4/∞/20/PS); a network of stations described in a file; or the name of a model (see --models)
    #[arg(value_name = "STATION|FILE.toml|MODEL", required_unless_present_any = ["batch", "models"])]
    question: Option<String>,

    /// The inputs of a model, as key=value words or as one JSON object: lam=20 mu=4.2 m=6
    #[arg(value_name = "INPUT")]
    inputs: Vec<String>,

    /// Answer the rows model,inputs,quantity of a CSV file, or of standard input where FILE is -, and write them back
    /// with the columns value and reason
    #[arg(long, value_name = "FILE", conflicts_with_all = ["question", "models", "json"])]
    batch: Option<PathBuf>,

    /// List the models, what they take and what they tell
    #[arg(long, conflicts_with = "question")]
    models: bool,

    #[command(flatten)]
    station: StationOptions,

    #[command(flatten)]
    run: RunOptions,

    /// Ask one way only
    #[arg(long, value_name = "WAY", help_heading = "Output")]
    only: Option<Asked>,

    /// Show what each of the textbooks' approximations says of the wait, beside the simulation
    #[arg(long, help_heading = "Output")]
    approximations: bool,

    /// Show the bounds of a closed population
    #[arg(long, help_heading = "Output")]
    bounds: bool,

    #[command(flatten)]
    figure: Figure,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// A way of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// Queueing theory
    Formula,
    /// The simulation
    Simulation,
}

pub(crate) fn solve(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.batch {
        options.refuse_station_options("--batch")?;
        return batch::answer(path);
    }
    let Some(question) = &options.question else {
        return model::list(options.json);
    };
    if let Ok(model) = kendall_theory::batch::model(question) {
        options.refuse_station_options(question)?;
        return model::tell(model, &options.inputs, options.json);
    }
    if Path::new(question).extension().is_some_and(|extension| extension == "toml") {
        ensure!(
            self_contained(options),
            "{question} describes its stations itself: the options of a station are for those in Kendall's notation"
        );
        return scenario::solve(Path::new(question), options);
    }
    if !question.contains('/') {
        bail!(
            "{question:?} is neither a station such as M/M/6, nor a file of a network (.toml), nor a model; kendall solve \
             --models lists the models"
        );
    }
    if let Some(input) = options.inputs.first() {
        bail!(
            "{input:?} is an input of a model, and {question} is a station: it has options, such as --arrival-rate"
        );
    }
    let notation: Notation = question.parse().with_context(|| format!("{question:?} is not a station"))?;
    let station = options.station.station(&notation)?;
    if options.station.needs_no_law(&notation) {
        print::note(
            "No law of service is given. Under processor sharing no mean depends on it (insensitivity); the simulation uses log-normal \
             service times with a coefficient of variation of 1, and its quantiles hold for these only",
        );
    }
    solve_station(&station, options)
}

impl Options {
    fn asks(&self, way: Asked) -> bool {
        self.only.is_none_or(|only| only == way)
    }

    /// A model and a batch take all that they need as inputs, and tell numbers.
    fn refuse_station_options(&self, question: &str) -> anyhow::Result<()> {
        ensure!(!self.figure.is_asked(), "--figure draws stations and networks, and not {question}");
        let unused = self.station == StationOptions::default() && self.run == RunOptions::default();
        ensure!(
            unused,
            "{question} takes its inputs as key=value words or JSON, and no options of a station"
        );
        Ok(())
    }
}

/// Whether nothing was said of a station or a model beside a file.
fn self_contained(options: &Options) -> bool {
    let none = options.station == StationOptions::default() && options.inputs.is_empty();
    none && !options.approximations
}

fn solve_station(station: &Station, options: &Options) -> anyhow::Result<ExitCode> {
    let by_formula = options.asks(Asked::Formula).then(|| formula(station));
    let simulated =
        options.asks(Asked::Simulation).then(|| Simulated::of(station, &options.run)).transpose()?;
    let unstable =
        matches!(by_formula, Some(Err(NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. })))
            || matches!(simulated, Some(Simulated { overall: Err(SimulationError::Unstable { .. }), .. }));
    let (by_simulation, befallen) = simulated.map_or((None, None), |it| (Some(it.overall), it.befallen));
    let shortfall = by_simulation.iter().flatten().find_map(|answer| options.run.shortfall(answer));
    let approximations =
        options.approximations.then(|| kendall_theory::approximations(station)).transpose()?;
    let bounds = options.bounds.then(|| bounds(station)).transpose()?;
    let (by_formula, by_simulation) = (by_formula.map(Modelling::from), by_simulation.map(Modelling::from));
    options.figure.draw(|| {
        let [formula, simulation] = [&by_formula, &by_simulation].map(|way| way.as_ref()?.answer());
        picture::station(station.to_string(), sweep(station).as_ref(), formula, simulation)
    })?;
    if options.json {
        print::json(&serde_json::json!({
            "station": station,
            "notation": station.to_string(),
            "offered_utilisation": station.offered_utilisation(),
            "stable_below_per_s": stable_below_per_s(station),
            "formula": by_formula,
            "simulation": by_simulation,
            "conditions": befallen,
            "approximations": approximations,
            "bounds": bounds.as_ref().map(scenario::bounds_json),
        }))?;
    } else {
        let mut lines = table::station(station, by_formula.as_ref(), by_simulation.as_ref());
        lines.extend(befallen.iter().flat_map(table::befallen));
        lines.extend(stable_below(station).filter(|_| unstable));
        lines.push(String::new());
        if let Some(all) = &approximations {
            let simulated =
                by_simulation.as_ref().and_then(Modelling::answer).map(|answer| answer.waiting.mean_s);
            lines.extend(approximation::rows(all, simulated));
            lines.push(String::new());
        }
        if let Some(bounds) = &bounds {
            lines.extend(table::bounds(bounds));
            lines.push(String::new());
        }
        lines.extend(table::sources(by_formula.as_ref(), by_simulation.as_ref()));
        print::out(&(lines.join("\n") + "\n"))?;
    }
    if let Some(shortfall) = shortfall {
        print::note(&format!("kendall: {shortfall}"));
    }
    Ok(status(unstable))
}

/// The arrival rate at which utilisation reaches 100 %, for an open station that takes in all that come.
fn stable_below_per_s(station: &Station) -> Option<f64> {
    let open = station.capacity.is_none() && !matches!(station.arrivals, Arrivals::Closed { .. });
    let (rate_per_s, utilisation) = (station.arrivals.rate_per_s()?, station.offered_utilisation()?);
    Some(rate_per_s / utilisation).filter(|rate| open && rate.is_finite())
}

fn stable_below(station: &Station) -> Option<String> {
    let most = significant(stable_below_per_s(station)?, 4);
    Some(format!("unstable at this rate; stable below {most}/s, where utilisation reaches 100 %"))
}

/// What the simulation says of a station, and what befell its customers and servers where there are conditions.
struct Simulated {
    overall: Result<Answer, SimulationError>,
    befallen: Option<NetworkAnswer>,
}

impl Simulated {
    fn of(station: &Station, run: &RunOptions) -> anyhow::Result<Self> {
        if station.conditions.are_none() && !matches!(station.arrivals, Arrivals::Varying(_)) {
            return Ok(Self { overall: run.simulate(station)?, befallen: None });
        }
        Ok(match run.simulate_network(&Network::from(station))? {
            Ok(answer) => Self { overall: Ok(answer.overall.clone()), befallen: Some(answer) },
            Err(why) => Self { overall: Err(why), befallen: None },
        })
    }
}

/// What holds of a closed population without solving it.
fn bounds(station: &Station) -> anyhow::Result<Bounds> {
    let users = closed_network(&Network::from(station))
        .context("--bounds are of a closed population, as in M/M/4/∞/20")?;
    Ok(users.bounds()?)
}

fn status(unstable: bool) -> ExitCode {
    ExitCode::from(if unstable { UNSTABLE } else { 0 })
}
