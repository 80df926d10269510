//! wrk, and wrk2, which sends on a schedule and prints more of its histogram.

use crate::source::{Missing, Source, first, level, plain, time};
use crate::{Format, Load, Output};

pub(crate) const WRK: Format = Format {
    tool: "wrk",
    form: "the text",
    command: "wrk --latency URL > FILE",
    is: |source| source.text.contains(" test @ ") && source.text.contains("Thread Stats"),
    read: |source| output(source, Load::Closed { think_s: 0.0 }),
};

pub(crate) const WRK2: Format = Format {
    tool: "wrk2",
    form: "the text",
    command: "wrk2 --latency --rate R URL > FILE",
    is: |source| {
        let is_of_2 = ["Thread calibration:", "Recorded Latency", "Uncorrected Latency"];
        (WRK.is)(source) && is_of_2.iter().any(|words| source.text.contains(words))
    },
    read: |source| output(source, Load::Open { rate_per_s: None }),
};

fn output(source: &Source<'_>, load: Load) -> Result<Vec<Output>, Missing> {
    const RATE: &str = "Requests/sec:";
    let rate_per_s = first(source.needed(RATE)?, RATE)?;
    let (requests, duration_s) = total(source)?;
    let errors = errors(source)?;
    // wrk counts answers with an error status as requests, but not those whose socket failed.
    let failed = errors.iter().filter(|(kind, _)| kind != STATUS);
    let failed = failed.fold(0, |all: u64, (_, count)| all.saturating_add(*count));
    Ok(vec![Output {
        load: Some(load),
        connections: connections(source),
        rate_per_s,
        requests: Some(requests.saturating_add(failed)),
        errors,
        duration_s: Some(duration_s),
        mean_s: Some(mean(source)?),
        quantiles_s: quantiles(source)?,
        ..Output::default()
    }])
}

/// "  2 threads and 100 connections".
fn connections(source: &Source<'_>) -> Option<u64> {
    let line = source.text.lines().find(|line| line.trim_end().ends_with(" connections"))?;
    line.split_whitespace().rev().nth(1)?.parse().ok()
}

/// "  60018 requests in 30.00s, 19.81MB read".
fn total(source: &Source<'_>) -> Result<(u64, f64), Missing> {
    let found = source.text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let (requests, rest) = found.ok_or_else(|| Missing("it has no line \"… requests in …\"".into()))?;
    let requests =
        plain(requests).ok_or_else(|| Missing(format!("{requests:?} is not a number of requests")))?;
    Ok((requests as u64, time(rest.split(',').next().unwrap_or_default(), "requests in")?))
}

/// From the histogram of wrk2, in ms, or from the statistics of threads.
fn mean(source: &Source<'_>) -> Result<f64, Missing> {
    if let Some(line) = source.line("#[Mean") {
        let value = line.trim_start_matches([' ', '=']).trim_start();
        return Ok(first(value, "#[Mean")? / 1e3);
    }
    let line = source.needed("Latency ")?;
    time(line.split_whitespace().next().unwrap_or_default(), "Latency")
}

/// The lines below "Latency Distribution": "     99%    5.80ms", or " 99.900%   12.35ms".
fn quantiles(source: &Source<'_>) -> Result<Vec<(f64, f64)>, Missing> {
    let below = source.text.lines().skip_while(|line| !line.trim_start().starts_with("Latency Distribution"));
    let mut quantiles = Vec::new();
    for line in below.skip(1) {
        let mut words = line.split_whitespace();
        let (Some(percent), Some(value), None) = (words.next(), words.next(), words.next()) else { break };
        if !percent.ends_with('%') {
            break;
        }
        if let Some(level) = level(percent) {
            quantiles.push((level, time(value, percent)?));
        }
    }
    Ok(quantiles)
}

const STATUS: &str = "status that is not 2xx or 3xx";

/// "  Socket errors: connect 0, read 1, write 0, timeout 12" and "  Non-2xx or 3xx responses: 3".
fn errors(source: &Source<'_>) -> Result<Vec<(String, u64)>, Missing> {
    let mut errors = Vec::new();
    const SOCKET: &str = "Socket errors:";
    for part in source.line(SOCKET).iter().flat_map(|line| line.split(',')) {
        let (kind, count) = part
            .trim()
            .split_once(' ')
            .ok_or_else(|| Missing(format!("{part:?} in the line {SOCKET:?} has no count")))?;
        errors.push((kind.to_owned(), first(count, SOCKET)? as u64));
    }
    const RESPONSES: &str = "Non-2xx or 3xx responses:";
    if let Some(count) = source.line(RESPONSES) {
        errors.push((STATUS.to_owned(), first(count, RESPONSES)? as u64));
    }
    Ok(errors)
}
