//! A run in the formats of other tools: each format is one file, and [`FORMATS`] lists them all.
//!
//! Only the trials that are in the answers are written. Every row says whether it is warm-up, so that a program that computes the
//! answers again from the file alone can leave out the same requests.

pub mod csv;
pub mod format;
pub mod hdr;
pub mod json;
pub mod junit;
pub mod openmetrics;
pub mod parquet;
pub mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use crate::export::format::{Export, ExportError, Exported, Target};

/// Every format. A new one is a file next to this one and a line here.
pub const FORMATS: [&dyn Export; 6] =
    [&csv::Csv, &json::Json, &parquet::Parquet, &hdr::Hdr, &openmetrics::OpenMetrics, &junit::JUnit];

/// The format of this name.
///
/// # Errors
/// Names those that there are, where none is called so.
pub fn named(text: &str) -> Result<&'static dyn Export, String> {
    let known = FORMATS.into_iter().find(|format| format.name() == text);
    known.ok_or_else(|| {
        format!("{text:?} is not a format; the formats are {}", FORMATS.map(Export::name).join(", "))
    })
}

/// The formats in words, for the help of a command: "csv (every request …), json (…)".
pub fn in_words() -> String {
    FORMATS.map(|format| format!("{} ({})", format.name(), format.about())).join(", ")
}

/// Writes a run in a format: to a path, or where none is given under its usual name in a folder `export` of the run. Returns
/// where.
///
/// # Errors
/// Fails where a record cannot be read, the file cannot be written, or the format has nothing to say of the run.
pub fn write(run: &Exported<'_>, format: &dyn Export, to: Option<&Path>) -> Result<PathBuf, ExportError> {
    if run.trials.is_empty() && format.needs_trials() {
        return Err(ExportError::Nothing(run.folder.into()));
    }
    let to = to.map_or_else(|| run.folder.join("export").join(format.file()), Path::to_path_buf);
    let folder = if format.target() == Target::Folder { Some(to.as_path()) } else { to.parent() };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), fs::create_dir_all).map_err(ExportError::write(&to))?;
    format.write(run, &to)?;
    Ok(to)
}
