//! Locust's `_stats.csv`: a row for each kind of request, in milliseconds, and one for all. It does not contain the number of
//! users.

use csv::{ReaderBuilder, StringRecord};

use crate::source::{Missing, Source, level, plain};
use crate::{Format, Output};

pub(crate) const STATS: Format = Format {
    tool: "Locust",
    form: "the CSV",
    command: "locust --csv NAME, which writes NAME_stats.csv",
    is: |source| source.text.starts_with("Type,Name,Request Count,"),
    read: stats,
};

fn stats(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(source.text.as_bytes());
    let no_table = |error: csv::Error| Missing(format!("the output is not a table: {error}"));
    let head = reader.headers().map_err(no_table)?.clone();
    let rows = reader.records().collect::<Result<Vec<StringRecord>, _>>().map_err(no_table)?;
    let all = rows.iter().find(|row| row.get(1) == Some("Aggregated"));
    let only = if let [only] = rows.as_slice() { Some(only) } else { None };
    let row = all.or(only).ok_or_else(|| Missing("it has no row \"Aggregated\"".to_owned()))?;
    let cell = |name: &str| head.iter().position(|column| column == name).and_then(|column| row.get(column));
    let number = |name: &str| {
        cell(name).and_then(plain).ok_or_else(|| Missing(format!("it has no number in column {name:?}")))
    };
    let (requests, rate_per_s) = (number("Request Count")?, number("Requests/s")?);
    let quantile = |(name, cell): (&str, &str)| Some((level(name.strip_suffix('%')?)?, plain(cell)? / 1e3));
    Ok(vec![Output {
        rate_per_s,
        requests: Some(requests as u64),
        errors: vec![("failed request".to_owned(), number("Failure Count")? as u64)],
        duration_s: (rate_per_s > 0.0).then(|| requests / rate_per_s),
        mean_s: Some(number("Average Response Time")? / 1e3),
        quantiles_s: head.iter().zip(row).filter_map(quantile).collect(),
        ..Output::default()
    }])
}
