//! The page of a run as a file in its folder: `report.html`; that of a validation: `validation.html`.

use std::io;
use std::path::{Path, PathBuf};

use kendall_analysis::traffic::FlowsReport;
use kendall_analysis::traffic::flows::read as read_flows;
use kendall_analysis::{Report, TrialResult, ValidationReport, analyse, read_validation};
use kendall_experiment::RunError;
use kendall_record::RecordError;
use kendall_system::System;

use crate::load::load_page;
use crate::page::page;
use crate::traffic::flows_page;
use crate::validation::validation_page;

/// The page of a run, of a load or of flows.
const REPORT: &str = "report.html";
/// The page of a validation.
const VALIDATION: &str = "validation.html";

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PageError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Analyses the run, the recorded load, the recorded flows or the validation in a folder, and writes its page there. Returns the page's
/// path.
///
/// # Errors
/// Fails where the folder holds none of them, or the page cannot be written.
pub fn analyse_into_page(folder: &Path, systems: &'static [System]) -> Result<PathBuf, PageError> {
    if let Some(found) = read_flows(folder)? {
        return write_flows_page(&found, folder);
    }
    if let Some(found) = read_validation(folder)? {
        return write_validation_page(&found, folder);
    }
    match TrialResult::of_load(folder)? {
        Some(found) => write_load_page(&found, folder),
        None => write_page(&analyse(folder, systems)?, folder),
    }
}

/// Writes the page of a run into its folder. Returns the page's path.
///
/// # Errors
/// Fails where it cannot be written.
pub fn write_page(report: &Report, folder: &Path) -> Result<PathBuf, PageError> {
    replace(&page(report), folder, REPORT)
}

/// Writes the page of a recorded load into its folder. Returns the page's path.
///
/// # Errors
/// Fails where it cannot be written.
pub fn write_load_page(found: &TrialResult, folder: &Path) -> Result<PathBuf, PageError> {
    replace(&load_page(found), folder, REPORT)
}

/// Writes the page of recorded flows into their folder. Returns the page's path.
///
/// # Errors
/// Fails where it cannot be written.
pub fn write_flows_page(found: &FlowsReport, folder: &Path) -> Result<PathBuf, PageError> {
    replace(&flows_page(found), folder, REPORT)
}

/// Writes the page of a validation into its folder. Returns the page's path.
///
/// # Errors
/// Fails where it cannot be written.
pub fn write_validation_page(found: &ValidationReport, folder: &Path) -> Result<PathBuf, PageError> {
    replace(&validation_page(found), folder, VALIDATION)
}

/// A reader meanwhile gets the old page or the new one.
fn replace(html: &str, folder: &Path, name: &str) -> Result<PathBuf, PageError> {
    let path = folder.join(name);
    kendall_files::replace(&path, html).map_err(|source| PageError::Write { path: path.clone(), source })?;
    Ok(path)
}
