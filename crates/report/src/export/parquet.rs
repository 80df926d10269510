//! Every request of a run in one Parquet table.

use std::path::Path;

use kendall_archive::MergedTable;

use crate::export::format::{Export, ExportError, Exported};

/// Every request in one Parquet table.
#[derive(Debug)]
pub struct Parquet;

impl Export for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn about(&self) -> &'static str {
        "all requests in one table"
    }

    fn file(&self) -> &'static str {
        "requests.parquet"
    }

    /// One trial is in memory at a time.
    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        let mut table = MergedTable::create(to)?;
        for trial in &run.trials {
            table.add(&trial.name, trial.warmup_ns, &trial.rows()?)?;
        }
        Ok(table.finish()?)
    }
}
