//! Runs that any tool measured, as text: a number a line, a table with a row for each run and a column for each metric, or the output of a
//! load generator.

use kendall_outputs::Output;

use super::{Better, Metric, Run, Unit};
use crate::table::{self, Cells, RATE, SHARE, TIME, canonical, share, split};

/// The most runs of one file: a thousand times what a comparison needs.
const MOST_RUNS: usize = 10_000;
/// The most metrics of one file.
const MOST_METRICS: usize = 100;

/// The reason why a text holds no runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoRuns {
    #[error("line {line}: {text:?} in column {column:?} is not a number; write it like 0.25 or 2.5e-1")]
    NotANumber { line: u64, column: String, text: String },
    #[error("line {line} has {found} columns, but the head has {head}; an empty cell needs its comma, too")]
    Ragged { line: u64, found: usize, head: usize },
    #[error(
        "the input holds no run; write one number per line, a CSV table with a row for each run, or give the output of {}",
        kendall_outputs::tools()
    )]
    Empty,
    #[error("the input is not a table: {0}")]
    NoTable(String),
    #[error(
        "the input holds more than {MOST_RUNS} runs or {MOST_METRICS} columns; a row is a run, not a request"
    )]
    TooMany,
    #[error(transparent)]
    Output(#[from] kendall_outputs::OutputError),
    #[error("the input holds {} commands: {}; export each command to a separate file, and name each file as a side", .0.len(), .0.join(", "))]
    Several(Vec<String>),
}

/// Reads runs. Columns are called as in tables that are fitted ([`crate::table`]): `mean_ms`, `p99_us`, `throughput`, `errors`; a time
/// without a unit is a plain number. Other columns are metrics, too; a unit at the end of a name is taken off. A column "block" says
/// which runs were made together. More is better of what is called throughput, rate or rps, or ends in "/s".
///
/// # Errors
/// Names the line at fault.
pub fn read(text: &str) -> Result<(Vec<Metric>, Vec<Run>), NoRuns> {
    if let Some(outputs) = kendall_outputs::read(text)? {
        return of_outputs(&outputs);
    }
    let Cells { headers: first, at, rows } = Cells::read(text).map_err(|why| match why {
        table::NoCells::Empty => NoRuns::Empty,
        table::NoCells::NotCsv(why) | table::NoCells::NotJson(why) => NoRuns::NoTable(why),
    })?;
    let is_head = first.iter().any(|field| field.parse::<f64>().is_err());
    let names: Vec<String> = match (is_head, first.len()) {
        (true, _) => first.clone(),
        (false, 1) => vec!["value".to_owned()],
        (false, columns) => (1..=columns).map(|column| format!("column {column}")).collect(),
    };
    if names.len() > MOST_METRICS || rows.len() >= MOST_RUNS {
        return Err(NoRuns::TooMany);
    }
    let columns = columns(&names);
    let first = (!is_head).then_some((at, first));
    let mut runs = Vec::new();
    for (line, cells) in first.into_iter().chain(rows) {
        if cells.len() != columns.len() {
            return Err(NoRuns::Ragged { line, found: cells.len(), head: columns.len() });
        }
        runs.push(run(&cells, &columns, &names, line)?);
    }
    let metrics: Vec<Metric> = columns.into_iter().filter_map(|column| column.metric).collect();
    if runs.is_empty() || metrics.is_empty() { Err(NoRuns::Empty) } else { Ok((metrics, runs)) }
}

/// The quantiles of outputs that are compared, with their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// One output is one run, or for each of its times one, where it lists those of whole runs.
fn of_outputs(outputs: &[Output]) -> Result<(Vec<Metric>, Vec<Run>), NoRuns> {
    let [output] = outputs else {
        let name = |output: &Output| format!("{:?}", output.name.as_deref().unwrap_or(output.tool));
        return Err(NoRuns::Several(outputs.iter().map(name).collect()));
    };
    if !output.times_s.is_empty() {
        let runs = output.times_s.iter().map(|&time_s| Run { values: vec![Some(time_s)], ..Run::default() });
        return Ok((vec![Metric::new("time", Unit::Seconds)], runs.collect()));
    }
    let mut metrics = vec![Metric::new("mean", Unit::Seconds)];
    let mut values = vec![output.mean_s];
    for (name, level) in QUANTILES {
        metrics.push(Metric::new(name, Unit::Seconds));
        values.push(output.quantile_s(level));
    }
    metrics.extend([Metric::new("throughput", Unit::PerSecond), Metric::new("errors", Unit::Share)]);
    values.extend([Some(output.rate_per_s), output.lost()]);
    Ok((metrics, vec![Run { values, ..Run::default() }]))
}

/// What a column holds.
struct Column {
    /// `None` for the block.
    metric: Option<Metric>,
    /// Makes a value one in seconds, per second, or a share.
    convert: Box<dyn Fn(f64) -> f64>,
}

/// The columns. The rate that was offered is that of the runs where there is no other.
fn columns(names: &[String]) -> Vec<Column> {
    let has_throughput = names.iter().any(|name| canonical(name).starts_with("throughput_per_"));
    let mut columns: Vec<Column> = Vec::new();
    for name in names {
        let mut column = Column::of(name);
        if let Some(metric) = &mut column.metric {
            let known = |columns: &[Column], name: &str| {
                columns.iter().filter_map(|column| column.metric.as_ref()).any(|metric| metric.name == name)
            };
            if metric.name == "rate" && metric.unit == Unit::PerSecond && !has_throughput {
                metric.name = "throughput".to_owned();
            }
            if known(&columns, &metric.name) {
                metric.name.clone_from(name);
            }
        }
        columns.push(column);
    }
    columns
}

impl Column {
    fn new(metric: Metric, convert: impl Fn(f64) -> f64 + 'static) -> Self {
        Self { metric: Some(metric), convert: Box::new(convert) }
    }

    fn of(name: &str) -> Self {
        if name.eq_ignore_ascii_case("block") {
            return Self { metric: None, convert: Box::new(|block| block) };
        }
        let known = canonical(name);
        let time = split(&known, TIME);
        if let Some((quantity, unit)) = time
            && let Some(metric) = quantity.strip_prefix("response_").and_then(response)
        {
            return Self::new(metric, move |value| unit.convert(value));
        }
        if let Some((quantity @ ("rate" | "throughput"), unit)) = split(&known, RATE) {
            return Self::new(Metric::new(quantity, Unit::PerSecond), move |value| unit.convert(value));
        }
        if let Some(("lost", unit)) = split(&known, SHARE) {
            return Self::new(Metric::new("errors", Unit::Share), move |value| unit.convert(value));
        }
        let lower = name.to_ascii_lowercase();
        if ["throughput", "rps", "rate"].iter().any(|word| lower.contains(word))
            || lower.ends_with("/s")
            || lower.ends_with("per_s")
        {
            let plain = lower.strip_suffix("_per_s").unwrap_or(&lower).to_owned();
            return Self::new(
                Metric { name: plain, unit: Unit::PerSecond, better: Better::Higher },
                |value| value,
            );
        }
        match time {
            Some((quantity, unit)) => {
                Self::new(Metric::new(quantity, Unit::Seconds), move |value| unit.convert(value))
            }
            // As kendall names its own metrics, without a unit: what others print as "p99" may be of any unit.
            None => Self::new(Metric::new(name, Unit::Plain), |value| value),
        }
    }
}

/// The metric of a response time: "mean", "p99.9".
fn response(quantity: &str) -> Option<Metric> {
    if quantity == "mean" {
        return Some(Metric::new("mean", Unit::Seconds));
    }
    let level = share(quantity.strip_prefix('p')?)?;
    let percent = format!("{:.6}", level * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    Some(Metric::new(&format!("p{percent}"), Unit::Seconds))
}

fn run(cells: &[String], columns: &[Column], names: &[String], line: u64) -> Result<Run, NoRuns> {
    let mut run = Run::default();
    for ((cell, column), name) in cells.iter().zip(columns).zip(names) {
        let value = match cell.as_str() {
            "" => None,
            text => {
                let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
                let refuse = || NoRuns::NotANumber { line, column: name.clone(), text: text.to_owned() };
                Some(number.ok_or_else(refuse)?)
            }
        };
        match &column.metric {
            Some(_) => run.values.push(value.map(&column.convert)),
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
    fn columns_have_the_names_of_tables_that_are_fitted() {
        let named = |head: &str| -> Vec<(String, Unit)> {
            let (metrics, _) =
                read(&format!("{head}\n{}\n", vec!["1"; head.split(',').count()].join(","))).unwrap();
            metrics.into_iter().map(|metric| (metric.name, metric.unit)).collect()
        };
        let own = |name: &str, unit| (name.to_owned(), unit);
        assert_eq!(
            named("rps,response_mean_ms,p999_us,errors %"),
            [
                own("throughput", Unit::PerSecond),
                own("mean", Unit::Seconds),
                own("p99.9", Unit::Seconds),
                own("errors", Unit::Share)
            ]
        );
        let plain =
            [own("rate", Unit::PerSecond), own("throughput", Unit::PerSecond), own("p99", Unit::Plain)];
        assert_eq!(named("rate,throughput,p99"), plain);
        assert_eq!(named("setup_ms,size"), [own("setup", Unit::Seconds), own("size", Unit::Plain)]);
        let (metrics, _) = read("error_rate\n0.5\n").unwrap();
        assert_eq!(metrics[0].better, Better::Lower);
    }

    #[test]
    fn an_output_is_one_run_and_of_hyperfine_each_time_is() {
        let sample = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../outputs/testdata/");
            std::fs::read_to_string(format!("{folder}{name}")).unwrap()
        };
        let (metrics, runs) = read(&sample("wrk2.txt")).unwrap();
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["mean", "p50", "p90", "p99", "p99.9", "throughput", "errors"]);
        assert_eq!((runs.len(), runs[0].values[5]), (1, Some(2000.33)));
        let hyperfine = sample("hyperfine.json");
        let (metrics, runs) = read(&hyperfine).unwrap();
        assert_eq!((metrics[0].name.as_str(), runs.len(), runs[7].values[0]), ("time", 8, Some(0.112)));
        let (open, close) = (hyperfine.find('[').unwrap(), hyperfine.rfind(']').unwrap());
        let one = &hyperfine[open + 1..close];
        let two = format!("{{\"results\": [{one}, {one}]}}");
        assert!(read(&two).unwrap_err().to_string().contains("2 commands: \"sort -u words.txt\""));
    }

    #[test]
    fn faults_name_their_line() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert!(refused("mean\n1\nx\n").starts_with("line 3: \"x\" in column \"mean\""));
        assert!(refused("a,b\n1,2\n1\n").starts_with("line 3 has 1 columns"));
        assert!(refused("").contains("no run") && refused("mean\n").contains("no run"));
        assert!(
            refused("mean\nNaN\n").contains("not a number")
                && refused("mean\ninf\n").contains("not a number")
        );
    }
}
