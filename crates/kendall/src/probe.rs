//! `kendall probe`.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, value_parser};
use kendall_analysis::bottleneck;
use kendall_probe::{Children, Config, DEFAULT_HZ, Profile, Role, Target, Watch, wait_for_end};
use kendall_record::clock::now_ns;
use kendall_report::{flame, resources};

use crate::interrupt::CtrlC;
use crate::options::{positive_time, time};
use crate::print;
use crate::record::new_folder;

#[derive(Args)]
pub(crate) struct ProbeOptions {
    /// The process to watch, with the processes that it starts
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pid: u32,

    /// The interval between two readings; expensive values are read less often
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = interval)]
    every: Duration,

    /// How long to watch; until the process ends or Ctrl-C if left out
    #[arg(short, long, alias = "for", value_name = "DURATION", value_parser = positive_time)]
    duration: Option<Duration>,

    /// Sample its stacks, this often per second of CPU time, to find the functions that use its time
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true, default_missing_value = "99",
        value_parser = value_parser!(u32).range(1..=1000))]
    profile: Option<u32>,

    /// Record every reading in this new folder: resources.parquet, summary.json, and of a profile profile.folded and flame.svg
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const _: () = assert!(DEFAULT_HZ == 99, "the default of --profile");

fn interval(text: &str) -> Result<Duration, String> {
    time(text)
        .and_then(|time| if time.as_micros() < 1000 { Err("must be 1ms or longer".into()) } else { Ok(time) })
}

pub(crate) fn probe(options: &ProbeOptions) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &options.record {
        new_folder(folder)?;
    }
    let table = options.record.as_ref().map(|folder| folder.join("resources.parquet"));
    let config = Config { every: options.every, record: table.as_deref(), profile_hz: options.profile };
    let target = Target { role: Role::Server, pid: options.pid, children: Children::Watched };
    let ctrl_c = CtrlC::listen()?;
    let origin_ns = now_ns();
    let watch = Watch::start(&config, &[target])?;
    wait_for_end(options.pid, Some(ctrl_c.as_fd()), options.duration)
        .context("cannot wait for the process")?;
    let watched = watch.end(origin_ns)?;
    let (summary, profile) = (&watched.summary, watched.profile.as_ref());
    if let Some(folder) = &options.record {
        kendall_archive::write_json(&folder.join("summary.json"), summary)?;
        if let Some(profile) = profile {
            keep(folder, options.pid, profile)?;
        }
    }
    if options.json {
        print::json(&(summary, profile))?;
        return Ok(ExitCode::SUCCESS);
    }
    let limit = bottleneck(summary, None);
    print::out(&format!("Process {}, watched for {:.1} s\n\n", options.pid, summary.length_s))?;
    print::out(&resources::text(summary, limit.as_ref()))?;
    print::out(&profile.map_or_else(String::new, resources::profile_text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the stacks, and draws them.
fn keep(folder: &Path, pid: u32, profile: &Profile) -> anyhow::Result<()> {
    let drawn = flame::standalone(&profile.folded, &format!("CPU time of process {pid} by function"));
    for (name, text) in [("profile.folded", profile.to_text()), ("flame.svg", drawn)] {
        let path = folder.join(name);
        kendall_files::replace(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
