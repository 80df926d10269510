//! A comparison of runs with runs, rendered: as text for a terminal, as Markdown for a pull request, and as a picture of how
//! each quantile is shifted.

use kendall_analysis::versus::{method, tables};
use kendall_evidence::compare::{Against, Comparison, ComparisonVerdict, Terms};

use crate::picture::{Axis, AxisKind, Mark, Picture, Plot, Series};
use crate::terminal::wrapped;

/// The widest table on a terminal.
const WIDTH: usize = 100;
/// Longer names of sides have letters in their place.
const LONGEST_NAME: usize = 16;

/// The letters that abbreviate the names of sides, where one of these is too long for a table; empty where none is.
pub fn names(comparison: &Comparison) -> Vec<(String, String)> {
    let mut names: Vec<&String> = Vec::new();
    for name in comparison.against.iter().flat_map(|against| [&against.base, &against.side]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.iter().all(|name| name.chars().count() <= LONGEST_NAME) {
        return Vec::new();
    }
    let letter = |index: usize| match u8::try_from(index) {
        Ok(index @ ..26) => char::from(b'A' + index).to_string(),
        _ => format!("#{}", index + 1),
    };
    names.into_iter().enumerate().map(|(index, name)| (letter(index), name.clone())).collect()
}

/// The comparison with letters in place of the names.
fn lettered(comparison: &Comparison, names: &[(String, String)]) -> Comparison {
    let mut comparison = comparison.clone();
    for name in comparison.against.iter_mut().flat_map(|against| [&mut against.base, &mut against.side]) {
        if let Some((letter, _)) = names.iter().find(|(_, full)| full == name) {
            name.clone_from(letter);
        }
    }
    comparison
}

/// A text in lines of at most this many characters, broken between words.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// The comparison as text, at most 100 columns wide.
pub fn text(comparison: &Comparison, terms: &Terms) -> String {
    let names = names(comparison);
    let comparison = &lettered(comparison, &names);
    let mut out: String =
        names.iter().map(|(letter, full)| wrapped(&format!("{letter}  "), full, WIDTH)).collect();
    if !names.is_empty() {
        out.push('\n');
    }
    for (against, table) in comparison.against.iter().zip(tables(comparison, terms)) {
        out += &format!("{}\n\n", broken(&table.title, WIDTH).join("\n"));
        let rows: Vec<[String; 6]> = std::iter::once(table.head).chain(table.rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let before: usize = widths[..5].iter().map(|width| width + 2).sum::<usize>() + 2;
        for row in &rows {
            let cells =
                row[..5].iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                    // Words to the left, numbers to the right.
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                });
            let cells = cells.collect::<Vec<_>>().join("  ");
            let verdict = broken(&row[5], WIDTH.saturating_sub(before).max(24));
            let verdict = verdict.join(&format!("\n{}", " ".repeat(before)));
            out += &format!("  {}\n", format!("{cells}  {verdict}").trim_end());
        }
        let summary = format!("{}: {}.", against.side, table.summary);
        out += &format!("\n{}\n\n", broken(&summary, WIDTH).join("\n"));
    }
    let method = method(comparison).into_iter().map(|sentence| broken(&sentence, WIDTH).join("\n  ") + "\n");
    out + &method.collect::<String>()
}

/// The comparison as Markdown.
pub fn markdown(comparison: &Comparison, terms: &Terms) -> String {
    let names = names(comparison);
    let comparison = &lettered(comparison, &names);
    let mut out: String =
        names.iter().map(|(letter, full)| format!("- {letter}: {}\n", escaped(full))).collect();
    if !names.is_empty() {
        out.push('\n');
    }
    for (against, table) in comparison.against.iter().zip(tables(comparison, terms)) {
        out += &format!("**{}**: {}.\n\n", escaped(&table.title), escaped(&table.summary));
        let line =
            |cells: &[String; 6]| format!("| {} |\n", cells.clone().map(|cell| escaped(&cell)).join(" | "));
        out += &line(&table.head);
        out += "| --- | ---: | ---: | ---: | ---: | --- |\n";
        for (compared, mut cells) in against.metrics.iter().zip(table.rows) {
            if matches!(compared.verdict, ComparisonVerdict::Worse | ComparisonVerdict::Better) {
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
    let comparison = &lettered(comparison, &names(comparison));
    let plots: Vec<Plot> = comparison.against.iter().filter_map(shift_of).take(MOST_PLOTS).collect();
    (!plots.is_empty()).then(|| Picture {
        title: "Shift of each quantile of the response time, with 95 % intervals".into(),
        plots,
    })
}

/// The largest number of plots next to each other that a reader can compare.
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
    let name = |p: f64| format!("p{}", (p * 1e4).round() / 1e2);
    let tail: Vec<String> = shift.iter().map(|one| one.p).filter(|p| *p > 0.9).map(name).collect();
    let of = match tail.as_slice() {
        [] => "deciles".to_owned(),
        [only] => format!("deciles and {only}"),
        [but_last @ .., last] => format!("deciles, {} and {last}", but_last.join(", ")),
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
    use kendall_evidence::compare::{Metric, Run, SHIFTED, Side, SideGroup, Unit, compare};

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
        let place = SideGroup { name: "rate=20".into(), sides: vec![side("main", 1.0), side("a|<b>", 0.5)] };
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
    fn long_names_have_letters_and_no_line_is_wider_than_the_terminal() {
        let mut comparison = compared();
        let long = format!("results/{}/2026-11-25T15-48-07Z", "x".repeat(250));
        comparison.against[0].side.clone_from(&long);
        comparison.against[0].metrics[0].verdict = ComparisonVerdict::Undecided { more_runs: Some(478) };
        let text = text(&comparison, &Terms::default());
        assert!(text.starts_with("A  main\nB  results/xxx"), "{text}");
        assert!(text.contains("B (8 runs) against A (8 runs)") && text.contains("B ÷ A"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let markdown = markdown(&comparison, &Terms::default());
        assert!(
            markdown.contains("- A: main\n- B: results/") && markdown.matches(&long).count() == 1,
            "{markdown}"
        );
        assert_eq!(names(&compared()), []);
    }

    #[test]
    fn the_shift_of_a_faster_side_lies_below_none() {
        let svg = shift(&compared()).expect("there are quantiles").svg(crate::picture::Style::Screen);
        let tree = roxmltree::Document::parse(&svg).expect("well-formed");
        let ticks: Vec<&str> = tree.descendants().filter_map(|node| node.text()).collect();
        let has = |start: &str| ticks.iter().any(|text| text.starts_with(start));
        assert!(has("shift [ms]") && has("deciles, p99 and p99.9 of "), "{ticks:?}");
        assert!(tree.descendants().filter(|node| node.has_tag_name("circle")).count() >= SHIFTED.len());
        let empty = Comparison { against: Vec::new(), ..compared() };
        assert_eq!(shift(&empty), None);
    }
}
