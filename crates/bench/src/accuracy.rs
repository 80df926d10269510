//! How right predictions are: validates the servers of `experiments/validate`, and writes `docs/accuracy.md` from all results.
//!
//! A server with a result is not measured again, so an interrupted series goes on where it stopped. A server that fails does not end
//! the series.

mod page;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use kendall_analysis::{VALIDATION, read_validation};

use page::Validation;

use crate::experiment_file::{self, ExperimentFile};

/// The first argument that calls this.
pub(crate) const WORD: &str = "accuracy";

/// From the root of the repository.
const EXPERIMENTS: &str = "experiments/validate";
const RESULTS: &str = "results/accuracy";
const NOTES: &str = "docs/accuracy-notes.toml";
const PAGE: &str = "docs/accuracy.md";

/// Validates the servers of these names, or all, with the options of `kendall validate` that follow `--`.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let (names, options) = match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
    crate::common::status(series(&crate::common::root(), names, options))
}

/// Returns the names of the servers that failed.
fn series(root: &Path, names: &[String], options: &[String]) -> Result<Vec<String>, String> {
    let servers = experiment_file::all(&root.join(EXPERIMENTS))?;
    let results = root.join(RESULTS);
    let mut failed = Vec::new();
    for server in experiment_file::named(&servers, names)? {
        let folder = results.join(&server.name);
        match Step::of(server, &folder) {
            Step::Done => println!("{}: there is a result in {RESULTS}/{0}", server.name),
            Step::Missing(program) => {
                println!("{}: skipped, because {program} is not installed", server.name)
            }
            Step::Validate => {
                println!("{}: {}", server.name, server.question);
                if let Err(why) = validate(server, &folder, options) {
                    eprintln!("{}: failed: {why}", server.name);
                    failed.push(server.name.clone());
                }
            }
        }
    }
    let text = page::page(&validations(&servers, &results, &root.join(NOTES))?);
    let path = root.join(PAGE);
    fs::write(&path, text).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
    println!("Written: {PAGE}");
    Ok(failed)
}

/// What to do with a server.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// There is a complete result.
    Done,
    /// A program is not installed.
    Missing(String),
    /// There is no result, or an incomplete one.
    Validate,
}

impl Step {
    fn of(server: &ExperimentFile, folder: &Path) -> Self {
        if folder.join(VALIDATION).exists() {
            return Self::Done;
        }
        server.missing().map_or(Self::Validate, |program| Self::Missing(program.to_owned()))
    }
}

/// Validates a server, from the start: what an interrupted validation left is removed.
fn validate(server: &ExperimentFile, folder: &Path, options: &[String]) -> Result<(), String> {
    remove(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    let status = Command::new(crate::common::kendall())
        .arg("validate")
        .arg(&server.path)
        .arg("--record")
        .arg(folder)
        .args(options)
        .status()
        .map_err(|error| format!("cannot start kendall: {error}"))?;
    // The exit status says how near the predictions came; only a result counts here.
    match folder.join(VALIDATION).exists() {
        true => Ok(()),
        false => Err(format!("kendall validate ended without a result ({status})")),
    }
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The notes about servers, by name: a paragraph of Markdown each. There may be no such file.
fn notes(file: &Path) -> Result<BTreeMap<String, String>, String> {
    match fs::read_to_string(file) {
        Ok(text) => toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(_) => Ok(BTreeMap::new()),
    }
}

/// The results that there are, in the order of the servers.
fn validations(servers: &[ExperimentFile], results: &Path, notes: &Path) -> Result<Vec<Validation>, String> {
    let notes = self::notes(notes)?;
    let mut found = Vec::new();
    for server in servers {
        let report = read_validation(&results.join(&server.name)).map_err(|error| error.to_string())?;
        found.extend(report.map(|report| Validation {
            name: server.name.clone(),
            question: server.question.clone(),
            versions: server.versions(),
            note: notes.get(&server.name).cloned(),
            report,
        }));
    }
    if found.is_empty() { Err(format!("there is no result in {RESULTS}")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(command: &str) -> ExperimentFile {
        ExperimentFile {
            name: "one".into(),
            path: "one.toml".into(),
            text: String::new(),
            question: "Does it hold?".into(),
            command: Some(command.into()),
        }
    }

    #[test]
    fn only_a_complete_result_is_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let of = |command: &str| Step::of(&server(command), folder.path());
        assert_eq!(of("exec sh"), Step::Validate);
        assert_eq!(of("exec no-such-program-here"), Step::Missing("no-such-program-here".into()));
        // What an interruption leaves is records without a result.
        fs::create_dir(folder.path().join("001-full-round-1")).unwrap();
        assert_eq!(of("exec sh"), Step::Validate);
        fs::write(folder.path().join(VALIDATION), "{}").unwrap();
        assert_eq!(of("exec no-such-program-here"), Step::Done);
    }

    #[test]
    fn an_incomplete_result_is_removed_and_a_missing_one_is_no_error() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("one");
        remove(&folder).unwrap();
        fs::create_dir_all(folder.join("001-full-round-1")).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn notes_are_optional_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.toml");
        assert!(notes(&file).unwrap().is_empty());
        fs::write(&file, "node = \"\"\"\nOne loop.\n\"\"\"\n").unwrap();
        assert_eq!(notes(&file).unwrap()["node"].trim(), "One loop.");
        fs::write(&file, "node = [").unwrap();
        assert!(notes(&file).is_err());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = series(&crate::common::root(), &["no-such-server".into()], &[]).unwrap_err();
        assert!(error.contains("nginx-gzip") && error.contains("node"), "{error}");
    }
}
