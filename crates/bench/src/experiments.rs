//! What the experiments of the repository found: runs each file of `experiments/` in full once, and writes `docs/results.md` from all
//! results.
//!
//! A file with a complete run of this version of it is not run again, and an interrupted run is resumed. What the page has of a complete run
//! is kept in `results/experiments`, which the repository has, so that other days and machines continue the series. An experiment that
//! fails does not end the series; Ctrl-C does, and keeps what is done.

mod databases;
mod estimate;
mod page;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_archive::Manifest;
use signal_hook::consts::SIGINT;

use crate::common::{kendall, root, status};
use crate::experiment_file::{self, ExperimentFile};
use databases::Databases;
use estimate::{Estimate, in_words};
use page::{CompleteRun, Entry, Finished};
use record::Record;

/// The first argument that calls this.
pub(crate) const WORD: &str = "experiments";

/// From the root of the repository.
const EXPERIMENTS: &str = "experiments";
/// `make accuracy` has these.
const VALIDATED: &str = "validate/";
const RESULTS: &str = "results/experiments";
const PAGE: &str = "docs/results.md";
/// From the folder of the page.
const PICTURES: &str = "images/results";
/// They answer open questions or have published figures, so they run before the others.
const FIRST: [&str; 7] = [
    "recover/rate-length-3",
    "recover/rate-length-5",
    "recover/network",
    "reverse/caching",
    "reverse/caching-score",
    "reverse/execution",
    "reverse/cores",
];

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Runs what is missing, and writes the page.
    Run,
    /// Prints what is missing, and how long it takes.
    Plan,
    /// Writes the page of the results that there are.
    Page,
}

/// Runs the experiments of these names or folders, or all. `--plan` only prints what it would run, and `--page` only writes the page.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let (options, names): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with("--"));
    let task = match options.first().map(|option| option.as_str()) {
        None => Task::Run,
        Some("--plan") => Task::Plan,
        Some("--page") => Task::Page,
        Some(unknown) => {
            eprintln!("{unknown} is not an option; there are --plan and --page");
            return ExitCode::from(2);
        }
    };
    let names: Vec<String> = names.into_iter().cloned().collect();
    status(series(&root(), &names, task))
}

/// Returns the names of the experiments that failed.
fn series(root: &Path, names: &[String], task: Task) -> Result<Vec<String>, String> {
    let mut files = experiment_file::all(&root.join(EXPERIMENTS))?;
    files.retain(|file| !file.name.starts_with(VALIDATED));
    files.sort_by_key(|file| FIRST.iter().position(|name| *name == file.name).unwrap_or(FIRST.len()));
    let chosen = experiment_file::named(&files, names)?;
    let results = root.join(RESULTS);
    let mut failures = BTreeMap::new();
    if task != Task::Page {
        plan(&chosen, &results);
    }
    if task == Task::Run {
        failures = run_all(root, &chosen, &results)?;
    }
    if task != Task::Plan {
        write_page(root, &files, &results, &failures)?;
    }
    Ok(failures.into_keys().collect())
}

/// Prints what is done with each experiment, and how long that takes.
fn plan(files: &[&ExperimentFile], results: &Path) {
    let mut all = Duration::ZERO;
    for file in files {
        let estimate =
            record::earlier(results, file).map_or_else(|| Estimate::of(&file.text), Estimate::measured);
        let record = Record::of(results, file);
        let doing = match (&record, file.missing()) {
            (record, _) if record.is_done() => "complete".to_owned(),
            (_, Some(program)) => format!("left out: {program} is not installed"),
            (_, None) => {
                let left = estimate.left(record.trials_done());
                all += left;
                format!("{}, {estimate}", if record.trials_done() > 0 { "resumed" } else { "run" })
            }
        };
        println!("{}: {doing}", file.name);
    }
    println!("About {} in all.", in_words(all));
}

/// Runs what is not complete. Returns why experiments failed, by name.
fn run_all(
    root: &Path,
    files: &[&ExperimentFile],
    results: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let stopped = Arc::new(AtomicBool::new(false));
    // The programs that run get the signal, too, and end.
    signal_hook::flag::register(SIGINT, stopped.clone())
        .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let mut failures = BTreeMap::new();
    for file in files {
        let record = Record::of(results, file);
        if record.is_done() || file.missing().is_some() {
            continue;
        }
        println!("\n{}: {}", file.name, file.question);
        let ended = Databases::wanted(root, file).and_then(|_running| execute(file, &record, results));
        if stopped.load(Ordering::Relaxed) {
            println!("Stopped; the same command continues.");
            break;
        }
        if let Err(why) = ended {
            eprintln!("{}: failed: {why}", file.name);
            failures.insert(file.name.clone(), why);
        }
    }
    Ok(failures)
}

/// Runs an experiment or the rest of it.
fn execute(file: &ExperimentFile, record: &Record, results: &Path) -> Result<(), String> {
    let mut command = Command::new(kendall());
    command.arg("run");
    match record {
        Record::Incomplete { folder, .. } => command.arg("--resume").arg(folder),
        _ => command.arg(&file.path).arg("--results").arg(record::folder(results, file)),
    };
    let status = command.status().map_err(|error| format!("cannot start kendall: {error}"))?;
    // The exit status says what was expected of the result, too; only the result counts here.
    match Record::of(results, file).is_done() {
        true => Ok(()),
        false => Err(format!("kendall run ended before the last trial ({status})")),
    }
}

/// Writes the page and its pictures; pictures of experiments without a result are removed.
fn write_page(
    root: &Path,
    files: &[ExperimentFile],
    results: &Path,
    failures: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut files: Vec<&ExperimentFile> = files.iter().collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let path = root.join(PAGE);
    let pictures = path.with_file_name(PICTURES);
    create(&pictures)?;
    let entries: Vec<Entry> = files
        .into_iter()
        .map(|file| entry(file, results, &pictures, failures.get(&file.name)))
        .collect::<Result<_, _>>()?;
    let shown: BTreeSet<String> = entries.iter().filter_map(Entry::picture_file).collect();
    let cannot = |error: io::Error| format!("cannot read {}: {error}", pictures.display());
    for picture in fs::read_dir(&pictures).map_err(cannot)?.flatten() {
        if !shown.contains(&*picture.file_name().to_string_lossy()) {
            fs::remove_file(picture.path())
                .map_err(|error| format!("cannot remove {}: {error}", picture.path().display()))?;
        }
    }
    write(&path, page::page(&entries).as_bytes())?;
    println!("Written: {PAGE}");
    Ok(())
}

/// What the page has of an experiment. Of a complete run, it is kept, and its picture is written.
fn entry(
    file: &ExperimentFile,
    results: &Path,
    pictures: &Path,
    failure: Option<&String>,
) -> Result<Entry, String> {
    let (name, question) = (file.name.clone(), file.question.clone());
    let folder = match Record::of(results, file) {
        Record::Complete(folder) => folder,
        Record::Kept(path) => return kept(&path).map(|finished| Entry::Finished(Box::new(finished))),
        record => {
            let missing = || Some(format!("{} is not installed", file.missing()?));
            let begun = || (record.trials_done() > 0).then(|| "it was interrupted".to_owned());
            return Ok(Entry::Missing {
                name,
                question,
                why: failure.cloned().or_else(missing).or_else(begun),
            });
        }
    };
    let report = report(&folder)?;
    let manifest = Manifest::read(&folder).map_err(|error| error.to_string())?;
    let run = CompleteRun { name, question, report, manifest };
    if let Some(picture) = run.picture() {
        write(&pictures.join(picture.file), picture.svg.as_bytes())?;
    }
    let finished = run.finished();
    let text = serde_json::to_vec_pretty(&finished).map_err(|error| error.to_string())?;
    write(&record::kept_file(results, file), &text)?;
    record::remove_earlier_versions(results, file);
    Ok(Entry::Finished(Box::new(finished)))
}

/// What the page has of a run that is no longer there, or was made on another machine.
fn kept(path: &Path) -> Result<Finished, String> {
    let text = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The report of a run, as `kendall report` makes it.
fn report(folder: &PathBuf) -> Result<kendall_analysis::Report, String> {
    let output = Command::new(kendall()).arg("report").arg(folder).arg("--json").output();
    let output = output.map_err(|error| format!("cannot start kendall: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the report of {}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_first_exists() {
        let files = experiment_file::all(&root().join(EXPERIMENTS)).unwrap();
        for name in FIRST {
            assert!(files.iter().any(|file| file.name == name), "{name}");
        }
    }
}
