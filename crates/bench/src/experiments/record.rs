//! The runs of a version of an experiment file: their folder, and which of them is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kendall_archive::Manifest;
use sha2::{Digest, Sha256};

use crate::experiment_file::ExperimentFile;

/// The file that a trial has once it is done.
const ANSWER: &str = "answer.json";
/// The number of bytes of a hash in the name of a folder.
const HASH_BYTES: usize = 4;

/// What there is of a version of an experiment file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The folder of the latest complete run.
    Complete(PathBuf),
    /// The file of what the page has of a complete run, whose folder is not here.
    Kept(PathBuf),
    /// The folder of the latest run; some of its trials may be done.
    Incomplete { folder: PathBuf, done: usize },
    /// No run.
    Nothing,
}

impl Record {
    pub(super) fn of(results: &Path, file: &ExperimentFile) -> Self {
        let mut runs = runs(&folder(results, file));
        if let Some((run, _)) = runs.iter().rev().find(|(_, manifest)| manifest.ended_utc.is_some()) {
            return Self::Complete(run.clone());
        }
        let kept = kept_file(results, file);
        if kept.exists() {
            return Self::Kept(kept);
        }
        runs.pop().map_or(Self::Nothing, |(run, _)| Self::Incomplete { done: trials_done(&run), folder: run })
    }

    /// Whether there is a complete run.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Complete(_) | Self::Kept(_))
    }

    /// How many trials an incomplete run has.
    pub(super) fn trials_done(&self) -> usize {
        if let Self::Incomplete { done, .. } = self { *done } else { 0 }
    }
}

/// The folder of the runs of this version of a file: its name and the beginning of the SHA-256 of its text.
pub(super) fn folder(results: &Path, file: &ExperimentFile) -> PathBuf {
    let hash: String =
        Sha256::digest(&file.text).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    results.join(format!("{}{hash}", stem(file)))
}

/// The file in which the page keeps what it has of this version of an experiment.
pub(super) fn kept_file(results: &Path, file: &ExperimentFile) -> PathBuf {
    folder(results, file).with_added_extension("json")
}

/// Removes what was kept of other versions of an experiment.
pub(super) fn remove_earlier_versions(results: &Path, file: &ExperimentFile) {
    let (stem, current) = (stem(file), kept_file(results, file));
    for entry in fs::read_dir(results).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&stem) && name.ends_with(".json") && entry.path() != current {
            // One that stays is not read, because its hash is another.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What the folders of all versions of a file begin with.
fn stem(file: &ExperimentFile) -> String {
    format!("{}@", file.name.replace('/', "-"))
}

/// The time that the latest complete run of any version took.
pub(super) fn earlier(results: &Path, file: &ExperimentFile) -> Option<(usize, Duration)> {
    let is_version = |folder: &PathBuf| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem(file)))
    };
    let runs = folders(results).into_iter().filter(is_version).flat_map(|folder| runs(&folder));
    let lasted = runs.filter_map(|(run, manifest)| Some((manifest.lasted()?, manifest.ended_utc?, run)));
    let (lasted, _, run) = lasted.max_by(|a, b| a.1.cmp(&b.1))?;
    Some((trials_done(&run), lasted))
}

/// The runs in a folder `EXPERIMENT/INSTANT`, the latest last.
fn runs(folder: &Path) -> Vec<(PathBuf, Manifest)> {
    let runs = folders(folder).into_iter().flat_map(|experiment| folders(&experiment));
    runs.filter_map(|run| Some((run.clone(), Manifest::read(&run).ok()?))).collect()
}

fn trials_done(run: &Path) -> usize {
    folders(&run.join("trials")).iter().filter(|trial| trial.join(ANSWER).exists()).count()
}

/// The folders in a folder, in the order of their names; empty if it does not exist.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ExperimentFile {
        let (name, text) = ("reverse/caching".to_owned(), text.to_owned());
        ExperimentFile { name, text, path: PathBuf::new(), question: String::new(), command: None }
    }

    /// A run with this number of finished trials of three.
    fn run(
        results: &Path,
        file: &ExperimentFile,
        instant: &str,
        done: usize,
        ended: Option<&str>,
    ) -> PathBuf {
        let run = folder(results, file).join("caching").join(instant);
        for trial in 0..3 {
            let folder = run.join("trials").join(format!("{trial:03}"));
            fs::create_dir_all(&folder).unwrap();
            if trial < done {
                fs::write(folder.join(ANSWER), "{}").unwrap();
            }
        }
        let started_utc = "2026-11-21T04:00:00Z".to_owned();
        let manifest =
            Manifest { started_utc, ended_utc: ended.map(Into::into), ..Manifest::here("caching", 1) };
        manifest.write(&run).unwrap();
        run
    }

    #[test]
    fn only_a_run_of_the_same_text_that_ended_is_complete() {
        let results = tempfile::tempdir().unwrap();
        let (old, new) = (file("repeats = 2"), file("repeats = 3"));
        let of = |file| Record::of(results.path(), file);
        assert_eq!((of(&new), earlier(results.path(), &new)), (Record::Nothing, None));
        let complete = run(results.path(), &old, "2026-11-21T04-00-00Z", 3, Some("2026-11-21T04:02:00Z"));
        assert_eq!((of(&old), of(&new)), (Record::Complete(complete.clone()), Record::Nothing));
        assert_eq!(earlier(results.path(), &new), Some((3, Duration::from_secs(120))));

        let folder = run(results.path(), &new, "2026-11-22T04-00-00Z", 1, None);
        assert_eq!(of(&new), Record::Incomplete { folder, done: 1 });
        // An interrupted run after a complete one does not count.
        run(results.path(), &old, "2026-11-23T04-00-00Z", 2, None);
        assert_eq!(of(&old), Record::Complete(complete.clone()));

        // The run is removed, and what the page has of it is kept.
        fs::write(kept_file(results.path(), &old), "{}").unwrap();
        fs::remove_dir_all(complete).unwrap();
        assert_eq!(of(&old), Record::Kept(kept_file(results.path(), &old)));
        assert!(of(&old).is_done() && !of(&new).is_done());
        // A new version replaces it.
        fs::write(kept_file(results.path(), &new), "{}").unwrap();
        remove_earlier_versions(results.path(), &new);
        assert!(!kept_file(results.path(), &old).exists() && kept_file(results.path(), &new).exists());
    }

    #[test]
    fn a_name_that_another_begins_with_is_not_a_version_of_it() {
        let results = tempfile::tempdir().unwrap();
        let score = ExperimentFile { name: "reverse/caching-score".into(), ..file("") };
        run(results.path(), &score, "2026-11-21T04-00-00Z", 3, Some("2026-11-21T04:02:00Z"));
        assert_eq!(earlier(results.path(), &file("")), None);
    }
}
