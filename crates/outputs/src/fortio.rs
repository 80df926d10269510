//! fortio's result as JSON: times in seconds, its duration in nanoseconds.

use serde_json::Value;

use crate::source::{Missing, Source, by_status, counts, level, number, plain};
use crate::{Format, Load, Output};

pub(crate) const JSON: Format = Format {
    tool: "fortio",
    form: "the JSON",
    command: "fortio load -json FILE URL",
    is: |source| {
        source.has_members(&["/DurationHistogram"]) || source.has_members(&["/RequestedQPS", "/RunType"])
    },
    read: json,
};

fn json(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let json = source.value()?;
    // A rate as text, or "max".
    let requested = json["RequestedQPS"].as_str().and_then(plain).filter(|rate| *rate > 0.0);
    let load = match requested {
        Some(rate_per_s) => Load::Open { rate_per_s: Some(rate_per_s) },
        None => Load::Closed { think_s: 0.0 },
    };
    let (errors, all) = by_status(counts(json, "/RetCodes").map(|(code, count)| {
        // Of gRPC, and of the plain protocols.
        (if ["SERVING", "OK"].contains(&code) { "200" } else { code }, count)
    }));
    let count = number(json, "/DurationHistogram/Count")? as u64;
    let percentiles = json.pointer("/DurationHistogram/Percentiles").and_then(Value::as_array);
    let quantile =
        |one: &Value| Some((level(&one["Percentile"].as_f64()?.to_string())?, one["Value"].as_f64()?));
    Ok(vec![Output {
        load: Some(load),
        connections: json["NumThreads"].as_u64(),
        rate_per_s: number(json, "/ActualQPS")?,
        requests: Some(count.max(all)),
        errors,
        duration_s: Some(number(json, "/ActualDuration")? / 1e9),
        mean_s: Some(number(json, "/DurationHistogram/Avg")?),
        quantiles_s: percentiles.into_iter().flatten().filter_map(quantile).collect(),
        ..Output::default()
    }])
}
