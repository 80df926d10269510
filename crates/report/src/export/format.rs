//! Formats of other tools, and the data to export.

use std::fmt;
use std::path::{Path, PathBuf};

use kendall_analysis::{Report, TrialLine, TrialResult};
use kendall_archive::read_trial;
use kendall_record::{RecordError, RequestRow};

use crate::export::suite::Suite;

/// A format of other tools.
pub trait Export: fmt::Debug + Send + Sync {
    /// The format's name on the command line: "csv".
    fn name(&self) -> &'static str;

    /// The contents of the format, as a clause of the command's help.
    fn about(&self) -> &'static str;

    /// The usual name of what is written: with its extension, where it is a file.
    fn file(&self) -> &'static str;

    /// Whether a file is written or a folder of files.
    fn target(&self) -> Target {
        Target::File
    }

    /// Whether there is nothing to write without a trial that counts.
    fn needs_trials(&self) -> bool {
        true
    }

    /// Writes a run to a file, or into a folder that is there.
    ///
    /// # Errors
    /// Fails where a record cannot be read, the file cannot be written, or the format has nothing to say of the run.
    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError>;
}

/// The kind of place that a format is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A single file.
    File,
    /// A folder of files.
    Folder,
}

/// A run to export: the trials that count, and their results.
#[derive(Debug)]
pub struct Exported<'a> {
    /// The folder of the run.
    pub folder: &'a Path,
    /// The trials that are in its answers.
    pub trials: Vec<ExportedTrial>,
    /// The answers of the run.
    pub answers: Answers<'a>,
    /// The results of its expectations.
    pub expected: Suite<'a>,
}

/// The answers of a run.
#[derive(Debug)]
pub enum Answers<'a> {
    /// The answers of an experiment.
    Experiment(&'a Report),
    /// The answers of a single load.
    Load(&'a TrialResult),
}

/// A trial whose rows are written.
#[derive(Clone, Debug)]
pub struct ExportedTrial {
    /// The trial's name.
    pub name: String,
    /// The trial's point, as an index into [`Report::points`]; 0 for a single load.
    pub point: usize,
    /// The folder with its rows.
    pub folder: PathBuf,
    /// Requests due before this are its warm-up.
    pub warmup_ns: i64,
}

impl<'a> Exported<'a> {
    /// The run of an experiment, of which a report was made.
    pub fn experiment(folder: &'a Path, report: &'a Report) -> Self {
        let trial = |line: &TrialLine| {
            Some(ExportedTrial {
                name: line.id.clone(),
                point: line.point?,
                folder: folder.join("trials").join(&line.id),
                warmup_ns: line.left_out.map_or(0, |left_out| left_out.until_ns),
            })
        };
        Self {
            folder,
            trials: report.trials.iter().filter_map(trial).collect(),
            answers: Answers::Experiment(report),
            expected: Suite::of(report),
        }
    }

    /// A recorded load.
    pub fn load(folder: &'a Path, result: &'a TrialResult) -> Self {
        let name =
            folder.file_name().map_or_else(|| "load".into(), |name| name.to_string_lossy().into_owned());
        let warmup_ns = result.left_out_ns().unwrap_or_default();
        Self {
            folder,
            trials: vec![ExportedTrial { name, point: 0, folder: folder.into(), warmup_ns }],
            answers: Answers::Load(result),
            expected: Suite::of_load(result),
        }
    }
}

impl ExportedTrial {
    /// The trial's rows, read from its folder.
    ///
    /// # Errors
    /// Fails where they cannot be read.
    pub fn rows(&self) -> Result<Vec<RequestRow>, RecordError> {
        read_trial(&self.folder)
    }

    /// Whether a request is in the trial's answer.
    pub fn counts(&self, row: &RequestRow) -> bool {
        row.scheduled >= self.warmup_ns
    }
}

/// The reason why a run cannot be written in a format.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ExportError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the run in {} has no trial that counts, so there is nothing to write", .0.display())]
    Nothing(PathBuf),
    #[error(
        "openmetrics is a format for runs of an experiment, not for a single load; choose another format"
    )]
    NotOfLoads,
}

impl ExportError {
    /// Makes the error that a path cannot be written, for `map_err`.
    pub(super) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }
}
