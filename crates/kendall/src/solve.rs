//! `kendall solve`: a station, a named model, or a table of rows, asked on the command line.

mod batch;
mod class;
mod condition;
mod model;
mod run;
mod station;
mod written;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Args;
use kendall_report::Modelling;
use kendall_solve::{NoFormula, SimulationError, formula};
use kendall_station::{Notation, Station};

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
  kendall solve closed_mva D=0.05,0.03,0.08 Z=1 N=20
  kendall solve --models
  kendall solve --batch questions.csv > answers.csv

The exit status is 3 where a station is unstable, so that it has no steady state; with --batch it is 1 where a row has no
value.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A station in Kendall's notation, arrivals/service/servers/room/population/discipline (M/M/6, M/G/2/50,
    /// M/M/4/∞/20/PS), or the name of a model (see --models)
    #[arg(value_name = "STATION|MODEL", required_unless_present_any = ["batch", "models"])]
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

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(crate) fn solve(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.batch {
        options.refuse_station_options("--batch")?;
        return batch::answer(path);
    }
    let Some(question) = &options.question else {
        return model::list(options.json);
    };
    if let Ok(model) = kendall_solve::batch::model(question) {
        options.refuse_station_options(question)?;
        return model::tell(model, &options.inputs, options.json);
    }
    if !question.contains('/') {
        bail!(
            "{question:?} is neither a station such as M/M/6 nor a model; kendall solve --models lists the models"
        );
    }
    if let Some(input) = options.inputs.first() {
        bail!(
            "{input:?} is an input of a model, and {question} is a station: it has options, such as --arrival-rate"
        );
    }
    solve_station(&options.station.station(&question.parse::<Notation>()?)?, options)
}

impl Options {
    /// A model and a batch take all that they need as inputs.
    fn refuse_station_options(&self, question: &str) -> anyhow::Result<()> {
        let unused = self.station == StationOptions::default() && self.run == RunOptions::default();
        ensure!(
            unused,
            "{question} takes its inputs as key=value words or JSON, and no options of a station"
        );
        Ok(())
    }
}

fn solve_station(station: &Station, options: &Options) -> anyhow::Result<ExitCode> {
    let by_formula = formula(station);
    let by_simulation = options.run.simulate(station)?;
    let shortfall = by_simulation.as_ref().ok().and_then(|answer| options.run.shortfall(answer));
    let unstable = matches!(by_formula, Err(NoFormula::Unstable { .. }))
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
        print::answers(station, &by_formula, &by_simulation)?;
    }
    if let Some(shortfall) = shortfall {
        print::note(&format!("kendall: {shortfall}"));
    }
    Ok(ExitCode::from(if unstable { UNSTABLE } else { 0 }))
}
