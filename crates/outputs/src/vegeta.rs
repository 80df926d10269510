//! vegeta's report, as JSON and as text. It sends on a schedule, and its JSON is in nanoseconds.

use kendall_stats::quantity::time_s;
use serde_json::Value;

use crate::source::{Missing, Source, by_status, counts, first, level, number};
use crate::{Format, Load, Output};

pub(crate) const JSON: Format = Format {
    tool: "vegeta",
    form: "the JSON",
    command: "vegeta report -type=json results.bin > FILE",
    is: |source| {
        source.has_members(&["/latencies", "/status_codes"])
            || source.has_members(&["/latencies", "/throughput"])
    },
    read: json,
};

pub(crate) const TEXT: Format = Format {
    tool: "vegeta",
    form: "the text",
    command: "vegeta report results.bin > FILE",
    is: |source| {
        source.has_line("Requests      [total, rate, throughput]") || source.has_line("Latencies     [")
    },
    read: text,
};

fn json(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let json = source.value()?;
    let (errors, _) = by_status(counts(json, "/status_codes"));
    let latencies = json["latencies"].as_object().into_iter().flatten();
    let quantile =
        |(name, value): (&String, &Value)| Some((level(name.strip_suffix("th")?)?, value.as_f64()? / 1e9));
    Ok(vec![Output {
        load: Some(Load::Open { rate_per_s: Some(number(json, "/rate")?) }),
        rate_per_s: number(json, "/throughput")?,
        requests: Some(number(json, "/requests")? as u64),
        errors,
        duration_s: Some(number(json, "/duration")? / 1e9),
        mean_s: Some(number(json, "/latencies/mean")? / 1e9),
        quantiles_s: latencies.filter_map(quantile).collect(),
        ..Output::default()
    }])
}

/// A line of the report: the names in its brackets, and the values behind them.
fn row<'a>(source: &Source<'a>, name: &str) -> Result<Vec<(&'a str, &'a str)>, Missing> {
    let line = source.needed(name)?;
    let (names, values) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .ok_or_else(|| Missing(format!("its line {name:?} has no names in brackets")))?;
    Ok(names.split(',').map(str::trim).zip(values.split(',').map(str::trim)).collect())
}

/// A value of such a line.
fn value<'a>(row: &[(&str, &'a str)], name: &str) -> Result<&'a str, Missing> {
    let found = row.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| Missing(format!("it does not contain {name:?}")))
}

fn text(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let (requests, duration, latencies) =
        (row(source, "Requests ")?, row(source, "Duration ")?, row(source, "Latencies ")?);
    let count = |name: &str| first(value(&requests, name)?, "Requests");
    let mut quantiles_s = Vec::new();
    for (name, text) in &latencies {
        quantiles_s.extend(level(name).map(|level| Ok((level, time(text)?))).transpose()?);
    }
    // "Status Codes  [code:count]  0:14  200:236".
    let codes =
        source.line("Status Codes ").and_then(|line| line.split_once(']')).map_or("", |(_, codes)| codes);
    let code = |pair: &'_ str| {
        pair.split_once(':').and_then(|(code, count)| Some((code.to_owned(), count.parse().ok()?)))
    };
    let codes: Vec<(String, u64)> = codes.split_whitespace().filter_map(code).collect();
    let (errors, _) = by_status(codes.iter().map(|(code, count)| (code.as_str(), *count)));
    Ok(vec![Output {
        load: Some(Load::Open { rate_per_s: Some(count("rate")?) }),
        rate_per_s: count("throughput")?,
        requests: Some(count("total")? as u64),
        errors,
        duration_s: Some(time(value(&duration, "attack")?)?),
        mean_s: Some(time(value(&latencies, "mean")?)?),
        quantiles_s,
        ..Output::default()
    }])
}

/// A duration in Go's notation: "430.399ms", "1m0.5s", "1h2m3s".
fn time(text: &str) -> Result<f64, Missing> {
    let wrong = || Missing(format!("{text:?} is not a time such as 430.4ms or 1m0.5s"));
    let (mut rest, mut sum_s) = (text.trim(), 0.0);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let end = rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| unit + end);
        sum_s += time_s(&rest[..end]).ok_or_else(wrong)?;
        rest = &rest[end..];
    }
    Ok(sum_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_read() {
        let read = |text: &str| time(text).ok();
        for (text, seconds) in
            [("430.5ms", 0.4305), ("1m0.5s", 60.5), ("1h2m3s", 3723.0), ("0s", 0.0), ("95µs", 95e-6)]
        {
            assert!((read(text).unwrap() - seconds).abs() < 1e-12, "{text}");
        }
        assert_eq!([read(""), read("5"), read("1x"), read("ms")], [None; 4]);
    }
}
