//! Printing to the terminal.

use std::io::{self, IsTerminal};

use kendall_analysis::{ReplayedPoint, Report};
use kendall_evidence::check::Finding;
use kendall_experiment::Letter;
use kendall_report::terminal::{self, Style};
use kendall_station::{Estimate, Notation};

pub(crate) use kendall_report::terminal::{percent, with_interval as shown};
pub(crate) use kendall_stdio::{json, note, out, words, write};

/// Prints the report of an experiment.
pub(crate) fn report(report: &Report) -> anyhow::Result<()> {
    let (width, style) = screen();
    write(&terminal::render(report, width, style))
}

/// Prints what checks found.
pub(crate) fn checks(findings: &[Finding]) -> anyhow::Result<()> {
    let (width, style) = screen();
    write(&terminal::checks(findings, width, style))
}

/// Prints how well a station predicts the requests of a run.
pub(crate) fn replays(station: &Notation, points: &[ReplayedPoint]) -> anyhow::Result<()> {
    let (width, style) = screen();
    write(&terminal::replays(station, points, width, style))
}

/// How wide standard output is, and whether it takes escape codes.
fn screen() -> (usize, Style) {
    let style = if io::stdout().is_terminal() { Style::Bold } else { Style::Plain };
    (terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0)), style)
}

/// What the letters in place of long values stand for.
pub(crate) fn letters(letters: &[Letter]) -> String {
    terminal::letters(letters, screen().0)
}

/// A share with its interval.
pub(crate) fn share(estimate: Estimate) -> String {
    shown(estimate, percent)
}

/// How a report is printed.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Table,
    Json,
}

impl Form {
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Table }
    }
}
