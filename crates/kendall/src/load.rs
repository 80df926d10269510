//! `kendall load`.

mod pushed;
mod watched;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use kendall_agents::{Fleet, FleetOptions};
use kendall_analysis::TrialResult;
use kendall_evidence::expect::{Expectation, Measure};
use kendall_experiment::{LOAD, Load, Schedule};
use kendall_lab::load_view::{self, Goal};
use kendall_lab::{LoadTrial, PeakError, PeakSetting, TrialPrecision};
use kendall_load::Progress;
use kendall_record::Outcome;
use kendall_report::export::suite::Suite;
use kendall_stats::number::{percent, significant};
use kendall_system::{Settings, Value, quoted};

use crate::awake::AwakeOption;
use crate::export::{self, Export};
use crate::gate::Gate;
use crate::interrupt::ctrl_c;
use crate::options::{given, options};
use crate::print::Form;
use crate::push::PushOptions;
use crate::record::ensure_new;
use crate::target::{Target, TargetSettings};
use crate::{INTERRUPTED, print, quiet};
use pushed::PushedLoad;
use watched::ProbeOptions;

/// How long a run lasts that is to end once it is precise enough, if nothing else says.
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Args)]
pub(crate) struct LoadOptions {
    /// The server and the requests, as a URL: http://127.0.0.1:8080/path, or a system of kendall's with parameters,
    /// reverse://127.0.0.1:5003?difficulty=300000&repeat-percent=20
    #[arg(value_name = "URL")]
    target: String,

    #[command(flatten)]
    load: LoadSettings,

    /// End the run once the half-width of the 95 % interval is at most this share, such as 5%; at the latest after 10 minutes,
    /// --duration or --requests
    #[arg(long, value_name = "SHARE", value_parser = share)]
    precision: Option<f64>,

    /// The value whose interval --precision limits: mean, or a quantile such as p99
    #[arg(long, value_name = "MEASURE", value_parser = response_measure, default_value = "mean", requires = "precision")]
    precision_of: Measure,

    /// Expect this, judged by its interval: 'p99<50ms', 'mean<5ms', 'errors<1%', 'rate>990/s'; may be given several times. Exit status
    /// 4 if one fails, 3 if one is undecided
    #[arg(long, value_name = "EXPECTATION")]
    expect: Vec<Expectation>,

    #[command(flatten)]
    gate: Gate,

    /// Seed of requests and arrivals; drawn at random if left out, and printed with the command that repeats the run
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    probe: ProbeOptions,

    #[command(flatten)]
    awake: AwakeOption,

    /// Record the run in this new folder: requests.parquet, latency.hlog, answer.json, manifest.json, report.html; kendall report
    /// DIR prints it again
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Also write the record in the format of other tools; may be given several times: csv, json, parquet or hdr, or with a path as in
    /// csv=requests.csv
    #[arg(long, value_name = "FORMAT[=PATH]", requires = "record")]
    export: Vec<Export>,

    /// Write the expectations as JUnit XML, one test case for each
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    push: PushOptions,

    /// Show nothing while it runs
    #[arg(long)]
    quiet: bool,

    /// Print JSON, and show nothing while it runs
    #[arg(long)]
    json: bool,

    // Last, so that help shows it after the load.
    #[command(flatten)]
    asked: TargetSettings,
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

/// The parameters of a load that were given as options, from the same table as in experiment files.
struct LoadSettings(Settings);

/// The short forms that users of other load generators expect.
const SHORT: [(&str, char); 4] = [("connections", 'c'), ("rate", 'r'), ("timeout", 't'), ("requests", 'n')];
/// The rate of a load that names none: few servers notice it, and in a few seconds it has enough requests for a 99th percentile.
const MODERATE_PER_S: f64 = 100.0;
/// The duration of a load that does not say when it ends.
const FEW_SECONDS: Duration = Duration::from_secs(5);

impl LoadSettings {
    /// All parameters of the load, and those among them that are chosen because nothing says otherwise, as they are written. Users without
    /// a law of arrivals are a closed load.
    fn complete(&self, longest: Duration) -> (Settings, Vec<String>) {
        let mut settings = Settings::defaults(LOAD);
        self.0.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        let has = |names: &[&str]| names.iter().any(|name| self.0.get(name).is_some());
        if has(&["users"]) && !has(&["arrivals"]) {
            settings.set("arrivals", Value::Word("closed".into()));
        }
        let mut chosen = Vec::new();
        let mut choose = |name, value: Value| {
            chosen.push(format!("--{name} {value}"));
            settings.set(name, value);
        };
        if !has(&["rate", "gap", "stages", "trace", "users", "arrivals"]) {
            choose("rate", Value::Number(MODERATE_PER_S));
        }
        if !has(&["duration", "requests", "stages", "trace"]) {
            choose("duration", Value::Time(longest));
        }
        (settings, chosen)
    }
}

impl Args for LoadSettings {
    fn augment_args(command: Command) -> Command {
        let short = |arg: &Arg| SHORT.iter().find(|(name, _)| arg.get_id() == name).map(|(_, short)| *short);
        command.args(options(LOAD).map(|arg| match short(&arg) {
            Some(short) => arg.short(short),
            None => arg,
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LoadSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(LOAD, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn load(options: &LoadOptions) -> anyhow::Result<ExitCode> {
    let target = Target::read(&options.target, &options.asked)?;
    let server = options.probe.process(target.address)?;
    let longest = if options.precision.is_some() { LONGEST } else { FEW_SECONDS };
    let (mut settings, chosen) = options.load.complete(longest);
    if !chosen.is_empty() {
        print::note(&format!(
            "Chosen: {}. Try another --rate, --users 20, or the highest rate: kendall peak {} --slo 'p99<50ms'",
            chosen.join(" "),
            quoted(&target.shown)
        ));
    }
    options.push.targets()?;
    let load = Load::new(&settings, &env::current_dir()?)
        .map_err(|(name, why)| anyhow::anyhow!("--{name}: {why}"))?;
    let seed = options.seed.unwrap_or_else(kendall_lab::drawn_seed);
    let workload =
        (target.system.load)(target.address, &target.workload, seed).map_err(anyhow::Error::msg)?;
    options.record.as_deref().map_or(Ok(()), ensure_new)?;
    let _awake = options.awake.keep()?;
    let cancel = ctrl_c()?;
    let servers = quiet::servers(target.address);
    if !(options.quiet || options.json) {
        quiet::warn(&servers);
    }
    if let Schedule::Share(share, _) = load.schedule
        && settings.get("capacity").is_none()
    {
        let setting = PeakSetting {
            connections: load.connections,
            timeout: load.timeout,
            threads: load.threads,
            seed,
            servers: servers.clone(),
        };
        let Some(found_per_s) = calibrate(&target, &setting, share, &cancel)? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        settings.set("capacity", Value::Number(found_per_s));
    }
    let capacity_per_s = settings.number("capacity");
    let fleet = Fleet::gather(&options.fleet)?;
    let sent_to = kendall_agents::Target::new(target.system, target.address, &target.workload, seed);
    let trial = LoadTrial {
        target: &target.shown,
        again: &options.again(&target.shown, &settings, seed),
        workload: &*workload,
        load: &load,
        capacity_per_s,
        seed,
        precision: options.precision.map(|relative| TrialPrecision { relative, of: options.precision_of }),
        expected: &options.expect,
        server,
        probing: options.probe.probing(server),
        servers: &servers,
        agents: fleet.as_ref().map(|fleet| (fleet, &sent_to)),
        record: options.record.as_deref(),
    };
    let result = options.run(&trial, &cancel)?;
    if let Some(folder) = &options.record {
        write_page(&result, folder)?;
        export::of_load(folder, &result, &options.export)?;
    }
    if let Some(file) = &options.junit {
        let suite = Suite { allows_undecided: options.gate.allows_undecided(), ..Suite::of_load(&result) };
        export::junit(file, &suite)?;
    }
    show(&result, Form::of(options.json))?;
    Ok(status(&result, options.gate, cancel.load(Ordering::Relaxed)))
}

/// Measures for some seconds what the server can do, in requests per second to four digits, and says what that makes of the rate. `None`
/// after Ctrl-C.
fn calibrate(
    target: &Target,
    setting: &PeakSetting,
    share: f64,
    cancel: &AtomicBool,
) -> anyhow::Result<Option<f64>> {
    let workload = |seed: u64| (target.system.load)(target.address, &target.workload, seed);
    let (users, found_per_s) = match kendall_lab::capacity(&workload, setting, cancel) {
        Err(PeakError::Interrupted) => return Ok(None),
        found => found?,
    };
    let found_per_s: f64 = format!("{found_per_s:.3e}").parse().unwrap_or(found_per_s);
    let (all, rate) = (significant(found_per_s, 4), significant(found_per_s * share, 4));
    let users = if users == 1 { "one user".to_owned() } else { format!("{users} users") };
    print::note(&format!(
        "Calibrated: {all}/s is the highest throughput of a closed load ({users}); {} of that is {rate}/s. --capacity {found_per_s} \
         repeats it without a calibration",
        percent(share)
    ));
    Ok(Some(found_per_s))
}

impl LoadOptions {
    /// Makes the load, shows it meanwhile, and reports it to other tools.
    fn run(&self, trial: &LoadTrial<'_>, cancel: &AtomicBool) -> anyhow::Result<TrialResult> {
        let progress = Arc::new(Progress::default());
        let goal = Goal { requests: trial.load.requests, duration: trial.load.duration };
        let pushed = PushedLoad::start(&self.push, trial, &progress)?;
        let work = || trial.run(&progress, cancel);
        let recent = || pushed.as_ref().map_or_else(|| load_view::recent(&progress), PushedLoad::recent);
        let ran =
            if self.quiet || self.json { work() } else { load_view::watch(goal, &progress, recent, work) };
        pushed.into_iter().for_each(PushedLoad::end);
        Ok(ran?)
    }

    /// The command that makes the same run again.
    fn again(&self, target: &str, settings: &Settings, seed: u64) -> String {
        let mut more = String::new();
        if let Some(precision) = self.precision {
            more += &format!(" --precision {precision} --precision-of {}", self.precision_of);
        }
        for expected in &self.expect {
            more += &format!(" --expect {}", quoted(&expected.to_string()));
        }
        if self.awake.is_given() {
            more += " --keep-awake";
        }
        format!("{}{more}{} --seed {seed}", again(target, &self.asked, settings), self.probe)
    }
}

/// The status to exit with.
fn status(result: &TrialResult, gate: Gate, interrupted: bool) -> ExitCode {
    let expected = (!result.expectations.is_empty()).then(|| Expectation::overall(&result.expectations));
    let grew = result.seen.as_ref().and_then(|seen| seen.growth).is_some_and(|growth| growth.unstable);
    match (interrupted, result.run.count(Outcome::Answered)) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::FAILURE,
        (false, _) => ExitCode::from(gate.status(expected, !grew)),
    }
}

/// Prints what a load found.
pub(crate) fn show(result: &TrialResult, form: Form) -> anyhow::Result<()> {
    match form {
        Form::Table => print::out(&kendall_report::load_text(result)),
        Form::Json => print::json(result),
    }
}

/// Writes the page of a recorded load.
pub(crate) fn write_page(result: &TrialResult, folder: &Path) -> anyhow::Result<PathBuf> {
    let page = kendall_report::write_load_page(result, folder)?;
    print::note(&format!("Report: {}", page.display()));
    Ok(page)
}

/// The command without arguments that are not parameters of a load.
pub(crate) fn again(target: &str, asked: &TargetSettings, settings: &Settings) -> String {
    let defaults = Settings::defaults(LOAD);
    let given = settings.iter().filter(|(name, value)| defaults.get(name) != Some(*value));
    let options: String =
        given.map(|(name, value)| format!(" --{name} {}", quoted(&value.to_string()))).collect();
    format!("kendall load {}{}{options}", quoted(target), asked.written())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_are_left_out_are_chosen_and_users_are_a_closed_load() {
        let complete = |words: &[&str]| {
            let command = LoadSettings::augment_args(Command::new("x").no_binary_name(true));
            let options = LoadSettings::from_arg_matches(&command.get_matches_from(words)).unwrap();
            options.complete(FEW_SECONDS)
        };
        let (settings, chosen) = complete(&[]);
        assert_eq!((settings.number("rate"), settings.word("arrivals")), (Some(100.0), Some("poisson")));
        assert_eq!(chosen, ["--rate 100", "--duration 5s"]);
        let (settings, chosen) = complete(&["--users", "5"]);
        assert_eq!((settings.word("arrivals"), settings.number("rate")), (Some("closed"), None));
        assert_eq!(chosen, ["--duration 5s"]);
        let (settings, chosen) = complete(&["-c", "7", "-d", "3", "-r", "2k", "-t", "100ms"]);
        assert_eq!((settings.whole("connections"), settings.number("rate")), (Some(7), Some(2000.0)));
        assert_eq!(settings.time("duration"), Some(Duration::from_secs(3)));
        assert!(chosen.is_empty() && complete(&["--stages", "1s: 5/s"]).1.is_empty());
    }

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
            again("reverse://[::1]:5003?start=1&difficulty=10", &TargetSettings::default(), &settings),
            "kendall load 'reverse://[::1]:5003?start=1&difficulty=10' \
             --arrivals constant --gap 600ms --requests 100"
        );
    }
}
