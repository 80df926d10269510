//! The command `kendall solve`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use kendall_stats::quantity::seconds;

use crate::figure::Figure;
use crate::run::RunOptions;
use crate::station::StationOptions;

/// What to type.
const EXAMPLES: &str = "\
Examples:
  kendall solve M/M/6 --arrival-rate 20 --service-rate 4.2
  kendall solve M/G/2/50 --arrival-rate 20 --service-time 0.08 --service-scv 3
  kendall solve M/M/4/∞/200 --think-time 5 --service-time 0.2
  kendall solve M/M/3 --arrival-rate 20 --service-time 0.1 --delay 30ms
  kendall solve M/M/2/PRP --arrival-rate 12 --service-time 0.1 \\
      --class name=urgent,share=0.2,weight=10 --class name=other,share=0.8
  kendall solve M/M/1 M/D/1 M/M/1/PS --rho 0.1..0.95 --figure lecture.pdf --style slides
  kendall solve M/M/1 M/M/2 --lambda 8 --mu 10,5
  kendall solve 'M/M/1 -> M/M/2' --arrival-rate 8 --service-rate 10,5
  kendall solve G/G/3 --arrivals instants.txt --services seconds.txt
  kendall solve M/M/3/10 --arrival-rate 30 --service-time 0.1 --patience 0.5 --retry after=1/2/4
  kendall solve examples/networks/web-and-database.toml
  kendall solve closed_mva D=0.05,0.03,0.08 Z=1 N=20
  kendall solve --models
  kendall solve --batch questions.csv > answers.csv

The exit status is 3 if a station is unstable, so that there is no steady state; with --batch it is 1 if a row has no value.";

/// The arguments of `kendall solve`.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Solve {
    /// A station in Kendall's notation, arrivals/service/servers/room/population/discipline (M/M/6, M/G/2/50,
    /// M/M/4/∞/20/PS), several of them, or several one after the other ('M/M/1 -> M/M/2'); a network of stations described
    /// in a file; or the name of a model (see --models)
    #[arg(value_name = "STATION|FILE.toml|MODEL", required_unless_present_any = ["batch", "models"])]
    pub(crate) question: Option<String>,

    /// Further stations; or the inputs of a model, as key=value words or as one JSON object: lam=20 mu=4.2 m=6
    #[arg(value_name = "STATION|INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Answer the rows model,inputs,quantity of a CSV file, or of standard input where FILE is -, and write them back
    /// with the columns value and reason
    #[arg(long, value_name = "FILE", conflicts_with_all = ["question", "models", "json"])]
    pub(crate) batch: Option<PathBuf>,

    /// List the models with their inputs and quantities
    #[arg(long, conflicts_with = "question")]
    pub(crate) models: bool,

    #[command(flatten)]
    pub(crate) station: StationOptions,

    /// Time that each request spends outside of the station, such as 20ms on a link there and back: responses take that much longer,
    /// and users of a closed population send that much later
    #[arg(long, value_name = "DURATION", value_parser = seconds, conflicts_with_all = ["batch", "models", "bounds", "trace"], help_heading = "The station")]
    pub(crate) delay: Option<f64>,

    #[command(flatten)]
    pub(crate) run: RunOptions,

    /// Use only this method
    #[arg(long, value_name = "METHOD", help_heading = "Output")]
    pub(crate) only: Option<AnswerMethod>,

    /// Show the textbooks' approximations of the wait, with the simulation for comparison
    #[arg(long, help_heading = "Output")]
    pub(crate) approximations: bool,

    /// Show the bounds of a closed population
    #[arg(long, help_heading = "Output")]
    pub(crate) bounds: bool,

    #[command(flatten)]
    pub(crate) figure: Figure,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// A method of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerMethod {
    /// Queueing theory
    Formula,
    /// The simulation
    Simulation,
}

impl Solve {
    pub(crate) fn asks(&self, way: AnswerMethod) -> bool {
        self.only.is_none_or(|only| only == way)
    }

    /// A model and a batch take everything as inputs, and give numbers.
    pub(crate) fn refuse_station_options(&self, question: &str) -> anyhow::Result<()> {
        ensure!(!self.figure.is_asked(), "--figure draws stations and networks, not {question}");
        let unused = self.station == StationOptions::default()
            && self.run == RunOptions::default()
            && self.delay.is_none();
        ensure!(
            unused,
            "{question} takes its inputs as key=value arguments or JSON, not as options of a station"
        );
        Ok(())
    }
}
