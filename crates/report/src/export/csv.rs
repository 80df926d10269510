//! Requests as comma-separated text: the columns of `requests.parquet` behind the trial and whether it is warm-up.

use std::path::Path;

use kendall_record::RequestRow;

use crate::export::format::{Export, ExportError, Exported, ExportedTrial};

/// The heads of the columns. Instants are in nanoseconds since the start of the trial, and empty where they never came;
/// service and the fixed part of it are in nanoseconds.
const HEAD: [&str; 17] = [
    "trial",
    "warmup",
    "index",
    "class",
    "scheduled",
    "sent",
    "first_byte",
    "completed",
    "queued",
    "started",
    "finished",
    "outcome",
    "bytes_out",
    "bytes_in",
    "port",
    "service",
    "fixed",
];

/// Every request as a row of text.
#[derive(Debug)]
pub struct Csv;

impl Export for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "all requests in one file, a row each"
    }

    fn file(&self) -> &'static str {
        "requests.csv"
    }

    /// One trial is in memory at a time.
    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        let failed = |error: csv::Error| ExportError::write(to)(error.into());
        let mut out = csv::Writer::from_path(to).map_err(failed)?;
        out.write_record(HEAD).map_err(failed)?;
        for trial in &run.trials {
            for row in trial.rows()? {
                out.write_record(cells(trial, &row)).map_err(failed)?;
            }
        }
        out.flush().map_err(ExportError::write(to))
    }
}

fn cells(trial: &ExportedTrial, row: &RequestRow) -> [String; HEAD.len()] {
    let instant = |instant: Option<i64>| instant.map_or_else(String::new, |ns| ns.to_string());
    [
        trial.name.clone(),
        (!trial.counts(row)).to_string(),
        row.index.to_string(),
        row.class.to_string(),
        row.scheduled.to_string(),
        instant(row.sent),
        instant(row.first_byte),
        instant(row.completed),
        instant(row.queued),
        instant(row.started),
        instant(row.finished),
        row.outcome.name().to_owned(),
        row.bytes_out.to_string(),
        row.bytes_in.to_string(),
        row.port.to_string(),
        instant(row.service),
        instant(row.fixed),
    ]
}
