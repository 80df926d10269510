//! The report as text for a terminal: one table of response times and utilisation, then the findings.
//!
//! It neither looks for a terminal nor for its width; the caller says both.

use std::fmt::Write;

use kendall_evidence::check::{AssumptionVerdict, Finding as Checked, SIGNIFICANT};
use kendall_station::{Answer, Estimate, Notation};

use kendall_analysis::comparison::{Comparison, comparisons};
use kendall_analysis::finding::assumption::{self, chance};
use kendall_analysis::link;
use kendall_analysis::machine_limits;
use kendall_analysis::relative::relative;
use kendall_analysis::replay;
use kendall_analysis::{Modelled, Modelling, Point, ReplayedPoint, Report};
use kendall_analysis::{Severity, Table, findings};
use kendall_experiment::Letter;
use kendall_stats::number::{NONE, TimeUnit, significant};

/// Whether the text may carry escape codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Characters only, for files and pipes.
    Plain,
    /// Heads in bold, for terminals.
    Bold,
}

/// The report as text at most `width` columns wide, where that is possible: quantiles are left out first, the median
/// before the 99th percentile.
pub fn render(report: &Report, width: usize, style: Style) -> String {
    let mut out = String::new();
    line(&mut out, &bold(&report.question, style));
    out.push('\n');
    if !report.points.is_empty() {
        let unit = unit(report);
        // What is left out last comes first.
        let weighted = report.is_weighted().then_some(Measure::Weighted);
        let lost = report.is_limited().then_some(Measure::Lost);
        let of =
            |measures: &[Measure]| weighted.iter().chain(measures).chain(&lost).copied().collect::<Vec<_>>();
        let (all, tail, mean) = (
            of(&[Measure::Mean, Measure::P50, Measure::P99]),
            of(&[Measure::Mean, Measure::P99]),
            of(&[Measure::Mean]),
        );
        let layouts = [(&all, 2), (&tail, 2), (&tail, 1), (&mean, 2), (&mean, 1)];
        let mut tables =
            layouts.map(|(measures, gap)| TextTable { rows: rows(report, measures, unit), gap }).into_iter();
        let narrowest = tables.next_back().expect("there are layouts");
        let table = tables.find(|table| table.width() <= width).unwrap_or(narrowest);
        let theory = match report.points.iter().any(|point| point.expected.is_some()) {
            true => ", in brackets the expectation of theory",
            false => "",
        };
        line(&mut out, &format!("Response time in {}; ± is half the 95 % interval{theory}.", unit.symbol()));
        table.write(&mut out, style);
        out.push_str(&letters(&report.letters, width));
        out.push('\n');
    }
    let mut severity = None;
    for finding in findings(report) {
        if severity != Some(finding.severity()) {
            severity = Some(finding.severity());
            line(&mut out, &bold(heading(finding.severity()), style));
        }
        write_wrapped(&mut out, &finding.to_string(), width);
    }
    if let Some((title, table)) = replay::table(report) {
        write_table(&mut out, &title, &table, style);
        write_led(&mut out, "  ", ERRORS_ARE, width);
    }
    let expected = kendall_analysis::expected::table(report);
    if !expected.rows.is_empty() {
        write_table(&mut out, "Expected", &expected, style);
    }
    write_limits(&mut out, report, width, style);
    let links = link::table(report);
    if !links.rows.is_empty() {
        write_table(&mut out, link::TITLE, &links, style);
        let sentences = link::lateness(report).into_iter().chain([link::CAPTION.to_owned()]);
        sentences.for_each(|sentence| write_led(&mut out, "  ", &sentence, width));
    }
    write_assumptions(&mut out, report, width, style);
    for comparison in relative(report).into_iter().chain(comparisons(report)) {
        write_comparison(&mut out, &comparison, width, style);
    }
    out
}

/// The meaning of each letter, at most `width` columns wide.
pub fn letters(letters: &[Letter], width: usize) -> String {
    let line =
        |Letter { factor, letter, value }: &Letter| wrapped(&format!("  {factor} {letter}: "), value, width);
    letters.iter().map(line).collect()
}

/// A text behind a lead, broken anywhere at the width, for commands may have long words; the lead again as blanks before each further line.
pub(crate) fn wrapped(lead: &str, text: &str, width: usize) -> String {
    let text: Vec<char> = clean(text).chars().collect();
    let indent = lead.chars().count().min(8);
    let first = width.saturating_sub(lead.chars().count()).max(20);
    let (head, rest) = text.split_at(first.min(text.len()));
    let rows = rest.chunks(width.saturating_sub(indent).max(20));
    let below = rows.map(|row| format!("{}{}\n", " ".repeat(indent), String::from_iter(row)));
    format!("{lead}{}\n{}", String::from_iter(head), below.collect::<String>())
}

/// What the machine itself allows, and what requests use of it.
fn write_limits(out: &mut String, report: &Report, width: usize, style: Style) {
    let (table, missing) = (machine_limits::table(report), machine_limits::missing(report));
    if table.rows.is_empty() && missing.is_empty() {
        return;
    }
    write_table(out, machine_limits::TITLE, &table, style);
    for sentence in missing.iter().map(String::as_str).chain([machine_limits::CAPTION]) {
        write_led(out, "  ", sentence, width);
    }
}

/// What the errors of a replay are.
const ERRORS_ARE: &str = "Errors of mean and quantiles are predicted ÷ measured − 1; \"each\" is the mean absolute error of a request ÷ \
                          the mean response.";

/// The points of a run that were replayed through one station, as text at most `width` columns wide.
pub fn replays(station: &Notation, points: &[ReplayedPoint], width: usize, style: Style) -> String {
    let mut out = String::new();
    write_table(&mut out, &format!("Replayed through {station}"), &replay::points_table(points), style);
    write_led(&mut out, "  ", ERRORS_ARE, width);
    out.trim_start().to_owned()
}

/// The most findings of one verdict that a terminal lists.
const MOST_LISTED: usize = 20;

/// The findings of checks, as text at most `width` columns wide: broken assumptions in full, inconclusive checks, and how many hold.
pub fn checks(findings: &[Checked], width: usize, style: Style) -> String {
    let mut out = String::new();
    for verdict in [AssumptionVerdict::Broken, AssumptionVerdict::CannotTell, AssumptionVerdict::Holds] {
        let found: Vec<&Checked> = findings.iter().filter(|finding| finding.verdict == verdict).collect();
        if found.is_empty() {
            continue;
        }
        line(&mut out, &bold(&format!("{}: {}", verdict_heading(verdict), found.len()), style));
        for finding in found.iter().take(MOST_LISTED) {
            let numbers = numbers(finding);
            write_wrapped(&mut out, &format!("{}: {}{numbers}", finding.place, finding.sentence), width);
        }
        if let Some(more) = found.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
            write_wrapped(&mut out, &format!("… and {more} more; --json lists all."), width);
        }
    }
    if out.is_empty() {
        line(&mut out, "There is nothing to check.");
    }
    if findings.iter().any(|finding| !numbers(finding).is_empty()) {
        let level = format!(
            "p below {SIGNIFICANT} is significant. An assumption is broken if its deviation is significant and large enough to matter; \
             one that holds with a smaller p deviates too little to matter."
        );
        write_wrapped(&mut out, &level, width);
    }
    out
}

fn verdict_heading(verdict: AssumptionVerdict) -> &'static str {
    match verdict {
        AssumptionVerdict::Broken => "Broken",
        AssumptionVerdict::CannotTell => "Inconclusive",
        AssumptionVerdict::Holds => "Holds",
    }
}

/// The numbers of a test, in brackets after its sentence.
fn numbers(finding: &Checked) -> String {
    let statistic = finding.statistic.as_ref().zip(finding.p_value);
    statistic.map_or_else(String::new, |(statistic, p_value)| {
        format!(" ({} {}, p {})", statistic.name, significant(statistic.value, 3), chance(p_value))
    })
}

/// All assumptions that were checked, without their numbers.
fn write_assumptions(out: &mut String, report: &Report, width: usize, style: Style) {
    let table = assumption::table(&report.checks);
    if table.rows.is_empty() {
        return;
    }
    let mut verdicts: Vec<(&str, Vec<String>)> = Vec::new();
    // The first two cells are the assumption and its verdict.
    for row in &table.rows {
        match verdicts.iter_mut().find(|(verdict, _)| *verdict == row[1]) {
            Some((_, names)) => names.push(row[0].clone()),
            None => verdicts.push((&row[1], vec![row[0].clone()])),
        }
    }
    verdicts.sort();
    line(out, &bold("Assumptions checked", style));
    for (verdict, names) in verdicts {
        write_wrapped(out, &format!("{verdict}: {}", names.join("; ")), width);
    }
}

/// A published table with our measurements.
fn write_comparison(out: &mut String, comparison: &Comparison, width: usize, style: Style) {
    write_table(out, &comparison.title, &comparison.table, style);
    for sentence in &comparison.sentences {
        write_wrapped(out, sentence, width);
    }
}

/// A table under its title.
fn write_table(out: &mut String, title: &str, table: &Table, style: Style) {
    out.push('\n');
    line(out, &bold(title, style));
    let head = table.head.clone();
    let rows = [vec![String::new(); head.len()], head].into_iter().chain(table.rows.clone());
    TextTable { rows: rows.collect(), gap: 2 }.write(out, style);
}

fn heading(severity: Severity) -> &'static str {
    match severity {
        Severity::Answer => "Answer",
        Severity::Note => "Worth knowing",
        Severity::Doubt => "Reasons to doubt",
    }
}

/// What is shown of a response time.
#[derive(Clone, Copy)]
enum Measure {
    /// Weight × response time, meaned over the requests.
    Weighted,
    Mean,
    P50,
    P99,
    /// The share of lost requests, where a station's capacity is limited.
    Lost,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Lost => "lost",
        }
    }

    fn of(self, answer: &Answer) -> Option<Estimate> {
        match self {
            Self::Weighted => answer.weighted_response_s,
            Self::Mean => Some(answer.response.mean_s),
            Self::P50 => answer.response.quantile(0.50),
            Self::P99 => answer.response.quantile(0.99),
            Self::Lost => Some(answer.lost),
        }
    }
}

/// The unit for the whole table: that of the middle measured mean.
fn unit(report: &Report) -> TimeUnit {
    let mut means_s: Vec<f64> =
        report.points.iter().map(|point| point.measured.response.mean_s.value).collect();
    means_s.sort_by(f64::total_cmp);
    TimeUnit::for_s(means_s[means_s.len() / 2])
}

/// A table of text; its first two rows are heads. All rows are equally long.
struct TextTable {
    rows: Vec<Vec<String>>,
    /// Spaces between columns.
    gap: usize,
}

/// The heads of the table, and a row for each model of each point.
fn rows(report: &Report, measures: &[Measure], unit: TimeUnit) -> Vec<Vec<String>> {
    let several = report.notations().len() > 1;
    let mut groups = vec![String::new(); report.factors.len() + 1 + usize::from(several)];
    let mut names = report.place_head();
    names.push("ρ".to_owned());
    if several {
        names.push("model".to_owned());
    }
    for measure in measures {
        groups.extend([measure.name().to_owned(), String::new(), String::new()]);
        names.extend(["measured", "formula", "simulated"].map(str::to_owned));
    }
    let mut rows = vec![groups, names];
    for point in &report.points {
        let none = [None];
        let models: Vec<Option<&Modelled>> = point.models.iter().map(Some).collect();
        for (at, model) in (if models.is_empty() { &none[..] } else { &models }).iter().enumerate() {
            let mut row = place(report, point, at);
            if several {
                row.push(model.map_or_else(String::new, |model| model.notation.clone()));
            }
            for &measure in measures {
                row.extend(cells(point, *model, measure, at, unit));
            }
            rows.push(row);
        }
    }
    rows
}

/// The settings and utilisation of a point; blank on its further rows.
fn place(report: &Report, point: &Point, row: usize) -> Vec<String> {
    let mut cells = report.place_cells(point);
    // That of a station that rejects requests is just below 1.
    cells.push(significant(point.utilisation(), if point.capacity.is_some() { 3 } else { 2 }));
    if row > 0 { vec![String::new(); cells.len()] } else { cells }
}

/// Measured, formula and simulation; the measurement on the first row of the point only.
fn cells(
    point: &Point,
    model: Option<&Modelled>,
    measure: Measure,
    row: usize,
    unit: TimeUnit,
) -> [String; 3] {
    // Only measurements show their intervals: those of simulations are as narrow as one likes.
    let modelled = |modelling: Option<&Modelling>| {
        let estimate = modelling.and_then(Modelling::answer).and_then(|answer| measure.of(answer));
        cell(estimate.map(|estimate| Estimate::exact(estimate.value)), measure, unit)
    };
    let mut measured =
        if row == 0 { cell(measure.of(&point.measured), measure, unit) } else { String::new() };
    let is_mean = row == 0 && matches!(measure, Measure::Mean);
    if let Some(expected) = point.expected.filter(|_| is_mean) {
        let half_width = significant(expected.response_s * unit.per_s(), 2);
        measured = format!("{measured} ({half_width})");
    }
    [measured, modelled(model.map(|model| &model.formula)), modelled(model.map(|model| &model.simulation))]
}

fn cell(estimate: Option<Estimate>, measure: Measure, unit: TimeUnit) -> String {
    match (estimate, measure) {
        (None, _) => NONE.to_owned(),
        (Some(estimate), Measure::Lost) => lost(estimate.value),
        (Some(Estimate { value, interval: Some((low, high)) }), Measure::Weighted | Measure::Mean) => {
            format!("{} ± {}", unit.number(value), significant((high - low) / 2.0 * unit.per_s(), 2))
        }
        (Some(estimate), _) => unit.number(estimate.value),
    }
}

impl TextTable {
    /// The width of each column, in characters. A name in the first row may run over the columns after it.
    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| self.rows[1..].iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        (0..self.rows[0].len()).map(widest).collect()
    }

    fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + self.gap * (widths.len() - 1)
    }

    fn write(&self, out: &mut String, style: Style) {
        let widths = self.widths();
        for (at, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
            let text = cells.collect::<Vec<_>>().join(&" ".repeat(self.gap));
            let text = text.trim_end();
            line(out, &if at < 2 { bold(text, style) } else { clean(text) });
        }
    }
}

/// A sentence as a list item, wrapped at words.
fn write_wrapped(out: &mut String, text: &str, width: usize) {
    write_led(out, "  -", text, width);
}

/// Writes the text, after this lead in place of a dash.
fn write_led(out: &mut String, lead: &str, text: &str, width: usize) {
    let (text, mut row) = (clean(text), lead.to_owned());
    for word in text.split(' ') {
        if row.chars().count() + 1 + word.chars().count() > width && row.len() > 3 {
            line(out, &row);
            row = "   ".to_owned();
        }
        row.push(' ');
        row.push_str(word);
    }
    line(out, &row);
}

fn bold(text: &str, style: Style) -> String {
    let text = clean(text);
    match style {
        Style::Plain => text,
        Style::Bold => format!("\x1b[1m{text}\x1b[0m"),
    }
}

/// Text without control characters: a name or a reason must not drive the reader's terminal.
fn clean(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a string never fails");
}

/// A share in per cent to three digits, never rounded up to all.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match significant(percent, 3).as_str() {
        "100" if percent < 100.0 => "just under 100 %".to_owned(),
        text => format!("{text} %"),
    }
}

/// A share of lost requests. That of a model can be tiny.
pub(crate) fn lost(share: f64) -> String {
    if share > 0.0 && share < 1e-5 { "< 0.001 %".to_owned() } else { percent(share) }
}

/// A number with its interval.
pub fn with_interval(estimate: Estimate, value: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{} [{}, {}]", value(estimate.value), value(low), value(high)),
        None => value(estimate.value),
    }
}
