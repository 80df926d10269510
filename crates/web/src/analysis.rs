//! The interface to the analysis: the report of a run, and a comparison of runs.

use std::fmt;
use std::path::{Path, PathBuf};

use kendall_analysis::sides;
use kendall_evidence::compare::{Comparison, Terms, compare};
use kendall_report::analyse_into_page;
use kendall_system::System;

/// Writes `report.html` for the run or the recorded load in a folder, or returns why it cannot.
type WriteReport = dyn Fn(&Path) -> Result<(), String> + Send + Sync;
/// Compares runs, each with a name and its folder, the first with all others, or returns why it cannot.
type CompareRuns = dyn Fn(&[(String, PathBuf)]) -> Result<Compared, String> + Send + Sync;

/// The functions of the analysis that pages need.
pub(crate) struct Analysis {
    pub(crate) write_report: Box<WriteReport>,
    pub(crate) compare: Box<CompareRuns>,
}

/// A comparison of runs.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// The result.
    pub(crate) comparison: Comparison,
    /// The terms of the comparison.
    pub(crate) terms: Terms,
    /// What was left out, and why: sentences without a full stop.
    pub(crate) left_out: Vec<String>,
}

impl Analysis {
    /// The analysis for runs of these systems.
    pub(crate) fn of(systems: &'static [System]) -> Self {
        let write_report = move |folder: &Path| {
            analyse_into_page(folder, systems).map(drop).map_err(|error| error.to_string())
        };
        let compare = move |runs: &[(String, PathBuf)]| compared(runs, systems);
        Self { write_report: Box::new(write_report), compare: Box::new(compare) }
    }
}

/// As `kendall compare` does it, on its default terms.
fn compared(runs: &[(String, PathBuf)], systems: &'static [System]) -> Result<Compared, String> {
    let named: Vec<(String, Vec<PathBuf>)> =
        runs.iter().map(|(name, folder)| (name.clone(), vec![folder.clone()])).collect();
    let sides = sides(&named, systems).map_err(|error| error.to_string())?;
    let terms = Terms::default();
    let comparison = compare(&sides.metrics, &sides.places, &terms);
    Ok(Compared { comparison, terms, left_out: sides.doubts })
}

impl fmt::Debug for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analysis").finish_non_exhaustive()
    }
}
