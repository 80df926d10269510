//! `kendall load`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use kendall_lab::{LOAD, Load, Parameter, Schedule, Settings, Value};
use kendall_load::{Progress, RunSummary};
use kendall_record::{Outcome, RequestRow, TrialWriter};
use kendall_solve::{ClientSide, NotMeasured, Trial, measured};
use kendall_station::{Answer, Estimate, Servers, Summary};
use serde::Serialize;

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

    /// Keep the record, requests.parquet and latency.hlog, in this folder
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
        let option = |parameter: &'static Parameter| {
            let default =
                parameter.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
            let read = move |text: &str| parameter.kind.read(text);
            let arg = Arg::new(parameter.name).long(parameter.name).value_name("VALUE").value_parser(read);
            arg.help(format!("{}{default}", sentence(parameter.help)))
        };
        command.args(LOAD.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LoadOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Settings::defaults(LOAD);
        for parameter in LOAD {
            if let Some(value) = matches.get_one::<Value>(parameter.name) {
                settings.set(parameter.name, value.clone());
            }
        }
        Ok(Self(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// With a capital, as the other options' help has it.
fn sentence(help: &str) -> String {
    let mut letters = help.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a load run found.
#[derive(Serialize)]
pub(crate) struct Found {
    pub(crate) target: String,
    pub(crate) seed: u64,
    pub(crate) offered_per_s: Option<f64>,
    pub(crate) run: RunSummary,
    /// What the clients saw; `None` where nothing was answered.
    pub(crate) clients: Option<Seen>,
}

/// What the clients saw.
#[derive(Serialize)]
pub(crate) struct Seen {
    pub(crate) response: Summary,
    pub(crate) throughput_per_s: Estimate,
    pub(crate) in_system: Estimate,
    pub(crate) lost: Estimate,
}

impl From<ClientSide> for Seen {
    fn from(side: ClientSide) -> Self {
        let ClientSide { response, throughput_per_s, in_system, lost } = side;
        Self { response, throughput_per_s, in_system, lost }
    }
}

impl From<Answer> for Seen {
    fn from(answer: Answer) -> Self {
        let Answer { response, throughput_per_s, in_system, lost, .. } = answer;
        Self { response, throughput_per_s, in_system, lost }
    }
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
        clients: seen(&rows, &load, &workload.classes()),
    };
    if options.json {
        print::json(&found)?
    } else {
        print::found(&found)
    }
    Ok(status(&found, cancel.load(Ordering::Relaxed)))
}

fn seen(rows: &[RequestRow], load: &Load, classes: &[String]) -> Option<Seen> {
    let trial = Trial { rows, warmup_ns: load.warmup.as_nanos() as i64 };
    match measured(&[trial], Servers::MIN, classes) {
        Ok(answer) => Some(answer.into()),
        Err(NotMeasured::NoStamps(side)) => Some((*side).into()),
        Err(NotMeasured::Empty { .. } | NotMeasured::NothingAnswered { .. }) => None,
    }
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
