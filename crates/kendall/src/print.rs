//! Printing to the terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use kendall_analysis::Report;
use kendall_evidence::check::Finding;
use kendall_experiment::Letter;
use kendall_report::terminal::{self, Style};
use kendall_station::{By, Estimate};
use kendall_stats::number;
use serde::Serialize;

pub(crate) use kendall_report::terminal::{percent, with_interval as shown};

/// Writes text to standard output, in which nothing acts on the terminal: names and words may be from a file of another person.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    write(&inert(text))
}

/// A text with its control characters as escapes, all but the ends of lines and tabs.
fn inert(text: &str) -> Cow<'_, str> {
    let acts = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(acts) {
        return text.into();
    }
    let escape =
        |letter: char| if acts(letter) { letter.escape_default().to_string() } else { letter.into() };
    text.chars().map(escape).collect()
}

/// Writes to standard output as it is. A reader that closed its end has read enough, which is not an error.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the output");
    written.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Whether something could not be written because nobody reads it any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Writes a line to standard error, if it can be, in which nothing acts on the terminal.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", inert(line));
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    out(&(serde_json::to_string_pretty(value)? + "\n"))
}

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

/// A time with its interval.
pub(crate) fn interval(time_s: Estimate) -> String {
    number::time_with_interval(time_s.value, time_s.interval)
}

/// Who answers.
pub(crate) fn by(by: &By) -> String {
    match by {
        By::Formula { source, approximate: None } => source.clone(),
        By::Formula { source, approximate: Some(how) } => format!("{source} (approximation: {how})"),
        By::Simulation { customers, seed, needed, .. } => {
            let customers = number::count(*customers);
            let run = format!("{customers} customers after the warm-up, seed {seed}; 95 % intervals");
            let doubt = needed.map(|needed| {
                format!(
                    ".\nDoubt: so near its limit the station needs some {} customers to settle, so these numbers are of one \
                     that is still filling; give --customers",
                    number::significant(needed as f64, 2)
                )
            });
            run + &doubt.unwrap_or_default()
        }
        By::Measurement { requests, trials } => {
            let (requests, trials) = (*requests, *trials);
            format!("{} in {}", number::counted(requests, "request"), number::counted(trials, "trial"))
        }
    }
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

/// An error and its causes, without the causes that the error's own words name.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words += &format!(": {cause}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_escaped() {
        assert_eq!(inert("a\u{1b}[2J\r\u{9b}\tb\n"), "a\\u{1b}[2J\\r\\u{9b}\tb\n");
        assert!(matches!(inert("é 🦀\n"), Cow::Borrowed(_)));
    }
}
