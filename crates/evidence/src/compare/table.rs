//! Runs that any tool measured, as text: a number a line, or a CSV table with a row for each run and a column for each metric.

use super::{Better, Metric, Run, Unit};

/// The most runs of one file: a thousand times what a comparison needs.
const MOST_RUNS: usize = 10_000;
/// The most metrics of one file.
const MOST_METRICS: usize = 100;

/// Why a text holds no runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoRuns {
    #[error("line {line}: {text:?} in column {column:?} is no number")]
    NotANumber { line: usize, column: String, text: String },
    #[error("line {line} has {found} columns where the head has {head}")]
    Ragged { line: usize, found: usize, head: usize },
    #[error("it holds no run; write a number a line, or a CSV table with a row for each run")]
    Empty,
    #[error("it is no CSV table: {0}")]
    Csv(String),
    #[error("it holds more than {MOST_RUNS} runs or {MOST_METRICS} columns; a row is a run, not a request")]
    TooMany,
}

/// Reads runs. Columns are called as kendall calls its metrics ("mean", "p99", "throughput", "errors") or otherwise; a unit at
/// the end of a name ("p99_ms", "mean \[us\]") is taken off. A column "block" tells which runs were made together. More is
/// better of what is called throughput, rate or rps, or ends in "/s".
///
/// # Errors
/// Names the line at fault.
pub fn read(text: &str) -> Result<(Vec<Metric>, Vec<Run>), NoRuns> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut records = reader.records().map(|record| record.map_err(|error| NoRuns::Csv(error.to_string())));
    let first = records.next().ok_or(NoRuns::Empty)??;
    let is_head = first.iter().any(|field| field.parse::<f64>().is_err());
    let names: Vec<String> = match (is_head, first.len()) {
        (true, _) => first.iter().map(str::to_owned).collect(),
        (false, 1) => vec!["value".to_owned()],
        (false, columns) => (1..=columns).map(|column| format!("column {column}")).collect(),
    };
    if names.len() > MOST_METRICS {
        return Err(NoRuns::TooMany);
    }
    let columns: Vec<Column> = names.iter().map(|name| Column::of(name)).collect();
    let mut runs = Vec::new();
    for record in (!is_head).then_some(Ok(first)).into_iter().chain(records) {
        let record = record?;
        let line = record.position().map_or(1, |position| position.line() as usize);
        if record.len() != columns.len() {
            return Err(NoRuns::Ragged { line, found: record.len(), head: columns.len() });
        }
        runs.push(run(&record, &columns, &names, line)?);
        if runs.len() > MOST_RUNS {
            return Err(NoRuns::TooMany);
        }
    }
    let metrics: Vec<Metric> =
        columns.into_iter().filter_map(|column| column.metric).map(|(metric, _)| metric).collect();
    if runs.is_empty() || metrics.is_empty() { Err(NoRuns::Empty) } else { Ok((metrics, runs)) }
}

/// What a column holds.
struct Column {
    /// The metric, and what its values are multiplied with; `None` for the block.
    metric: Option<(Metric, f64)>,
}

impl Column {
    fn of(name: &str) -> Self {
        if name.eq_ignore_ascii_case("block") {
            return Self { metric: None };
        }
        let trimmed = name.trim_end_matches([']', ')']).trim();
        let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0)];
        let with_unit = |&(unit, factor): &(&str, f64)| {
            let rest = trimmed.strip_suffix(unit)?.strip_suffix(['_', '[', '(', ' '])?;
            Some((rest.trim_end_matches(['_', '[', '(', ' ']), factor))
        };
        let lower = trimmed.to_ascii_lowercase();
        let is_rate = ["throughput", "rps", "rate"].iter().any(|word| lower.contains(word))
            || lower.ends_with("/s")
            || lower.ends_with("per_s");
        let (metric, factor) = match units.iter().find_map(with_unit) {
            _ if is_rate => {
                let plain = lower.strip_suffix("_per_s").unwrap_or(&lower).to_owned();
                (Metric { name: plain, unit: Unit::PerSecond, better: Better::Higher }, 1.0)
            }
            Some((rest, factor)) => (Metric::new(rest, Unit::Seconds), factor),
            // As kendall names its own metrics, without a unit: what others print as "p99" may be of any unit.
            None if ["errors", "lost"].contains(&lower.as_str()) => (Metric::new("errors", Unit::Share), 1.0),
            None => (Metric::new(name, Unit::Plain), 1.0),
        };
        Self { metric: Some((metric, factor)) }
    }
}

fn run(record: &csv::StringRecord, columns: &[Column], names: &[String], line: usize) -> Result<Run, NoRuns> {
    let mut run = Run::default();
    for ((field, column), name) in record.iter().zip(columns).zip(names) {
        let value = match field {
            "" => None,
            text => {
                let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
                let refuse = || NoRuns::NotANumber { line, column: name.clone(), text: text.to_owned() };
                Some(number.ok_or_else(refuse)?)
            }
        };
        match &column.metric {
            Some((_, factor)) => run.values.push(value.map(|value| value * factor)),
            None => run.block = value.map(|block| block as u64),
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_tables_are_read() {
        let (metrics, runs) = read("1.5\n2\n\n3e-1\n").unwrap();
        assert_eq!((metrics[0].name.as_str(), metrics[0].unit, runs.len()), ("value", Unit::Plain, 3));
        assert_eq!(runs[2].values, [Some(0.3)]);
        let text = "block,p99_ms,mean [us],Throughput,errors\n0,12,900,480,0\n1,,950,470,0.01\n";
        let (metrics, runs) = read(text).unwrap();
        let named: Vec<(&str, Unit, Better)> =
            metrics.iter().map(|metric| (metric.name.as_str(), metric.unit, metric.better)).collect();
        assert_eq!(
            named,
            [
                ("p99", Unit::Seconds, Better::Lower),
                ("mean", Unit::Seconds, Better::Lower),
                ("throughput", Unit::PerSecond, Better::Higher),
                ("errors", Unit::Share, Better::Lower)
            ]
        );
        assert_eq!((runs[0].block, runs[1].block, runs[1].values[0]), (Some(0), Some(1), None));
        assert!((runs[0].values[0].unwrap() - 0.012).abs() < 1e-15);
    }

    #[test]
    fn faults_name_their_line() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert!(refused("mean\n1\nx\n").starts_with("line 3: \"x\" in column \"mean\""));
        assert!(refused("a,b\n1,2\n1\n").starts_with("line 3 has 1 columns"));
        assert!(refused("").contains("no run") && refused("mean\n").contains("no run"));
        assert!(refused("mean\nNaN\n").contains("no number") && refused("mean\ninf\n").contains("no number"));
    }
}
