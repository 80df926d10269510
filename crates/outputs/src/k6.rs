//! k6's summary as JSON: of `--summary-export`, and of a script's `handleSummary`, where the numbers of each metric are one level
//! deeper.

use serde_json::Value;

use crate::source::{Missing, Source, level, number, optional};
use crate::{Format, Load, Output};

pub(crate) const LEGACY: Format = Format {
    tool: "k6",
    form: "the JSON of --summary-export",
    command: "k6 run --summary-export FILE script.js",
    is: |source| is_of_k6(source) && !is_deep(source),
    read: |source| output(source, ""),
};

pub(crate) const SUMMARY: Format = Format {
    tool: "k6",
    form: "the JSON of handleSummary",
    command: "handleSummary(data) { return { 'FILE': JSON.stringify(data) } }",
    is: |source| is_of_k6(source) && is_deep(source),
    read: |source| output(source, "/values"),
};

fn is_of_k6(source: &Source<'_>) -> bool {
    source.has_members(&["/metrics"])
        && ["/root_group", "/metrics/http_reqs", "/metrics/iterations", "/state"]
            .iter()
            .any(|member| source.has_members(&[member]))
}

fn is_deep(source: &Source<'_>) -> bool {
    let metrics = source.json.as_ref().and_then(|json| json["metrics"].as_object());
    metrics.into_iter().flatten().any(|(_, metric)| metric.get("values").is_some())
}

fn output(source: &Source<'_>, within: &str) -> Result<Vec<Output>, Missing> {
    let json = source.value()?;
    let place = |metric: &str, what: &str| format!("/metrics/{metric}{within}/{what}");
    let optional_metric = |metric: &str, what: &str| optional(json, &place(metric, what));
    let rate_per_s = number(json, &place("http_reqs", "rate"))?;
    let requests = number(json, &place("http_reqs", "count"))?;
    let mean_s = number(json, &place("http_req_duration", "avg"))? / 1e3;
    // A rate of k6 counts as passed if its condition is true, which is here that the request failed.
    let failed = optional_metric("http_req_failed", "passes").unwrap_or_default();
    let connections =
        optional_metric("vus_max", "max").or_else(|| optional_metric("vus", "max")).filter(|vus| *vus >= 1.0);
    let is_open = json.pointer("/metrics/dropped_iterations").is_some();
    let load = if is_open {
        Some(Load::Open { rate_per_s: None })
    } else {
        optional_metric("iteration_duration", "avg").zip(optional_metric("iterations", "count")).and_then(
            |(each_ms, iterations)| {
                let per_iteration = requests / iterations;
                let think_s = (each_ms / 1e3 / per_iteration - mean_s).max(0.0);
                think_s.is_finite().then_some(Load::Closed { think_s })
            },
        )
    };
    let trend = json.pointer(&format!("/metrics/http_req_duration{within}")).and_then(Value::as_object);
    let quantile = |(name, value): (&String, &Value)| {
        let level =
            if name == "med" { Some(0.5) } else { level(name.strip_prefix("p(")?.strip_suffix(')')?) };
        Some((level?, value.as_f64()? / 1e3))
    };
    Ok(vec![Output {
        load,
        connections: connections.map(|vus| vus as u64),
        rate_per_s,
        requests: Some(requests as u64),
        errors: vec![("failed request".to_owned(), failed as u64)],
        duration_s: optional(json, "/state/testRunDurationMs")
            .map(|ms| ms / 1e3)
            .or_else(|| (rate_per_s > 0.0).then(|| requests / rate_per_s)),
        mean_s: Some(mean_s),
        quantiles_s: trend.into_iter().flatten().filter_map(quantile).collect(),
        ..Output::default()
    }])
}
