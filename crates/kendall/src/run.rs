//! `kendall run`.

use std::env;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Args, value_parser};
use kendall_agents::{Fleet, FleetOptions};
use kendall_lab::{Lab, RunEnd};
use kendall_probe::wait_for_end;
use kendall_report::export::suite::Suite;
use kendall_system::COMMAND;

use crate::export::Export;
use crate::gate::Gate;
use crate::interrupt::CtrlC;
use crate::open::open;
use crate::push::PushOptions;
use crate::systems::SYSTEMS;
use crate::web::Beside;
use crate::{INTERRUPTED, export, print, report};

#[derive(Args)]
pub(crate) struct RunOptions {
    /// The experiment file
    #[arg(required_unless_present = "resume")]
    experiment: Option<PathBuf>,

    /// The folder for results: each run gets EXPERIMENT/INSTANT in it
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    /// Continue an interrupted run, given its folder; finished trials are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "seed"])]
    resume: Option<PathBuf>,

    /// Continue also a run that another user started, or whose experiment has changed since. Read it first: an experiment can start any
    /// program
    #[arg(long, requires = "resume")]
    trust: bool,

    /// Seed of all random numbers; drawn and recorded if neither this nor the file names one
    #[arg(long, value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Sample the stacks of the server while it is loaded; the report shows the functions that use its time
    #[arg(long, conflicts_with = "resume")]
    profile: bool,

    /// Keep the processors of this machine from sleeping meanwhile, which takes root, as keep-awake = true in the file
    #[arg(long, conflicts_with = "resume")]
    keep_awake: bool,

    /// Also write the results in the format of other tools; may be given several times: csv, json, parquet, hdr or openmetrics, or with
    /// a path as in csv=requests.csv
    #[arg(long, value_name = "FORMAT[=PATH]")]
    export: Vec<Export>,

    /// Write the expectations as JUnit XML, one test case for each
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    gate: Gate,

    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    push: PushOptions,

    /// Open the report in a browser when done
    #[arg(long)]
    open: bool,

    /// Show the run live in a browser, and serve the page until Ctrl-C, also after the end of the run
    #[arg(long)]
    web: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let program = env::current_exe().context("cannot find the kendall program, to serve with")?;
    options.push.targets()?;
    let mut lab = match (&options.resume, &options.experiment) {
        (Some(folder), _) => {
            let lab = Lab::resume(folder, SYSTEMS)?;
            ensure!(options.trust || lab.is_ours(), "{}", foreign(&lab));
            lab
        }
        (None, Some(file)) => {
            let mut experiment = kendall_experiment::read(file, SYSTEMS)?;
            experiment.seed = options.seed.or(experiment.seed);
            experiment.keep_awake |= options.keep_awake;
            if options.profile {
                experiment.probing = experiment.probing.with_profile();
            }
            Lab::create(experiment, &options.results)?
        }
        (None, None) => unreachable!("the command line requires one of them"),
    };
    lab.send_from(Fleet::gather(&options.fleet)?)?;
    print::note(&format!("Results go to {}", lab.folder().display()));
    let letters = print::letters(&lab.experiment().letters());
    letters.lines().for_each(print::note);
    // Before the run moves to the end of a link.
    let beside = options.web.then(|| Beside::start(&program, lab.folder())).transpose()?;
    let ctrl_c = CtrlC::listen()?;
    let pushing = options.push.of_run(&lab)?;
    let ended = lab.run(&program, &ctrl_c.flag);
    pushing.end();
    let ended = ended?;
    if ended == RunEnd::Interrupted {
        print::note(&format!("Interrupted; continue with: kendall run --resume {}", lab.folder().display()));
        if lab.trials_done() == 0 {
            serve_on(beside.as_ref(), &ctrl_c)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let (page, report) = report::show(lab.folder(), print::Form::of(options.json), &[])?;
    export::of_run(lab.folder(), &report, &options.export)?;
    if let Some(file) = &options.junit {
        let suite = Suite { allows_undecided: options.gate.allows_undecided(), ..Suite::of(&report) };
        export::junit(file, &suite)?;
    }
    // Over a link, this process has moved to one end of it, from where no browser reaches the screen.
    if options.open && !lab.crosses_link() {
        open(&page);
    }
    serve_on(beside.as_ref(), &ctrl_c)?;
    Ok(ExitCode::from(match (ended, report.verdict()) {
        (RunEnd::Interrupted, _) => INTERRUPTED,
        (RunEnd::Complete, verdict) => options.gate.status(verdict, true),
    }))
}

/// The reason why the run of another person does not go on: with what it would start.
fn foreign(lab: &Lab) -> String {
    let starts = lab.experiment().variables.iter().filter(|variable| variable.parameter.name == COMMAND);
    let commands: Vec<String> =
        starts.flat_map(|variable| &variable.values).map(|command| format!("\n  {command}")).collect();
    let what = if commands.is_empty() {
        format!("It starts kendall serve {}.", lab.experiment().system.name)
    } else {
        format!("It would start:{}", commands.concat())
    };
    format!(
        "{folder} was not started by this user on this machine, or its experiment has changed since.\n{what}\nRead \
         {folder}/experiment.toml; to continue it: kendall run --resume {folder} --trust",
        folder = lab.folder().display()
    )
}

/// Leaves the page of a run open until Ctrl-C. A run that was stopped may have been so from its page, so
/// that signal does not count; a second one ends the program in any case.
fn serve_on(beside: Option<&Beside>, ctrl_c: &CtrlC) -> anyhow::Result<()> {
    let Some(beside) = beside else { return Ok(()) };
    // Read before the note: who reads that may press at once.
    let stop = Some(ctrl_c.as_fd()).filter(|_| !ctrl_c.is_pressed());
    print::note("The page stays open; Ctrl-C ends it.");
    wait_for_end(beside.pid(), stop, None).context("cannot wait for the end of the page")
}
