//! `kendall load`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use kendall_lab::{LOAD, Load, Schedule, Settings};
use kendall_load::{Progress, RunSummary};
use kendall_record::{Manifest, Outcome, RequestRow, TrialWriter, read_json, write_json};
use kendall_solve::{ClientSide, Score, Trial, client_side};
use serde::{Deserialize, Serialize};

use crate::options::{options, settings};
use crate::report::Form;
use crate::target::{Asked, Target};
use crate::{INTERRUPTED, print};

#[derive(Args)]
pub(crate) struct Options {
    /// The server and what to ask it, as a URL: http://127.0.0.1:8080/path, or a system of kendall's with parameters,
    /// reverse://127.0.0.1:5003?difficulty=300000&repeat-percent=20
    #[arg(value_name = "URL")]
    target: String,

    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    load: LoadOptions,

    /// Seed of requests and arrivals; drawn by chance if left out, and printed with the command that repeats the run
    #[arg(long)]
    seed: Option<u64>,

    /// Keep the record in this new folder: requests.parquet, latency.hlog, answer.json, manifest.json;
    /// kendall report FOLDER prints it again
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
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) target: String,
    pub(crate) seed: u64,
    /// The command that makes the same run again.
    pub(crate) again: String,
    pub(crate) offered_per_s: Option<f64>,
    pub(crate) run: RunSummary,
    /// What the clients saw, or why there is nothing.
    pub(crate) clients: Result<ClientSide, String>,
    /// What the requests cost, by class and in all, if any was due after the warm-up.
    pub(crate) score: Option<Score>,
}

pub(crate) fn load(options: &Options) -> anyhow::Result<ExitCode> {
    let target = Target::read(&options.target, &options.asked)?;
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
    let trial = Trial { rows: &rows, warmup_ns: load.warmup.as_nanos() as i64 };
    let classes = workload.classes();
    let classes = classes.iter().map(|class| (class.name.as_str(), class.weight));
    let found = Found {
        target: options.target.clone(),
        seed,
        again: again(&options.target, &options.asked, settings, seed),
        offered_per_s: plan.arrivals.rate_per_s(),
        clients: client_side(&[trial]).map_err(|why| why.to_string()),
        score: Score::new(&trial, (run.wall_s * 1e9) as i64, classes),
        run,
    };
    if let Some(folder) = &options.record {
        Manifest::here(&options.target, seed).write(folder)?;
        write_json(&folder.join("answer.json"), &found)?;
    }
    show(&found, Form::of(options.json))?;
    Ok(status(&found, cancel.load(Ordering::Relaxed)))
}

/// Prints what a load run found.
pub(crate) fn show(found: &Found, form: Form) -> anyhow::Result<()> {
    match form {
        Form::Table => print::found(found),
        Form::Json => print::json(found),
    }
}

/// What a load run found, if that is what a folder is the record of.
pub(crate) fn recorded(folder: &Path) -> anyhow::Result<Option<Found>> {
    let holds = |file: &str| folder.join(file).exists();
    let is_load = holds("manifest.json") && holds("answer.json") && !holds("experiment.toml");
    Ok(if is_load { Some(read_json(&folder.join("answer.json"))?) } else { None })
}

/// The command that makes the same run again.
fn again(target: &str, asked: &Asked, settings: &Settings, seed: u64) -> String {
    let defaults = Settings::defaults(LOAD);
    let given = settings.iter().filter(|(name, value)| defaults.get(name) != Some(*value));
    let options: String =
        given.map(|(name, value)| format!(" --{name} {}", quoted(&value.to_string()))).collect();
    format!("kendall load {}{}{options} --seed {seed}", quoted(target), asked.written())
}

/// A word as a shell takes it whole.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/%+=@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_run_again_names_what_was_set_and_survives_a_shell() {
        let mut settings = Settings::defaults(LOAD);
        for (name, text) in
            [("arrivals", "constant"), ("gap", "600ms"), ("requests", "100"), ("timeout", "30s")]
        {
            let parameter = LOAD.iter().find(|parameter| parameter.name == name).unwrap();
            settings.set(name, parameter.kind.read(text).unwrap());
        }
        assert_eq!(
            again("reverse://[::1]:5003?start=1&difficulty=10", &Asked::default(), &settings, 7),
            "kendall load 'reverse://[::1]:5003?start=1&difficulty=10' \
             --arrivals constant --gap 600ms --requests 100 --seed 7"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
