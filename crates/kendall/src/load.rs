//! `kendall load`.

mod collect;
mod found;
mod show;
mod told;
mod view;
mod watched;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use kendall_archive::{Manifest, TrialWriter, read_json, utc_now, write_json};
use kendall_evidence::expect::{Expectation, Measure};
use kendall_evidence::streamed::{Stream, Warmup};
use kendall_lab::{LOAD, Load, Schedule, Seen};
use kendall_load::{Plan, Progress, RunSummary, Workload};
use kendall_system::{Settings, Value};

pub(crate) use found::Found;

use crate::export::Export;
use crate::options::{options, settings};
use crate::push::PushOptions;
use crate::report::Form;
use crate::target::{Asked, Target};
use crate::{INTERRUPTED, export, print};
use collect::{Collected, Wanted, collect};
use found::{PrecisionFound, SCHEMA};
use told::Told;
use view::Goal;
use watched::{ProbeOptions, Watched};

/// How long a run lasts that is to end once it is precise enough, if nothing else says.
const LONGEST: Duration = Duration::from_secs(600);

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

    /// End the run once the 95 % interval reaches no further than this share to either side, such as 5%; after 10 minutes
    /// unless --duration or --requests says otherwise
    #[arg(long, value_name = "SHARE", value_parser = share)]
    precision: Option<f64>,

    /// Whose interval: that of the mean response time, or of a quantile such as p99
    #[arg(long, value_name = "MEASURE", value_parser = response_measure, default_value = "mean", requires = "precision")]
    precision_of: Measure,

    /// What is expected, judged by its interval: 'p99<50ms', 'mean<5ms', 'errors<1%', 'rate>990/s'; may be given several
    /// times. Exit status 4 where one fails
    #[arg(long, value_name = "EXPECTATION")]
    expect: Vec<Expectation>,

    /// Seed of requests and arrivals; drawn by chance if left out, and printed with the command that repeats the run
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    probe: ProbeOptions,

    /// Keep the record in this new folder: requests.parquet, latency.hlog, answer.json, manifest.json, report.html;
    /// kendall report FOLDER prints it again
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,

    /// Write the record in a format of other tools as well, which may be given several times: csv, json, parquet or hdr, or with
    /// a place as in csv=requests.csv
    #[arg(long, value_name = "FORMAT[=PATH]", requires = "record")]
    export: Vec<Export>,

    /// Write what was expected as JUnit XML: a test case an expectation
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    push: PushOptions,

    /// Show nothing while it runs
    #[arg(long)]
    quiet: bool,

    /// Print JSON, and show nothing while it runs
    #[arg(long)]
    json: bool,
}

/// "5%" or "0.05".
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>() {
        Ok(value) if (1e-4..=1.0).contains(&(value * scale)) => Ok(value * scale),
        _ => Err("must be a share from 0.01% to 100%, such as 5%".into()),
    }
}

fn response_measure(text: &str) -> Result<Measure, String> {
    match text.parse() {
        Ok(measure @ (Measure::Mean | Measure::Quantile(_))) => Ok(measure),
        _ => Err("must be mean, or a quantile such as p99".into()),
    }
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

pub(crate) fn load(options: &Options) -> anyhow::Result<ExitCode> {
    let target = Target::read(&options.target, &options.asked)?;
    let process = options.probe.process(target.address)?;
    let mut settings = options.load.0.clone();
    let endless = settings.get("duration").is_none() && settings.get("requests").is_none();
    if options.precision.is_some() && endless {
        settings.set("duration", Value::Time(LONGEST));
    }
    let load = Load::new(&settings, &env::current_dir()?)
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
    let started_utc = utc_now();
    let cancel = ctrl_c()?;
    let (run, collected, watched) = options.run(&plan, &*workload, load.warmup, process, &cancel)?;
    let (seen, score) = options.answer(collected, &run, &*workload)?;
    let mut found = Found {
        schema: SCHEMA,
        target: options.target.clone(),
        seed,
        started_utc,
        again: options.again(&settings, seed),
        offered_per_s: plan.arrivals.rate_per_s(),
        verdict: kendall_analysis::generator::judge(&run, &plan.arrivals),
        precision: seen.precision,
        expectations: Vec::new(),
        seen: None,
        nothing_seen: None,
        resources: None,
        score,
        run,
    };
    match seen.clients {
        Ok(seen) => {
            let judge = |expected: &Expectation| expected.judge(seen.figure(expected.measure));
            found.expectations = options.expect.iter().map(judge).collect();
            found.seen = Some(seen);
        }
        Err(why) => found.nothing_seen = Some(why),
    }
    found.resources = process.zip(watched).map(|(process, watched)| {
        let response_s = found.seen.as_ref().map(|seen| seen.response.mean_s.value);
        Watched::new(process, watched, &found.run, &found.verdict, response_s)
    });
    if let Some(folder) = &options.record {
        Manifest { ended_utc: Some(utc_now()), ..Manifest::here(&options.target, seed) }.write(folder)?;
        found.resources = found.resources.map(|watched| watched.keep(folder)).transpose()?;
        write_json(&folder.join("answer.json"), &found)?;
        found.resources = found.resources.map(|watched| watched.kept(folder));
        write_page(&found, folder)?;
        export::of_load(folder, &found, &options.export)?;
    }
    if let Some(file) = &options.junit {
        export::junit(file, &found.suite())?;
    }
    show(&found, Form::of(options.json))?;
    Ok(found.status(cancel.load(Ordering::Relaxed)))
}

/// What the clients saw of a run, and how precise that is.
struct Answered {
    clients: Result<kendall_evidence::streamed::Streamed, String>,
    precision: Option<PrecisionFound>,
}

impl Options {
    fn run(
        &self,
        plan: &Plan,
        workload: &dyn Workload,
        warmup: Warmup,
        process: Option<u32>,
        cancel: &AtomicBool,
    ) -> anyhow::Result<(RunSummary, Collected, Option<Seen>)> {
        let writer = self.record.as_deref().map(TrialWriter::create).transpose()?;
        let watching = self.probe.watch(process, self.record.as_deref())?;
        let wanted = self.precision.map(|relative| Wanted { relative, of: self.precision_of });
        let progress = Arc::new(Progress::default());
        let goal = Goal { requests: plan.requests, duration: plan.duration };
        let told = Told::start(&self.push, &self.target, goal, plan, process, &progress)?;
        let work = || {
            let rows = |rows| collect(Stream::new(warmup), writer, wanted, &progress, rows);
            kendall_load::run(plan, workload, &progress, cancel, rows)
        };
        let recent = || told.as_ref().map_or_else(|| view::laid_out(&progress), Told::recent);
        let ran = if self.quiet || self.json { work() } else { view::watch(goal, &progress, recent, work) };
        told.into_iter().for_each(Told::end);
        let (run, collected) = ran?;
        let collected = collected?;
        let watched = watching.end(run.start_ns)?;
        Ok((run, collected, watched))
    }

    /// Completes the record, and makes the answer.
    fn answer(
        &self,
        collected: Collected,
        run: &RunSummary,
        workload: &dyn Workload,
    ) -> anyhow::Result<(Answered, Option<kendall_evidence::Score>)> {
        let Collected { mut stream, writer } = collected;
        if let Some(writer) = writer {
            writer.finish_without_stamps(run.start_ns)?;
        }
        stream.end((run.wall_s * 1e9) as i64);
        let classes = workload.classes();
        let score = stream.score(classes.iter().map(|class| (class.name.as_str(), class.weight)));
        let precision = self.precision.map(|wanted| {
            let found = stream.precision(self.precision_of);
            PrecisionFound {
                wanted,
                of: self.precision_of,
                reached: found.map(|found| found.relative),
                missing: found.map(|found| found.missing(wanted)),
            }
        });
        Ok((Answered { clients: stream.seen().map_err(|why| why.to_string()), precision }, score))
    }

    /// The command that makes the same run again.
    fn again(&self, settings: &Settings, seed: u64) -> String {
        let mut more = String::new();
        if let Some(precision) = self.precision {
            more += &format!(" --precision {precision} --precision-of {}", self.precision_of);
        }
        for expected in &self.expect {
            more += &format!(" --expect {}", quoted(&expected.to_string()));
        }
        format!("{}{more}{} --seed {seed}", again(&self.target, &self.asked, settings), self.probe)
    }
}

/// Prints what a load run found.
pub(crate) fn show(found: &Found, form: Form) -> anyhow::Result<()> {
    match form {
        Form::Table => print::out(&(show::lines(found).join("\n") + "\n")),
        Form::Json => print::json(found),
    }
}

/// What a load run found, if that is what a folder is the record of.
pub(crate) fn recorded(folder: &Path) -> anyhow::Result<Option<Found>> {
    let holds = |file: &str| folder.join(file).exists();
    let is_load = holds("manifest.json") && holds("answer.json") && !holds("experiment.toml");
    if !is_load {
        return Ok(None);
    }
    let mut found: Found = read_json(&folder.join("answer.json"))?;
    found.resources = found.resources.map(|watched| watched.kept(folder));
    Ok(Some(found))
}

/// Writes the page of a recorded load.
pub(crate) fn write_page(found: &Found, folder: &Path) -> anyhow::Result<PathBuf> {
    let page = folder.join("report.html");
    std::fs::write(&page, kendall_report::load_page(&show::page(found)))
        .with_context(|| format!("cannot write {}", page.display()))?;
    print::note(&format!("Report: {}", page.display()));
    Ok(page)
}

/// The figures of a recorded load.
pub(crate) fn figures(found: &Found) -> Vec<kendall_report::figure::Named> {
    kendall_report::load_figures(&show::page(found))
}

/// The command without what is no parameter of a load.
fn again(target: &str, asked: &Asked, settings: &Settings) -> String {
    let defaults = Settings::defaults(LOAD);
    let given = settings.iter().filter(|(name, value)| defaults.get(name) != Some(*value));
    let options: String =
        given.map(|(name, value)| format!(" --{name} {}", quoted(&value.to_string()))).collect();
    format!("kendall load {}{}{options}", quoted(target), asked.written())
}

/// A word as a shell takes it whole.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/%+=@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
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
            again("reverse://[::1]:5003?start=1&difficulty=10", &Asked::default(), &settings),
            "kendall load 'reverse://[::1]:5003?start=1&difficulty=10' \
             --arrivals constant --gap 600ms --requests 100"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
