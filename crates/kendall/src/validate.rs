//! `kendall validate`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use kendall_analysis::ValidationReport;
use kendall_lab::{PeakError, PeakSetting, Validation, ValidationError, ValidationEvent, with_server};
use kendall_prediction::KnownStation;
use kendall_report::{validation_text, write_validation_page};
use kendall_stats::number;

use crate::gate::Gate;
use crate::interrupt::ctrl_c;
use crate::open::open;
use crate::options::{positive_time, share};
use crate::record::{ensure_new, new_folder};
use crate::systems::SYSTEMS;
use crate::target::{Target, TargetSettings};
use crate::{INTERRUPTED, print, quiet};

#[derive(Args)]
pub(crate) struct ValidateOptions {
    /// The server and the requests, as a URL, as for kendall load; or an experiment file, whose server is started
    #[arg(value_name = "URL|EXPERIMENT")]
    target: String,

    #[command(flatten)]
    asked: TargetSettings,

    /// The loads to predict from, as shares of the capacity
    #[arg(long, value_name = "SHARE,…", default_value = "20%,35%,50%", value_delimiter = ',', value_parser = load_share)]
    low: Vec<f64>,

    /// The loads to predict and then to measure
    #[arg(long, value_name = "SHARE,…", default_value = "70%,85%,93%", value_delimiter = ',', value_parser = load_share)]
    high: Vec<f64>,

    /// Rounds; each measures every low load and the full load once, in an order that is drawn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,

    /// Duration of each low load and full load
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = positive_time)]
    low_duration: Duration,

    /// Duration of each predicted load. The p99 of short runs scatters: at 85 % of the capacity it takes about 200,000 requests to
    /// measure it to 10 %
    #[arg(short, long, value_name = "DURATION", default_value = "1m", value_parser = positive_time)]
    duration: Duration,

    /// The error of the mean and of p99 that is accepted beyond the noise of the measurement
    #[arg(long, value_name = "SHARE", default_value = "20%", value_parser = share)]
    within: f64,

    /// At most this many connections
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,

    /// Give up a request after this time
    #[arg(short, long, value_name = "DURATION", default_value = "30s", value_parser = positive_time)]
    timeout: Duration,

    /// Let processors sleep when they are idle. Without this they are kept awake, where that is permitted (root), because a processor
    /// that slept is slower for a while, most of all on a virtual machine
    #[arg(long)]
    let_sleep: bool,

    /// Keep records and predictions in this new folder [default: results/validate/INSTANT]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,

    /// Seed of requests, arrivals, orders and simulations; drawn at random if left out, and printed
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    gate: Gate,

    /// Open the page in a browser when done
    #[arg(long)]
    open: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A share of the capacity that a server can sustain.
fn load_share(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| {
        if share > 0.0 && share < 1.0 { Ok(share) } else { Err("must be above 0 and below 100%".into()) }
    })
}

pub(crate) fn validate(options: &ValidateOptions) -> anyhow::Result<ExitCode> {
    let in_results = || Path::new("results/validate").join(kendall_archive::folder_stamp());
    let folder = options.record.clone().unwrap_or_else(in_results);
    ensure_new(&folder)?;
    let cancel = ctrl_c()?;
    let seed = options.seed.unwrap_or_else(kendall_lab::drawn_seed);
    let threads = kendall_experiment::Threads::default();
    let (connections, timeout) = (options.connections, options.timeout);
    let setting = |servers| PeakSetting { connections, timeout, threads, seed, servers };
    let file = Path::new(&options.target);
    let found = if file.extension().is_some_and(|extension| extension == "toml") {
        ensure!(file.exists(), "there is no experiment file {}", file.display());
        let program = env::current_exe().context("cannot find the kendall program, to serve with")?;
        let experiment = kendall_experiment::read(file, SYSTEMS)?;
        // The server's log is the first file in it.
        new_folder(&folder)?;
        with_server(&experiment, &program, &folder, |server| {
            let setting = setting(server.servers.clone());
            options.run(server.target, server.workload, server.known.clone(), &setting, &folder, &cancel)
        })?
    } else {
        let target = Target::read(&options.target, &options.asked)?;
        let workload = |seed: u64| (target.system.load)(target.address, &target.workload, seed);
        options.run(
            &target.shown,
            &workload,
            None,
            &setting(quiet::servers(target.address)),
            &folder,
            &cancel,
        )
    };
    let report = match found {
        Err(ValidationError::Interrupted(folder)) => {
            print::note(&format!("Interrupted; what was measured is in {}", folder.display()));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        // Nothing was measured yet that anything could be made of.
        Err(ValidationError::Load(PeakError::Interrupted)) => return Ok(ExitCode::from(INTERRUPTED)),
        found => found?,
    };
    if options.json {
        print::json(&report)?;
    } else {
        print::out(&validation_text(&report))?;
        print::note(&format!("Records and predictions are in {}; seed {}.", folder.display(), report.seed));
    }
    let page = write_validation_page(&report, &folder)?;
    print::note(&format!("Report: {}", page.display()));
    if options.open {
        open(&page);
    }
    Ok(ExitCode::from(options.gate.status(Some(report.within(options.within)), true)))
}

impl ValidateOptions {
    fn run(
        &self,
        target: &str,
        workload: &dyn Fn(u64) -> Result<Box<dyn kendall_load::Workload>, String>,
        known: Option<KnownStation>,
        setting: &PeakSetting,
        folder: &Path,
        cancel: &AtomicBool,
    ) -> Result<ValidationReport, ValidationError> {
        if !self.json {
            quiet::warn(&setting.servers);
            let low = self.low_duration * ((self.low.len() as u32 + 2) * self.rounds);
            let high = (self.duration + self.low_duration) * self.high.len() as u32;
            print::note(&format!(
                "This takes about {}.",
                number::rough_time((low + high).as_secs_f64() + 10.0)
            ));
        }
        let validation = Validation {
            target,
            workload,
            known,
            setting,
            low: &self.low,
            high: &self.high,
            rounds: self.rounds,
            low_duration: self.low_duration,
            high_duration: self.duration,
            keep_awake: !self.let_sleep,
            folder,
        };
        let mut tell = |event: &ValidationEvent<'_>| {
            if !self.json {
                print::note(&event.to_string());
            }
        };
        validation.run(&mut tell, cancel)
    }
}
