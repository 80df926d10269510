//! `kendall report`, and what `kendall run` ends with.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kendall_analysis::traffic::flows;
use kendall_analysis::{Report, TrialResult, TrialView, analyse, read_validation};
use kendall_report::figure::Named;
use kendall_report::{trial_view, write_flows_page, write_page, write_validation_page};
use serde::Serialize;

use crate::print::Form;
use crate::systems::SYSTEMS;
use crate::{figures, load, print};

#[derive(Args)]
pub(crate) struct ReportOptions {
    /// The folder of a run, results/EXPERIMENT/INSTANT, or one that --record of kendall load, kendall validate or kendall transport wrote
    results: PathBuf,

    /// Show these trials one by one on the page, and no others; may be given several times
    #[arg(long, value_name = "NAME")]
    trial: Vec<String>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    /// Also write each figure into this folder, as SVG and PNG for a paper; those of the trials named by --trial, or of the most
    /// informative one, into a folder of the trial's name inside it
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

pub(crate) fn report(options: &ReportOptions) -> anyhow::Result<ExitCode> {
    let form = Form::of(options.json);
    if let Some(found) = flows::read(&options.results)? {
        let page = write_flows_page(&found, &options.results)?;
        let figures = kendall_report::flows_figures(&found);
        return shown(&found, &kendall_report::flows_text(&found), &page, &figures, options);
    }
    if let Some(found) = read_validation(&options.results)? {
        let page = write_validation_page(&found, &options.results)?;
        let figures = kendall_report::validation_figures(&found);
        return shown(&found, &kendall_report::validation_text(&found), &page, &figures, options);
    }
    match TrialResult::of_load(&options.results)? {
        Some(found) => {
            load::show(&found, form)?;
            load::write_page(&found, &options.results)?;
            if let Some(folder) = &options.figures {
                figures::write(&kendall_report::load_figures(&found), folder)?;
            }
        }
        None => {
            let (_, report) = show(&options.results, form, &options.trial)?;
            if let Some(folder) = &options.figures {
                write_figures(&report, &options.trial, folder)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a result that has a page, and writes its figures.
fn shown(
    found: &impl Serialize,
    text: &str,
    page: &Path,
    figures: &[Named],
    options: &ReportOptions,
) -> anyhow::Result<ExitCode> {
    if options.json {
        print::json(found)?
    } else {
        print::out(text)?
    }
    print::note(&format!("Report: {}", page.display()));
    options.figures.as_deref().map_or(Ok(()), |folder| figures::write(figures, folder))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the figures of a run, and of these trials; of the most informative one if no trial is named.
fn write_figures(report: &Report, trials: &[String], folder: &Path) -> anyhow::Result<()> {
    figures::write(&kendall_report::page_figures(report), folder)?;
    let shown: Vec<&TrialView> = if trials.is_empty() {
        trial_view::first_of(report).into_iter().collect()
    } else {
        report.trial_views.iter().collect()
    };
    shown
        .into_iter()
        .try_for_each(|view| figures::write(&trial_view::figures(report, view), &folder.join(&view.trial)))
}

/// Analyses a run, prints it and writes its page, with the trials of these names one by one, or as many as there is room for
/// where none is named. Returns the page's path and the report.
pub(crate) fn show(folder: &Path, form: Form, trials: &[String]) -> anyhow::Result<(PathBuf, Report)> {
    let mut report = analyse(folder, SYSTEMS)?;
    let is_unknown = |trial: &&String| !report.trial_views.iter().any(|view| view.trial == **trial);
    if let Some(unknown) = trials.iter().find(is_unknown) {
        bail!(
            "there is no trial {unknown:?} in the answers of {}; its folder trials lists the names",
            folder.display()
        );
    }
    if !trials.is_empty() {
        report.trial_views.retain(|view| trials.contains(&view.trial));
    }
    match form {
        Form::Table => print::report(&report)?,
        Form::Json => print::out(&(report.to_json() + "\n"))?,
    }
    let page = write_page(&report, folder)?;
    print::note(&format!("Report: {}", page.display()));
    Ok((page, report))
}
