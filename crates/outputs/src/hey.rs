//! hey, as text and as its CSV with a row for each request. Its output does not contain the number of
//! connections.

use kendall_stats::quantile_rank;

use crate::source::{Missing, Source, plain, status_error};
use crate::{Format, Output, summary};

pub(crate) const TEXT: Format = Format {
    tool: "hey",
    form: "the text",
    command: "hey URL > FILE",
    is: |source| {
        let of_ghz = source.has_line("Count:");
        source.has_line("Summary:") && source.has_line("Response time histogram:") && !of_ghz
    },
    read: |source| summary::output(source, |_| true),
};

const HEAD: &str =
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";

pub(crate) const CSV: Format = Format {
    tool: "hey",
    form: "the CSV",
    command: "hey -o csv URL > FILE",
    is: |source| source.text.starts_with("response-time,DNS+dialup,"),
    read: csv,
};

/// The quantiles that are computed from single requests.
const LEVELS: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// One row per answered request: its time, its status, when it began.
fn csv(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let mut lines = source.text.lines();
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| {
        let found = head.split(',').position(|column| column.trim() == name);
        found.ok_or_else(|| Missing(format!("it has no column {name:?} of {HEAD}")))
    };
    let (time, status, offset) = (column("response-time")?, column("status-code")?, column("offset")?);
    let mut times_s = Vec::new();
    let mut errors: Vec<(String, u64)> = Vec::new();
    let (mut begin_s, mut end_s) = (f64::INFINITY, 0.0_f64);
    for (line, place) in lines.zip(2..).filter(|(line, _)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |column: usize| {
            let cell = cells.get(column).copied().unwrap_or_default();
            plain(cell).ok_or_else(|| Missing(format!("line {place} has no number in column {}", column + 1)))
        };
        let (time_s, offset_s) = (number(time)?, number(offset)?);
        begin_s = begin_s.min(offset_s);
        end_s = end_s.max(offset_s + time_s);
        times_s.push(time_s);
        if let Some(kind) = status_error(cells.get(status).copied().unwrap_or_default()) {
            match errors.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => errors.push((kind, 1)),
            }
        }
    }
    let duration_s = end_s - begin_s;
    if times_s.is_empty() || duration_s <= 0.0 {
        return Err(Missing("it has no row of a request".to_owned()));
    }
    times_s.sort_by(f64::total_cmp);
    let n = times_s.len() as u64;
    let quantile = |level: f64| (level, times_s[quantile_rank(n, level) as usize - 1]);
    Ok(vec![Output {
        rate_per_s: n as f64 / duration_s,
        requests: Some(n),
        errors,
        duration_s: Some(duration_s),
        mean_s: Some(times_s.iter().sum::<f64>() / n as f64),
        quantiles_s: LEVELS.map(quantile).to_vec(),
        ..Output::default()
    }])
}
