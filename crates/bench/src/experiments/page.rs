//! `docs/results.md`: a table of all experiments, and a section for each with its answer, its figures beside published ones, and a picture.
//!
//! Sentences and tables are those of the reports.

mod markdown;
mod points;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kendall_analysis::comparison::{comparisons, orders};
use kendall_analysis::{Finding, Report, Table, expected, findings};
use kendall_archive::{Machine, Manifest};
use kendall_report::figure::that_matters;
use kendall_report::{Sentences, page_figures, paper};
use kendall_stats::number::{NONE, counted};
use serde::{Deserialize, Serialize};

use super::PICTURES;
use super::estimate::in_words;
use markdown::write_table;

/// The most reasons to doubt in a section; the others are counted.
const MOST_DOUBTS: usize = 3;

/// An experiment on the page.
pub(super) enum Entry {
    Finished(Box<Finished>),
    Missing {
        name: String,
        question: String,
        /// Why it was not run, as a clause.
        why: Option<String>,
    },
}

/// An experiment with a complete run, as the page has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finished {
    /// `reverse/caching`.
    name: String,
    question: String,
    /// The first sentence about the server.
    answer: String,
    /// Which expectations, published orders and models held.
    held: String,
    machine: String,
    /// The version of kendall.
    kendall: String,
    /// The section of the page, in Markdown.
    section: String,
}

/// A complete run of an experiment.
pub(super) struct CompleteRun {
    /// `reverse/caching`.
    pub(super) name: String,
    pub(super) question: String,
    pub(super) report: Report,
    pub(super) manifest: Manifest,
}

/// The picture of an experiment.
pub(super) struct Picture {
    /// Its name in the folder of pictures.
    pub(super) file: String,
    pub(super) svg: String,
}

impl Entry {
    /// The name of its picture in the folder of pictures.
    pub(super) fn picture_file(&self) -> Option<String> {
        self.finished().map(|finished| picture_file(&finished.name))
    }

    fn finished(&self) -> Option<&Finished> {
        if let Self::Finished(finished) = self { Some(finished) } else { None }
    }
}

/// The page.
pub(super) fn page(entries: &[Entry]) -> String {
    let mut page = String::from("# Results\n\n");
    origin(&mut page, entries);
    summary(&mut page, entries);
    for finished in entries.iter().filter_map(Entry::finished) {
        page.push_str(&finished.section);
    }
    page
}

fn picture_file(name: &str) -> String {
    format!("{}.svg", name.replace('/', "-"))
}

fn origin(page: &mut String, entries: &[Entry]) {
    let finished = || entries.iter().filter_map(Entry::finished);
    let distinct = |value: &dyn Fn(&Finished) -> String| {
        finished().map(value).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ")
    };
    let _ = write!(
        page,
        "Written by `make experiments`, which runs each file of `experiments/` in full once: {} of {} experiments have a result. `make \
         accuracy` runs those of `experiments/validate` ([accuracy](accuracy.md)).\n\n",
        finished().count(),
        entries.len(),
    );
    if finished().next().is_some() {
        let _ = write!(
            page,
            "{}; kendall {}. Server and generator share the machine.\n\n",
            distinct(&|finished| finished.machine.clone()),
            distinct(&|finished| finished.kendall.clone())
        );
    }
    page.push_str(
        "The answers are the first sentences of the reports. ± is half of the 95 % interval. In the pictures, measurements are black, \
         formulas are lines, and simulations are hollow markers.\n",
    );
}

fn machine(machine: &Machine) -> String {
    let Machine { cores, cpu, os, kernel, .. } = machine;
    format!("{cores} × {cpu}, {os}, kernel {kernel}")
}

fn summary(page: &mut String, entries: &[Entry]) {
    page.push_str(
        "\n## All experiments\n\nThe last column has what held: the file's own expectations, the order of published figures, and the \
         models' mean response times; and how many trials show the generator as much as the server.\n\n",
    );
    let row = |entry: &Entry| match entry {
        Entry::Finished(finished) => vec![
            format!("[{}](#{})", finished.name, anchor(&finished.name)),
            finished.question.clone(),
            finished.answer.clone(),
            finished.held.clone(),
        ],
        Entry::Missing { name, question, why } => {
            let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            vec![name.clone(), question.clone(), format!("Not run yet{why}."), NONE.to_owned()]
        }
    };
    let head = ["experiment", "question", "answer", "held"].map(str::to_owned).into();
    write_table(page, &Table { head, rows: entries.iter().map(row).collect() }, 4);
}

/// The place of a heading in the page, as both GitHub and the book name it.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|letter| letter.is_alphanumeric() || *letter == '-').collect()
}

/// The first sentence about the server. That the generator was the limit is among what held.
fn first_answer(report: &Report) -> String {
    let is_of_server = |finding: &Finding| !matches!(finding, Finding::GeneratorLimited { .. });
    findings(report)
        .iter()
        .find(|finding| is_of_server(finding))
        .map_or_else(|| NONE.to_owned(), ToString::to_string)
}

/// Which expectations, published orders and models held.
fn held(report: &Report) -> String {
    let mut held = Vec::new();
    let verdicts = expected::table(report);
    let at = verdicts.head.iter().position(|head| head == "verdict").expect("it has verdicts");
    for verdict in verdicts.rows.iter().map(|row| &row[at]).collect::<BTreeSet<_>>() {
        let count = verdicts.rows.iter().filter(|row| row[at] == *verdict).count();
        held.push(format!("{verdict}: {}", counted(count as u64, "expectation")));
    }
    if let (same, of @ 1..) = orders(report) {
        held.push(format!("published order: {same} of {of}"));
    }
    let mut models: Vec<String> = Vec::new();
    for finding in findings(report) {
        let (model, agreeing, of) = match finding {
            Finding::Agreement { model, agreeing, of, .. } => (model, agreeing, of),
            Finding::Miss { model, missing, of, .. } => (model, of - missing, of),
            Finding::GeneratorLimited { trials, .. } => {
                held.push(format!("GENERATOR-LIMITED: {} of {} trials", trials.len(), report.trials.len()));
                continue;
            }
            _ => continue,
        };
        // A model that agrees at some points may have its worst miss reported, too.
        if !models.contains(&model) {
            held.push(format!("{model}: {agreeing} of {}", counted(of as u64, "point")));
            models.push(model);
        }
    }
    if held.is_empty() { NONE.to_owned() } else { held.join("; ") }
}

impl CompleteRun {
    /// What the page has of it.
    pub(super) fn finished(&self) -> Finished {
        let Self { name, question, report, manifest } = self;
        let mut section = String::new();
        self.section(&mut section);
        Finished {
            name: name.clone(),
            question: question.clone(),
            answer: first_answer(report),
            held: held(report),
            machine: machine(&manifest.machine),
            kendall: manifest.kendall.clone(),
            section,
        }
    }

    /// The figure that answers the question.
    pub(super) fn picture(&self) -> Option<Picture> {
        let name = that_matters(&self.report);
        let named = page_figures(&self.report).into_iter().find(|named| named.name == name)?;
        Some(Picture { file: picture_file(&self.name), svg: paper(&named.figure) })
    }

    fn section(&self, page: &mut String) {
        let Self { name, question, report, .. } = self;
        let sentences = Sentences::of(report);
        let _ = write!(
            page,
            "\n## {name}\n\n*{question}*\n\n{}\n\n![{question}]({PICTURES}/{})\n\n",
            sentences.answers.join(" "),
            picture_file(name)
        );
        points::write(page, report);
        for letter in &report.letters {
            let _ = write!(page, "\n{} {}: `{}`\n", letter.factor, letter.letter, letter.value);
        }
        for comparison in comparisons(report) {
            let _ = write!(page, "\nPublished: {}.\n\n", comparison.title);
            write_table(page, &comparison.table, report.factors.len());
            let _ = write!(page, "\n{}\n", comparison.sentences.join(" "));
        }
        let expected = expected::table(report);
        if !expected.rows.is_empty() {
            page.push_str("\nExpected:\n\n");
            write_table(page, &expected, expected.head.len());
        }
        let _ = writeln!(page, "\n- {}", self.origin());
        let (shown, more) = sentences.doubts.split_at(sentences.doubts.len().min(MOST_DOUBTS));
        for doubt in shown {
            let _ = writeln!(page, "- Doubt: {doubt}");
        }
        if !more.is_empty() {
            let _ = writeln!(page, "- {} in the report.", counted(more.len() as u64, "more doubt"));
        }
    }

    /// When and how it was measured.
    fn origin(&self) -> String {
        let Self { name, report, manifest, .. } = self;
        let requests: u64 = report.trials.iter().map(|trial| trial.counts.sent).sum();
        let disturbed = report.trials.iter().filter(|trial| trial.is_replaced).count();
        format!(
            "`experiments/{name}.toml`, started {} UTC, {}: {}, {}; {} disturbed by other load and repeated. Link: {}.",
            report.started_utc,
            manifest.lasted().map_or_else(|| NONE.to_owned(), in_words),
            counted(report.trials.len() as u64, "trial"),
            counted(requests, "request"),
            disturbed,
            manifest.link,
        )
    }
}

#[cfg(test)]
mod tests;
