//! The results of a load, on the terminal: the bottleneck first, then the three times, then further results.

use std::fmt;

use kendall_analysis::{ResourceRecord, Table, TrialResult};
use kendall_evidence::{ClassScore, Score};
use kendall_stats::number::time;

use super::words::{
    checks, correlated, expectations, rates, recorded, score_in_words, sentences, times, without_answer,
    without_intervals,
};
use crate::{resources, terminal};

/// The results of a load, as lines for a terminal.
pub fn load_text(found: &TrialResult) -> String {
    let mut lines = vec![
        found.verdict.headline_of(&found.run),
        format!("{}, {}", recorded(&found.target), recorded(&found.started_utc)),
    ];
    lines.extend(sentences(found));
    lines.push(String::new());
    if let Some(seen) = &found.seen {
        lines.extend(aligned(&times(seen), [11, 28, 28]));
        lines.extend(correlated(seen));
        lines.extend(without_intervals(seen));
        lines.push(String::new());
        lines.extend(rates(found, seen).iter().map(|(name, value)| row(name, value)));
    }
    lines.extend(found.score.iter().flat_map(score));
    lines.push(String::new());
    lines.extend(aligned(&checks(found), [28, 5, 50]));
    lines.push(String::new());
    if let Some(watched) = &found.resources {
        lines.extend(watched_text(watched).lines().map(str::to_owned));
        lines.push(String::new());
    }
    lines.extend(expectations(found));
    lines.extend(without_answer(found).iter().map(|doubt| format!("Doubt: {doubt}")));
    lines.push(format!("The same again: {}", recorded(&found.again)));
    lines.join("\n") + "\n"
}

/// What was seen of a server that was watched.
fn watched_text(seen: &ResourceRecord) -> String {
    let profile = seen.profile.as_ref().map_or_else(String::new, resources::profile_text);
    let process =
        seen.process.map_or_else(String::new, |process| format!("Process {process} while it was loaded\n"));
    let split = seen.split.as_ref().map_or_else(String::new, resources::split_text);
    format!("{process}{}{split}{profile}", resources::text(&seen.summary, seen.limit.as_ref()))
}

/// A table as lines; the last column takes what room it needs.
fn aligned(table: &Table, widths: [usize; 3]) -> Vec<String> {
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().enumerate().map(|(i, cell)| match widths.get(i) {
            Some(width) => format!("{cell:<width$}"),
            None => cell.clone(),
        });
        padded.collect::<String>().trim_end().to_owned()
    };
    std::iter::once(&table.head).chain(&table.rows).map(line).collect()
}

fn row(name: &str, value: impl AsRef<str>) -> String {
    format!("{name:<24} {}", value.as_ref())
}

/// The score of a run, and a table of its classes if there are several.
fn score(score: &Score) -> Vec<String> {
    let mut lines = vec![row("right answers", terminal::percent(score.right))];
    if score.is_weighted() {
        lines.push(row("score", score_in_words(score)));
    }
    if score.classes.len() > 1 {
        lines.push(String::new());
        lines.extend(classes(&score.classes));
    }
    lines
}

/// A table of the classes that had requests, with what their delay costs where that differs.
fn classes(classes: &[ClassScore]) -> Vec<String> {
    let are_alike = classes.iter().all(|class| class.weight == classes[0].weight);
    let cost = |cost: &dyn fmt::Display| if are_alike { String::new() } else { format!(" {cost:>6}") };
    let head =
        format!("{:<24}{} {:>9} {:>9}   response time, mean", "class", cost(&"weight"), "requests", "right");
    let row = |class: &ClassScore| {
        let mean = time(class.mean_response_s?);
        let ClassScore { name, weight, requests, right, .. } = class;
        Some(format!("{name:<24}{} {requests:>9} {right:>9}   {mean}", cost(weight)))
    };
    std::iter::once(head).chain(classes.iter().filter_map(row)).collect()
}
