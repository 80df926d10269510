//! `kendall run`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use clap::{Args, value_parser};
use kendall_lab::{Ended, Lab};
use kendall_report::junit::Suite;
use kendall_solve::expect::Verdict;

use crate::export::Export;
use crate::systems::SYSTEMS;
use crate::{INTERRUPTED, NOT_AS_EXPECTED, export, print, push, report};

#[derive(Args)]
pub(crate) struct Options {
    /// The experiment file
    #[arg(required_unless_present = "resume")]
    experiment: Option<PathBuf>,

    /// Where results go: in a folder named after the experiment, in one named after the instant
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,

    /// Go on with an interrupted run, given its folder; what is done is kept
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["experiment", "seed"])]
    resume: Option<PathBuf>,

    /// Seed of all random numbers; drawn and recorded if neither this nor the file names one
    #[arg(long, value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Sample the stacks of the server while it is loaded; the report shows in which functions its time goes
    #[arg(long, conflicts_with = "resume")]
    profile: bool,

    /// Write the results in a format of other tools as well, which may be given several times: csv, json, parquet, hdr or
    /// openmetrics, or with a place as in csv=requests.csv
    #[arg(long, value_name = "FORMAT[=PATH]")]
    export: Vec<Export>,

    /// Write what was expected as JUnit XML: a test case an expectation
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    push: push::Options,

    /// Open the report in a browser when done
    #[arg(long)]
    open: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let program = env::current_exe().context("cannot find the program itself, to serve with")?;
    let mut lab = match (&options.resume, &options.experiment) {
        (Some(folder), _) => Lab::resume(folder, SYSTEMS)?,
        (None, Some(file)) => {
            let mut experiment = kendall_lab::read(file, SYSTEMS)?;
            experiment.seed = options.seed.or(experiment.seed);
            if options.profile {
                experiment.probing = experiment.probing.with_profile();
            }
            Lab::create(experiment, &options.results)?
        }
        (None, None) => unreachable!("the command line requires one of them"),
    };
    print::note(&format!("Results go to {}", lab.folder().display()));
    let cancel = crate::load::ctrl_c()?;
    let pushing = options.push.start(&lab)?;
    let ended = lab.run(&program, &cancel);
    pushing.end();
    let ended = ended?;
    if ended == Ended::Interrupted {
        print::note(&format!("Interrupted; go on with: kendall run --resume {}", lab.folder().display()));
        if lab.trials_done() == 0 {
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let (page, report) = report::show(lab.folder(), report::Form::of(options.json), &[])?;
    export::of_run(lab.folder(), &report, &options.export)?;
    if let Some(file) = &options.junit {
        export::junit(file, &Suite::of(&report))?;
    }
    // Over a link, this process has moved to one end of it, from where no browser reaches the screen.
    if options.open && !lab.crosses_link() {
        open(&page);
    }
    Ok(ExitCode::from(match (ended, report.verdict()) {
        (Ended::Interrupted, _) => INTERRUPTED,
        (Ended::Complete, Some(Verdict::Failed)) => NOT_AS_EXPECTED,
        (Ended::Complete, _) => 0,
    }))
}

/// Shows a page in the user's browser; its path has been printed, so it does not matter if that fails.
fn open(page: &std::path::Path) {
    let graphical = env::var_os("DISPLAY").is_some() || env::var_os("WAYLAND_DISPLAY").is_some();
    if graphical || cfg!(target_os = "macos") {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(program);
        let quiet = command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(quiet.spawn());
    }
}
