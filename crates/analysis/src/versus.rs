//! Runs compared with runs, in words: a table for each pair of sides, and how they were compared.

use kendall_evidence::compare::{Against, Compared, Comparison, ComparisonVerdict, Scale, Terms, Unit};
use kendall_stats::number::{NONE, counted, percent, significant, time};

/// The heads of the columns of a table.
fn head(against: &Against) -> [String; 6] {
    let Against { base, side, .. } = against;
    [
        "metric".to_owned(),
        base.clone(),
        side.clone(),
        format!("{side} ÷ {base}"),
        "p".to_owned(),
        "verdict".to_owned(),
    ]
}

fn row(compared: &Compared, terms: &Terms) -> [String; 6] {
    let value = |median: Option<f64>| {
        median.map_or_else(|| NONE.to_owned(), |value| shown(compared.metric.unit, value))
    };
    let ratio = match (&compared.effect, compared.scale) {
        (Some(effect), Scale::Ratio) => {
            let show = |ratio| significant(ratio, 3);
            format!("{} [{}, {}]", show(effect.value), show(effect.interval.0), show(effect.interval.1))
        }
        _ => NONE.to_owned(),
    };
    let p = compared.test.map_or_else(|| NONE.to_owned(), |test| chance(test.p_holm));
    let name = compared.metric.name.clone();
    [name, value(compared.medians.0), value(compared.medians.1), ratio, p, compared.words(terms)]
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds | Unit::CpuSeconds => time(value),
        Unit::PerSecond => format!("{}/s", significant(value, 4)),
        Unit::Share => percent(value),
        Unit::Plain => significant(value, 4),
    }
}

/// A chance to two digits, or that it is below one in ten thousand.
fn chance(p: f64) -> String {
    match p {
        p if p < 1e-4 => "< 0.0001".to_owned(),
        p if p > 0.995 => "1".to_owned(),
        p => significant(p, 2),
    }
}

/// The method of the comparison, as sentences.
pub fn method(comparison: &Comparison) -> Vec<String> {
    let mut sentences = vec![
        "Values are medians over runs; in brackets the ratio's 95 % interval (bootstrap over runs, BCa)."
            .to_owned(),
        format!(
            "p: rank permutation test, adjusted by Holm over {}.",
            counted(comparison.tests as u64, "test")
        ),
    ];
    let compared = || comparison.against.iter().flat_map(|against| &against.metrics);
    if let Some(pairs) = compared().find(|compared| compared.paired) {
        sentences.push(format!("Runs of one block are compared with each other: {} pairs.", pairs.runs.0));
    }
    if let Some(drawn) = compared().find_map(|compared| compared.test?.drawn) {
        sentences.push(format!(
            "Tests with too many permutations use {drawn} random ones; the others count all of them."
        ));
    }
    sentences
}

/// How many runs there are of each side, in words.
fn counts(against: &Against) -> String {
    let most = against.metrics.iter().max_by_key(|compared| compared.runs.0 + compared.runs.1);
    let (base, side) = most.map_or((0, 0), |compared| compared.runs);
    let runs = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
    format!("{} ({}) against {} ({})", against.side, runs(side), against.base, runs(base))
}

fn title(against: &Against) -> String {
    match against.place.as_str() {
        "" => counts(against),
        place => format!("{place}: {}", counts(against)),
    }
}

/// The headline: the differences, and the metrics that are undecided.
pub fn summary(against: &Against, terms: &Terms) -> String {
    let named = |compared: &&Compared| format!("{} {}", compared.metric.name, compared.words(terms));
    let of = |wanted: fn(ComparisonVerdict) -> bool| {
        against.metrics.iter().filter(|compared| wanted(compared.verdict)).collect::<Vec<&Compared>>()
    };
    let differing = of(|verdict| matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse));
    let undecided = of(|verdict| matches!(verdict, ComparisonVerdict::Undecided { .. })).len();
    let equivalent = of(|verdict| verdict == ComparisonVerdict::Equivalent).len();
    let few = of(|verdict| matches!(verdict, ComparisonVerdict::TooFewRuns { .. }));
    let mut parts: Vec<String> = differing.iter().map(named).collect();
    if equivalent > 0 {
        parts.push(format!("{equivalent} equivalent"));
    }
    if undecided > 0 {
        parts.push(format!("{undecided} undecided"));
    }
    if let Some(first) = few.first() {
        parts.push(format!("no statement ({})", first.words(terms)));
    }
    if parts.is_empty() { "nothing was measured on both sides".to_owned() } else { parts.join("; ") }
}

/// A side compared with the first, as a table in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tabled {
    /// The two sides of the comparison, and their numbers of runs.
    pub title: String,
    /// The one line that a reader in a hurry reads.
    pub summary: String,
    /// The heads of the columns.
    pub head: [String; 6],
    /// A row a metric.
    pub rows: Vec<[String; 6]>,
}

/// The comparison as a table for each pair of sides.
pub fn tables(comparison: &Comparison, terms: &Terms) -> Vec<Tabled> {
    let table = |against: &Against| Tabled {
        title: title(against),
        summary: summary(against, terms),
        head: head(against),
        rows: against.metrics.iter().map(|compared| row(compared, terms)).collect(),
    };
    comparison.against.iter().map(table).collect()
}
