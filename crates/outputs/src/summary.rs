//! The text of hey, and of oha, which imitates it: a summary, a distribution, counts by status and by error.

use crate::Output;
use crate::source::{Missing, Source, by_status, first, level, plain};

/// Parses the text. Errors for which `counts` is false are due to the end of the run and are not failures.
pub(crate) fn output(source: &Source<'_>, counts: fn(&str) -> bool) -> Result<Vec<Output>, Missing> {
    const RATE: &str = "Requests/sec:";
    let rate_per_s = first(source.needed(RATE)?, RATE)?;
    let answers = list(source, "Status code distribution:");
    let by_status_code: Vec<(&str, u64)> =
        answers.iter().filter_map(|(name, rest)| Some((*name, count(rest)?))).collect();
    let (mut errors, mut requests) = by_status(by_status_code);
    for (number, what) in list(source, "Error distribution:") {
        let number: u64 =
            number.parse().map_err(|_| Missing(format!("{number:?} is not a number of errors")))?;
        if counts(what) {
            errors.push((what.to_owned(), number));
            requests = u64::saturating_add(requests, number);
        }
    }
    Ok(vec![Output {
        rate_per_s,
        requests: (requests > 0).then_some(requests),
        errors,
        duration_s: Some(seconds(source, "Total:")?),
        mean_s: Some(seconds(source, "Average:")?),
        quantiles_s: quantiles(source)?,
        ..Output::default()
    }])
}

/// "20000 responses".
fn count(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// A time of the summary.
fn seconds(source: &Source<'_>, line: &str) -> Result<f64, Missing> {
    let text = source.needed(line)?;
    time(text).ok_or_else(|| Missing(format!("{text:?} in the line {line:?} is not a time with a unit")))
}

/// "0.0045 secs", "1.2 ms".
fn time(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(char::is_whitespace)?;
    let per_s = match unit.trim() {
        "sec" | "secs" | "s" => 1.0,
        "ms" => 1e3,
        "us" | "µs" | "μs" => 1e6,
        "ns" => 1e9,
        "min" | "mins" => 1.0 / 60.0,
        _ => return None,
    };
    Some(plain(number)? / per_s)
}

/// "  99% in 0.0203 secs", "  99.90% in 0.0203 sec". With too few requests a tool prints no number there.
fn quantiles(source: &Source<'_>) -> Result<Vec<(f64, f64)>, Missing> {
    let mut quantiles = Vec::new();
    for line in source.text.lines() {
        let Some((percent, value)) = line.trim().split_once("% in ") else { continue };
        let Some(level) = level(percent) else { continue };
        let value = value.trim();
        if value.starts_with("NaN") {
            continue;
        }
        let time = time(value).ok_or_else(|| Missing(format!("{value:?} of {percent} % is not a time")))?;
        quantiles.push((level, time));
    }
    Ok(quantiles)
}

/// The lines below a heading, as the text in brackets and the text after it: "  [200] 20000 responses".
fn list<'a>(source: &Source<'a>, heading: &str) -> Vec<(&'a str, &'a str)> {
    let below = source.text.lines().skip_while(|line| line.trim() != heading).skip(1);
    let entry = |line: &'a str| {
        line.trim().strip_prefix('[')?.split_once(']').map(|(name, rest)| (name, rest.trim()))
    };
    below.map_while(entry).collect()
}
