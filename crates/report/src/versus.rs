//! A comparison of runs with runs, rendered: as text for a terminal, as Markdown for a pull request, and as a picture of how
//! each quantile is shifted.

use kendall_evidence::compare::{Against, Compared, Comparison, Scale, Terms, Unit, Verdict};

use crate::number::{NONE, percent, significant, time};
use crate::picture::{Axis, AxisKind, Mark, Picture, Plot, Series};

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

/// How it was compared, as sentences.
pub fn method(comparison: &Comparison) -> Vec<String> {
    let mut sentences = vec![
        "Each value is the median over runs; in brackets its ratio's 95 % interval (bootstrap over runs, BCa).".to_owned(),
        format!("p: rank permutation test, adjusted by Holm over {} tests.", comparison.tests),
    ];
    let compared = || comparison.against.iter().flat_map(|against| &against.metrics);
    if let Some(pairs) = compared().find(|compared| compared.paired) {
        sentences.push(format!("Runs of one block are compared with each other: {} pairs.", pairs.runs.0));
    }
    if let Some(drawn) = compared().find_map(|compared| compared.test?.drawn) {
        sentences.push(format!("Of the permutations {drawn} were drawn by chance; else all are counted."));
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

/// The one line that a reader in a hurry reads: what differs, and what cannot be told.
pub fn summary(against: &Against, terms: &Terms) -> String {
    let named = |compared: &&Compared| format!("{} {}", compared.metric.name, compared.words(terms));
    let of = |wanted: fn(Verdict) -> bool| {
        against.metrics.iter().filter(|compared| wanted(compared.verdict)).collect::<Vec<&Compared>>()
    };
    let differing = of(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse));
    let undecided = of(|verdict| matches!(verdict, Verdict::Undecided { .. })).len();
    let equivalent = of(|verdict| verdict == Verdict::Equivalent).len();
    let few = of(|verdict| matches!(verdict, Verdict::TooFewRuns { .. }));
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
    /// What is compared with what, of how many runs.
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

/// The comparison as text.
pub fn text(comparison: &Comparison, terms: &Terms) -> String {
    let mut out = String::new();
    for against in &comparison.against {
        out += &format!("{}\n\n", title(against));
        let mut rows = vec![head(against)];
        rows.extend(against.metrics.iter().map(|compared| row(compared, terms)));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        for row in &rows {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    // Words to the left, numbers to the right.
                    0 | 5 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            out += &format!("  {}\n", cells.join("  ").trim_end());
        }
        out += &format!("\n{}: {}.\n\n", against.side, summary(against, terms));
    }
    out + &method(comparison).join("\n") + "\n"
}

/// The comparison as Markdown.
pub fn markdown(comparison: &Comparison, terms: &Terms) -> String {
    let mut out = String::new();
    for against in &comparison.against {
        out += &format!("**{}**: {}.\n\n", escaped(&title(against)), escaped(&summary(against, terms)));
        let line =
            |cells: &[String; 6]| format!("| {} |\n", cells.clone().map(|cell| escaped(&cell)).join(" | "));
        out += &line(&head(against));
        out += "| --- | ---: | ---: | ---: | ---: | --- |\n";
        for compared in &against.metrics {
            let mut cells = row(compared, terms);
            if matches!(compared.verdict, Verdict::Worse | Verdict::Better) {
                cells[5] = format!("**{}**", cells[5]);
            }
            out += &line(&cells);
        }
        out.push('\n');
    }
    out + "<sub>" + &method(comparison).join(" ") + "</sub>\n"
}

/// What Markdown would take for the end of a cell, or for HTML.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

/// By how much each quantile is shifted, a plot for each pair of sides; `None` where no runs have quantiles.
pub fn shift(comparison: &Comparison) -> Option<Picture> {
    let plots: Vec<Plot> = comparison.against.iter().filter_map(shift_of).take(MOST_PLOTS).collect();
    (!plots.is_empty()).then(|| Picture {
        title: "Shift of each quantile of the response time, with 95 % intervals".into(),
        plots,
    })
}

/// More plots than this beside each other nobody reads.
const MOST_PLOTS: usize = 6;

/// Against the quantiles of the first side, as Doksum (1974) draws it.
fn shift_of(against: &Against) -> Option<Plot> {
    let shift = against.shift.as_slice();
    let (first, last) = (shift.first()?, shift.last()?);
    let mut shifted = Series::new(
        format!("{} less {}", against.side, against.base),
        Mark::Disc,
        shift.iter().map(|one| (one.base_s, one.shift_s)).collect(),
    );
    shifted.intervals = shift.iter().map(|one| (one.base_s, one.interval_s.0, one.interval_s.1)).collect();
    let none = Series::new("no shift", Mark::Line(0), vec![(first.base_s, 0.0), (last.base_s, 0.0)]);
    let of = if last.p > 0.9 {
        format!("deciles and p{}", significant(last.p * 100.0, 2))
    } else {
        "deciles".into()
    };
    let place = if against.place.is_empty() { String::new() } else { format!(", {}", against.place) };
    Some(Plot {
        across: Axis::new(format!("{of} of {}{place}", against.base), AxisKind::TimesByRatio),
        upwards: Axis::new("shift", AxisKind::Times),
        series: vec![none, shifted],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_evidence::compare::{Metric, Place, Run, SHIFTED, Side, compare};

    fn compared() -> Comparison {
        let side = |name: &str, factor: f64| {
            let run = |i: u32| {
                let value = factor * (0.010 + f64::from(i) * 1e-4);
                Run {
                    values: vec![Some(value), Some(1.0 / value), Some(0.0), None],
                    quantiles_s: SHIFTED.map(|p| (p, -value * (1.0 - p).ln())).into(),
                    block: None,
                }
            };
            Side { name: name.into(), runs: (0..8).map(run).collect() }
        };
        let metrics = [
            Metric::new("mean", Unit::Seconds),
            Metric::new("throughput", Unit::PerSecond),
            Metric::new("errors", Unit::Share),
            Metric::new("p|1", Unit::Plain),
        ];
        let place = Place { name: "rate=20".into(), sides: vec![side("main", 1.0), side("a|<b>", 0.5)] };
        compare(&metrics, &[place], &Terms::default())
    }

    #[test]
    fn a_comparison_reads_as_text_and_as_markdown() {
        let (comparison, terms) = (compared(), Terms::default());
        let text = text(&comparison, &terms);
        assert!(text.starts_with("rate=20: a|<b> (8 runs) against main (8 runs)"), "{text}");
        assert!(text.contains("faster by 50 %") && text.contains("more by 100 % (93–107)"), "{text}");
        assert!(text.contains("adjusted by Holm over 3 tests"), "{text}");
        let tables = tables(&comparison, &terms);
        assert_eq!((tables.len(), tables[0].rows.len()), (1, 4));
        assert!(text.contains(&tables[0].summary) && text.starts_with(&tables[0].title), "{tables:?}");
        let markdown = markdown(&comparison, &terms);
        assert!(
            markdown.contains("| --- |") && markdown.contains("p\\|1") && markdown.contains("a\\|&lt;b>")
        );
        let cells = |line: &&str| line.replace("\\|", "").matches('|').count();
        let table: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.len() == 6 && table.iter().all(|line| cells(line) == 7), "{markdown}");
    }

    #[test]
    fn the_shift_of_a_faster_side_lies_below_none() {
        let svg = shift(&compared()).expect("there are quantiles").svg();
        let tree = roxmltree::Document::parse(&svg).expect("well-formed");
        let ticks: Vec<&str> = tree.descendants().filter_map(|node| node.text()).collect();
        assert!(ticks.iter().any(|text| text.starts_with("shift [ms]")), "{ticks:?}");
        assert!(tree.descendants().filter(|node| node.has_tag_name("circle")).count() >= SHIFTED.len());
        let empty = Comparison { against: Vec::new(), ..compared() };
        assert_eq!(shift(&empty), None);
    }
}
