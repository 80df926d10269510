//! Whether a trial of an experiment sends as punctually as a load of a URL: both are one path, and neither may write a file,
//! encode a row or read a clock for a row on the thread that sends.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kendall_archive::read_trial;

use crate::common::{ROUNDS, median};
use crate::tools::{Nginx, words};

const RATES_PER_S: [u32; 2] = [5_000, 20_000];
const CONNECTIONS: u32 = 200;
const SECONDS: u32 = 5;

/// Send lags of both, in turns, against one nginx; skips where it is not installed.
pub(crate) fn section(page: &mut String) {
    let Some(server) = Nginx::start() else { return };
    let _ = write!(
        page,
        "\n## A trial beside a load\n\nConstant arrivals over {CONNECTIONS} connections for {SECONDS} s at the same nginx, every \
         request recorded: as the one trial of `kendall run`, and as `kendall load --record`. Lags count from the instant a \
         request was due until just before its first byte was handed to the kernel.\n\n\
         | rate, 1/s | `run` p50, µs | p99, µs | `load` p50, µs | p99, µs | ratio p50 | ratio p99 |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for rate in RATES_PER_S {
        let rounds: Vec<[[f64; 2]; 2]> =
            (0..ROUNDS).map(|_| [run(&server.url(), rate), load(&server.url(), rate)]).collect();
        let of = |side: usize, quantile: usize| median(rounds.iter().map(|round| round[side][quantile]));
        let ratio = |quantile: usize| median(rounds.iter().map(|[run, load]| run[quantile] / load[quantile]));
        let _ = writeln!(
            page,
            "| {rate} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} |",
            of(0, 0),
            of(0, 1),
            of(1, 0),
            of(1, 1),
            ratio(0),
            ratio(1),
        );
    }
}

/// Median and 99th percentile of the lags of an experiment of one trial, in microseconds.
fn run(url: &str, rate: u32) -> [f64; 2] {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("trial.toml");
    let text = format!(
        "name = \"trial\"\nrepeats = 1\n[system]\nname = \"http\"\n[workload]\nurl = \"{url}\"\n[load]\nrate = {rate}\n\
         arrivals = \"constant\"\nconnections = {CONNECTIONS}\nduration = \"{SECONDS}s\"\nwarmup = \"0s\"\n"
    );
    fs::write(&file, text).expect("a file can be written");
    kendall(&["run".into(), path(&file), "--results".into(), path(folder.path())]);
    let trial = recorded(folder.path()).expect("the run has a trial");
    lags_us(&trial)
}

/// The same of a load that is recorded.
fn load(url: &str, rate: u32) -> [f64; 2] {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let record = folder.path().join("record");
    let mut arguments = words(&format!(
        "load {url} --arrivals constant --rate {rate} --connections {CONNECTIONS} --duration {SECONDS}s --warmup 0s --record"
    ));
    arguments.push(path(&record));
    kendall(&arguments);
    lags_us(&record)
}

/// The folder below this one in which requests are recorded.
fn recorded(folder: &Path) -> Option<PathBuf> {
    if folder.join("requests.parquet").exists() {
        return Some(folder.to_owned());
    }
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| recorded(&entry.path()))
}

fn path(path: &Path) -> String {
    path.to_str().expect("temporary folders have plain names").to_owned()
}

fn kendall(arguments: &[String]) {
    let mut command = Command::new(crate::common::kendall());
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("kendall starts");
    // The exit status reports a doubt about the generator, too; the rows are there all the same.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code != 1 && code != 2), "kendall runs: {said}");
}

fn lags_us(trial: &Path) -> [f64; 2] {
    let rows = read_trial(trial).expect("it has rows");
    let mut lags_us: Vec<f64> =
        rows.iter().filter_map(|row| row.send_lag_ns()).map(|lag_ns| lag_ns as f64 / 1e3).collect();
    lags_us.sort_by(f64::total_cmp);
    [lags_us[lags_us.len() / 2], lags_us[lags_us.len() * 99 / 100]]
}
