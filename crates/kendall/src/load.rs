//! `kendall load`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use kendall_lab::{LOAD, Load, Schedule, Settings};
use kendall_load::{Progress, RunSummary};
use kendall_record::{Manifest, Outcome, RequestRow, TrialWriter, write_json};
use kendall_solve::{ClientSide, Trial, client_side};
use serde::Serialize;

use crate::options::{options, settings};
use crate::target::Target;
use crate::{INTERRUPTED, print};

#[derive(Args)]
pub(crate) struct Options {
    /// The server and what to ask it, as a URL: reverse://127.0.0.1:5003?difficulty=300000&repeat-percent=20
    #[arg(value_name = "URL")]
    target: String,

    #[command(flatten)]
    load: LoadOptions,

    /// Seed of requests and arrivals; drawn and printed if left out
    #[arg(long)]
    seed: Option<u64>,

    /// Keep the record in this new folder: requests.parquet, latency.hlog, answer.json, manifest.json
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The parameters of a load as options, from the same table as in experiment files.
struct LoadOptions(Settings);

impl Args for LoadOptions {
    fn augment_args(command: Command) -> Command {
        command.args(options(LOAD))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LoadOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(settings(LOAD, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What a load run found.
#[derive(Serialize)]
pub(crate) struct Found {
    pub(crate) target: String,
    pub(crate) seed: u64,
    pub(crate) offered_per_s: Option<f64>,
    pub(crate) run: RunSummary,
    /// What the clients saw, or why there is nothing.
    pub(crate) clients: Result<ClientSide, String>,
}

pub(crate) fn load(options: &Options) -> anyhow::Result<ExitCode> {
    let target = Target::read(&options.target)?;
    let settings = &options.load.0;
    let load = Load::new(settings, &env::current_dir()?)
        .map_err(|(name, why)| anyhow::anyhow!("--{name}: {why}"))?;
    let capacity_per_s = settings.number("capacity");
    if matches!(load.schedule, Schedule::Share(..)) && capacity_per_s.is_none() {
        bail!("a rate in per cent needs --capacity, the requests per second that 100 % stands for");
    }
    let seed = options.seed.unwrap_or_else(kendall_lab::drawn_seed);
    let workload =
        (target.system.load)(target.address, &target.workload, seed).map_err(anyhow::Error::msg)?;
    let plan = load.plan(capacity_per_s, seed);
    if let Some(folder) = options.record.as_deref().filter(|folder| folder.exists()) {
        bail!("{} is there already; name a new folder for the record", folder.display());
    }
    let mut writer = options.record.as_deref().map(TrialWriter::create).transpose()?;
    let mut failed = None;
    let mut rows: Vec<RequestRow> = Vec::new();
    let mut sink = |row: RequestRow| {
        if let (Some(writer), None) = (&mut writer, &failed) {
            failed = writer.append(&row).err();
        }
        rows.push(row);
    };
    let cancel = ctrl_c()?;
    let run = kendall_load::run(&plan, &*workload, &mut sink, &Progress::default(), &cancel)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if let Some(writer) = writer {
        writer.finish(&[], run.start_ns)?;
    }
    let found = Found {
        target: options.target.clone(),
        seed,
        offered_per_s: plan.arrivals.rate_per_s(),
        run,
        clients: client_side(&[Trial { rows: &rows, warmup_ns: load.warmup.as_nanos() as i64 }])
            .map_err(|why| why.to_string()),
    };
    if let Some(folder) = &options.record {
        Manifest::here(&options.target, seed).write(folder)?;
        write_json(&folder.join("answer.json"), &found)?;
    }
    if options.json {
        print::json(&found)?
    } else {
        print::found(&found)?
    }
    Ok(status(&found, cancel.load(Ordering::Relaxed)))
}

/// Success where at least one request was answered.
fn status(found: &Found, interrupted: bool) -> ExitCode {
    match (interrupted, found.run.count(Outcome::Answered)) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::FAILURE,
        (false, _) => ExitCode::SUCCESS,
    }
}

/// A flag that Ctrl-C sets; pressed twice, it ends the program at once.
pub(crate) fn ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(flag)
}
