//! The response times of each trial for the tools of HdrHistogram: by percentile (`.hgrm`), and as a log of histograms (`.hlog`).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use kendall_archive::hgrm;
use kendall_files::Output;
use kendall_record::RequestRow;

use crate::export::format::{Export, ExportError, Exported, ExportedTrial, Target};

/// A folder with two files for each trial.
#[derive(Debug)]
pub struct Hdr;

impl Export for Hdr {
    fn name(&self) -> &'static str {
        "hdr"
    }

    fn about(&self) -> &'static str {
        ".hgrm and .hlog of each trial"
    }

    fn file(&self) -> &'static str {
        "hdr"
    }

    fn target(&self) -> Target {
        Target::Folder
    }

    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        run.trials.iter().try_for_each(|trial| histograms(trial, to))
    }
}

/// Copies a file, of any length.
fn copy(from: &mut File, to: &Path) -> io::Result<()> {
    let mut output = Output::open(to)?;
    io::copy(from, output.file())?;
    output.finish()
}

fn histograms(trial: &ExportedTrial, to: &Path) -> Result<(), ExportError> {
    let rows = trial.rows()?;
    let counted = rows.iter().filter(|row| trial.counts(row));
    let percentiles = to.join(format!("{}.hgrm", trial.name));
    kendall_files::write(&percentiles, hgrm(counted.filter_map(RequestRow::response_ns)))
        .map_err(ExportError::write(&percentiles))?;
    let (from, log) = (trial.folder.join("latency.hlog"), to.join(format!("{}.hlog", trial.name)));
    // A trial that was cut off has none.
    match kendall_files::open(&from) {
        Ok(mut histograms) => copy(&mut histograms, &log).map_err(ExportError::write(&log)),
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ExportError::write(&log)(source)),
    }
}
