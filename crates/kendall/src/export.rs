//! `kendall export`, and `--export` and `--junit` of other commands.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use kendall_lab::TrialResult;
use kendall_lab::export::{self, Format, Source};
use kendall_report::Report;
use kendall_report::junit::Suite;

use crate::print;
use crate::systems::SYSTEMS;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder of a run, results/EXPERIMENT/INSTANT, or one that kendall load --record wrote
    results: PathBuf,

    /// The format, which may be given several times: csv and parquet (all requests in one file), json (the answers), hdr
    /// (.hgrm and .hlog of each trial), openmetrics (the answers)
    #[arg(long, value_name = "FORMAT", required = true)]
    format: Vec<Format>,

    /// Where to write, a folder; export in the folder of the run if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A format, and perhaps where it is to be written: "csv" or "csv=requests.csv".
#[derive(Clone, Debug)]
pub(crate) struct Export {
    format: Format,
    to: Option<PathBuf>,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, to) = text.split_once('=').map_or((text, None), |(format, to)| (format, Some(to)));
        if to == Some("") {
            return Err(format!("{text:?} names no file behind its ="));
        }
        Ok(Self { format: format.parse()?, to: to.map(PathBuf::from) })
    }
}

pub(crate) fn export(options: &Options) -> anyhow::Result<ExitCode> {
    let to = |format: Format| options.out.as_ref().map(|folder| folder.join(format.file()));
    let wanted: Vec<Export> =
        options.format.iter().map(|&format| Export { format, to: to(format) }).collect();
    match TrialResult::of_load(&options.results)? {
        Some(found) => of_load(&options.results, &found, &wanted)?,
        None => of_run(&options.results, &kendall_lab::analyse(&options.results, SYSTEMS)?, &wanted)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a run of which a report was made.
pub(crate) fn of_run(folder: &Path, report: &Report, wanted: &[Export]) -> anyhow::Result<()> {
    for Export { format, to } in wanted {
        let written = export::run(folder, report, *format, to.as_deref())?;
        print::note(&format!("Exported {format}: {}", written.display()));
    }
    Ok(())
}

/// Writes a recorded load.
pub(crate) fn of_load(folder: &Path, result: &TrialResult, wanted: &[Export]) -> anyhow::Result<()> {
    let name = folder.file_name().map_or_else(|| "load".into(), |name| name.to_string_lossy().into_owned());
    let trial = Source { name, folder: folder.into(), warmup_ns: result.left_out_ns().unwrap_or_default() };
    for Export { format, to } in wanted {
        if *format == Format::OpenMetrics {
            bail!(
                "openmetrics is written of the runs of an experiment; of a load there are csv, json, parquet and hdr"
            );
        }
        let written = export::place(folder, *format, to.as_deref())?;
        match format {
            Format::Json => kendall_archive::write_json(&written, result)?,
            _ => export::requests(std::slice::from_ref(&trial), *format, &written)?,
        }
        print::note(&format!("Exported {format}: {}", written.display()));
    }
    Ok(())
}

/// Writes what was expected as JUnit XML.
pub(crate) fn junit(path: &Path, suite: &Suite<'_>) -> anyhow::Result<()> {
    std::fs::write(path, suite.to_xml()).with_context(|| format!("cannot write {}", path.display()))?;
    print::note(&format!("JUnit XML: {}", path.display()));
    Ok(())
}
