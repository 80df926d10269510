//! `kendall export`, and `--export` and `--junit` of other commands.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::LazyLock;

use anyhow::Context;
use clap::Args;
use kendall_analysis::{Report, TrialResult, analyse};
use kendall_report::export::format::{Export as Format, Exported};
use kendall_report::export::junit::to_xml;
use kendall_report::export::suite::Suite;
use kendall_report::export::{self, named};

use crate::print;
use crate::systems::SYSTEMS;

/// The help of --format: every format of the table.
static FORMATS: LazyLock<String> =
    LazyLock::new(|| format!("The format, which may be given several times: {}", export::in_words()));

#[derive(Args)]
pub(crate) struct ExportOptions {
    /// The folder of a run, results/EXPERIMENT/INSTANT, or one that kendall load --record wrote
    results: PathBuf,

    #[arg(long, value_name = "FORMAT", required = true, value_parser = named, help = FORMATS.as_str())]
    format: Vec<&'static dyn Format>,

    /// The folder to write to [default: export in the folder of the run]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A format, and perhaps where it is to be written: "csv" or "csv=requests.csv".
#[derive(Clone, Debug)]
pub(crate) struct Export {
    format: &'static dyn Format,
    to: Option<PathBuf>,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, to) = text.split_once('=').map_or((text, None), |(format, to)| (format, Some(to)));
        if to == Some("") {
            return Err(format!("{text:?} has no file name after ="));
        }
        Ok(Self { format: named(format)?, to: to.map(PathBuf::from) })
    }
}

pub(crate) fn export(options: &ExportOptions) -> anyhow::Result<ExitCode> {
    let to = |format: &dyn Format| options.out.as_ref().map(|folder| folder.join(format.file()));
    let wanted: Vec<Export> =
        options.format.iter().map(|&format| Export { format, to: to(format) }).collect();
    match TrialResult::of_load(&options.results)? {
        Some(found) => of_load(&options.results, &found, &wanted)?,
        None => of_run(&options.results, &analyse(&options.results, SYSTEMS)?, &wanted)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a run of which a report was made.
pub(crate) fn of_run(folder: &Path, report: &Report, wanted: &[Export]) -> anyhow::Result<()> {
    write(&Exported::experiment(folder, report), wanted)
}

/// Writes a recorded load.
pub(crate) fn of_load(folder: &Path, result: &TrialResult, wanted: &[Export]) -> anyhow::Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    write(&Exported::load(folder, result), wanted)
}

fn write(run: &Exported<'_>, wanted: &[Export]) -> anyhow::Result<()> {
    for Export { format, to } in wanted {
        let written = export::write(run, *format, to.as_deref())?;
        print::note(&format!("Exported {}: {}", format.name(), written.display()));
    }
    Ok(())
}

/// Writes what was expected as JUnit XML.
pub(crate) fn junit(path: &Path, suite: &Suite<'_>) -> anyhow::Result<()> {
    kendall_files::write(path, to_xml(suite)).with_context(|| format!("cannot write {}", path.display()))?;
    print::note(&format!("JUnit XML: {}", path.display()));
    Ok(())
}
