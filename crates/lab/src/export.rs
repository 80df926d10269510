//! A run in the formats of other tools: one file with the requests of all trials, or the answers.
//!
//! Only the trials that are in the answers are written. Every row says whether it is warm-up, so that whoever computes the
//! answers again from the file alone can leave out what they leave out.

mod rows;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kendall_archive::{MergedTable, hgrm, read_trial};
use kendall_record::{RecordError, RequestRow};
use kendall_report::openmetrics::{ResponseCounts, openmetrics};
use kendall_report::{Report, TrialLine};

use rows::write_csv;

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Every request as a row of text.
    Csv,
    /// The answers, as `kendall report --json` prints them.
    Json,
    /// Every request in one table.
    Parquet,
    /// The response times of each trial by percentile, for HdrHistogram's tools.
    Hdr,
    /// The answers as text for Prometheus and its like.
    OpenMetrics,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Csv, Self::Json, Self::Parquet, Self::Hdr, Self::OpenMetrics];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Parquet => "parquet",
            Self::Hdr => "hdr",
            Self::OpenMetrics => "openmetrics",
        }
    }

    /// What it is written to in a folder: a file, or a folder of files.
    pub fn file(self) -> &'static str {
        match self {
            Self::Csv => "requests.csv",
            Self::Json => "answers.json",
            Self::Parquet => "requests.parquet",
            Self::Hdr => "hdr",
            Self::OpenMetrics => "metrics.txt",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| {
            format!("{text:?} is no format; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// Why a run cannot be written in a format.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ExportError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the run in {} has no trial that counts, so there is nothing to write", .0.display())]
    Nothing(PathBuf),
}

/// A trial of which something is to be written.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is called.
    pub name: String,
    /// The folder with its rows.
    pub folder: PathBuf,
    /// Requests due before this are its warm-up.
    pub warmup_ns: i64,
}

impl Source {
    /// The trials of a run that are in its answers.
    fn of(run: &Path, report: &Report) -> Vec<(usize, Self)> {
        let source = |line: &TrialLine| {
            let source = Self {
                name: line.id.clone(),
                folder: run.join("trials").join(&line.id),
                warmup_ns: line.left_out.map_or(0, |left_out| left_out.until_ns),
            };
            Some((line.point?, source))
        };
        report.trials.iter().filter_map(source).collect()
    }

    fn rows(&self) -> Result<Vec<RequestRow>, RecordError> {
        read_trial(&self.folder)
    }
}

/// Writes a run, of which a report was made, in a format: to a path, or where none is given under its usual name in a folder
/// `export` of the run. Returns where.
///
/// # Errors
/// Fails where a record cannot be read or the file cannot be written.
pub fn run(run: &Path, report: &Report, format: Format, to: Option<&Path>) -> Result<PathBuf, ExportError> {
    let to = place(run, format, to)?;
    let trials = Source::of(run, report);
    if trials.is_empty() {
        return Err(ExportError::Nothing(run.into()));
    }
    match format {
        Format::Json => write(&to, report.to_json() + "\n")?,
        Format::OpenMetrics => write(&to, metrics(report, &trials)?)?,
        Format::Csv | Format::Parquet | Format::Hdr => {
            let trials: Vec<Source> = trials.into_iter().map(|(_, source)| source).collect();
            requests(&trials, format, &to)?;
        }
    }
    Ok(to)
}

/// Where a format is to be written, with its folder made.
///
/// # Errors
/// Fails where that folder cannot be made.
pub fn place(run: &Path, format: Format, to: Option<&Path>) -> Result<PathBuf, ExportError> {
    let to = to.map_or_else(|| run.join("export").join(format.file()), Path::to_path_buf);
    let folder = if format == Format::Hdr { Some(to.as_path()) } else { to.parent() };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(|source| ExportError::Write { path: to.clone(), source })?;
    Ok(to)
}

/// Writes the rows of trials, one trial in memory at a time.
///
/// # Errors
/// Fails where a record cannot be read or the file cannot be written.
pub fn requests(trials: &[Source], format: Format, to: &Path) -> Result<(), ExportError> {
    match format {
        Format::Parquet => {
            let mut table = MergedTable::create(to)?;
            for trial in trials {
                table.add(&trial.name, trial.warmup_ns, &trial.rows()?)?;
            }
            Ok(table.finish()?)
        }
        Format::Hdr => trials.iter().try_for_each(|trial| histograms(trial, to)),
        Format::Csv | Format::Json | Format::OpenMetrics => write_csv(trials, to),
    }
}

/// The response times of a trial by percentile, and its log of histograms.
fn histograms(trial: &Source, to: &Path) -> Result<(), ExportError> {
    let rows = trial.rows()?;
    let counted = rows.iter().filter(|row| row.scheduled >= trial.warmup_ns);
    write(&to.join(format!("{}.hgrm", trial.name)), hgrm(counted.filter_map(RequestRow::response_ns)))?;
    let (from, log) = (trial.folder.join("latency.hlog"), to.join(format!("{}.hlog", trial.name)));
    // A trial that was cut off has none.
    match fs::copy(&from, &log) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(ExportError::Write { path: log, source })
        }
        _ => Ok(()),
    }
}

fn metrics(report: &Report, trials: &[(usize, Source)]) -> Result<String, ExportError> {
    let mut responses = vec![ResponseCounts::default(); report.points.len()];
    for (point, trial) in trials {
        for row in trial.rows()?.iter().filter(|row| row.scheduled >= trial.warmup_ns) {
            if let (Some(counts), Some(response_ns)) = (responses.get_mut(*point), row.response_ns()) {
                counts.add(response_ns as f64 / 1e9);
            }
        }
    }
    Ok(openmetrics(report, &responses))
}

fn write(path: &Path, text: String) -> Result<(), ExportError> {
    fs::write(path, text).map_err(|source| ExportError::Write { path: path.into(), source })
}
