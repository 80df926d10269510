//! Makes a run of many more requests out of one that was measured, to see how a report of it fares:
//! `cargo run --release -p kendall-record --example enlarge -- results/quickstart/INSTANT /tmp/large 20`.
//!
//! The rows of every trial follow upon themselves this many times, so arrivals, service times and waiting stay those of the
//! system. What summarises a trial (`answer.json`, `resources.parquet`) is that of the first time.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use kendall_archive::{TrialWriter, read_trial};
use kendall_record::RequestRow;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, times] = arguments.as_slice() else {
        return Err("say a run, a new folder and how many times: enlarge RUN FOLDER TIMES".into());
    };
    let (from, to, times) = (Path::new(from), PathBuf::from(to), times.parse()?);
    let trials = to.join("trials");
    fs::create_dir_all(&trials)?;
    copy_files(from, &to, |_| true)?;
    let mut requests = 0;
    for trial in fs::read_dir(from.join("trials"))? {
        let trial = trial?.path();
        let folder = trials.join(trial.file_name().ok_or("a trial has a name")?);
        let rows = read_trial(&trial)?;
        let mut writer = TrialWriter::create(&folder)?;
        let length_ns =
            rows.iter().map(|row| row.completed.unwrap_or(0).max(row.scheduled)).max().unwrap_or(0);
        for time in 0..times {
            let (before, by_ns) = (rows.len() as u64 * time, length_ns * time as i64);
            rows.iter().try_for_each(|row| writer.append(&later(row, before, by_ns)))?;
        }
        requests += writer.finish(&[], 0)?.len();
        copy_files(&trial, &folder, |name| name != "requests.parquet" && name != "latency.hlog")?;
    }
    println!("{} holds {requests} requests", to.display());
    Ok(())
}

/// The row behind this many others and so much later.
fn later(row: &RequestRow, before: u64, by_ns: i64) -> RequestRow {
    let shifted = |instant: Option<i64>| instant.map(|instant| instant + by_ns);
    RequestRow {
        index: row.index + before,
        scheduled: row.scheduled + by_ns,
        sent: shifted(row.sent),
        first_byte: shifted(row.first_byte),
        completed: shifted(row.completed),
        queued: shifted(row.queued),
        started: shifted(row.started),
        finished: shifted(row.finished),
        ..row.clone()
    }
}

fn copy_files(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) -> std::io::Result<()> {
    for file in fs::read_dir(from)? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && wanted(&name) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
