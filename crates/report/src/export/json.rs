//! The answers of a run as JSON, as `kendall report --json` prints them.

use std::path::Path;

use crate::export::format::{Answers, Export, ExportError, Exported};

/// The answers as JSON.
#[derive(Debug)]
pub struct Json;

impl Export for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "the answers"
    }

    fn file(&self) -> &'static str {
        "answers.json"
    }

    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        let text = match &run.answers {
            Answers::Experiment(report) => report.to_json() + "\n",
            Answers::Load(result) => result.to_json() + "\n",
        };
        kendall_files::write(to, text).map_err(ExportError::write(to))
    }
}
