//! OpenTelemetry's protocol, version 1: an `ExportMetricsServiceRequest` as JSON
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).

use serde_json::{Value, json};

use crate::Labels;
use crate::queue::Stamped;
use crate::series::{ALL, Kind, Series};

pub(crate) const HEADERS: &[(&str, &str)] = &[("content-type", "application/json")];

/// Samples in the order of their instants, with the start of the run.
pub(crate) fn message(samples: &[Stamped], labels: &Labels, began_ns: u64) -> Vec<u8> {
    let service = [("service.name".to_owned(), "kendall".to_owned())];
    let own = labels.iter().map(|(name, value)| (format!("kendall.{name}"), value.clone()));
    let attributes: Vec<Value> =
        service.into_iter().chain(own).map(|(name, value)| attribute(&name, &value)).collect();
    let metrics: Vec<Value> =
        ALL.chunk_by(|a, b| a.name == b.name).map(|group| metric(group, samples, began_ns)).collect();
    let message = json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes },
        "scopeMetrics": [{
            "scope": { "name": "kendall", "version": env!("CARGO_PKG_VERSION") },
            "metrics": metrics,
        }],
    }] });
    message.to_string().into_bytes()
}

/// The series of one name as a metric.
fn metric(group: &[Series], samples: &[Stamped], began_ns: u64) -> Value {
    let point = |series: &Series, sample: &Stamped| {
        let value = (series.of)(sample).filter(|value| value.is_finite())?;
        let attributes: Vec<Value> =
            series.label.iter().map(|(name, value)| attribute(name, value)).collect();
        // The encoding writes 64-bit integers as text.
        let mut point =
            json!({ "timeUnixNano": sample.at_ns.to_string(), "asDouble": value, "attributes": attributes });
        if series.kind == Kind::Total {
            point["startTimeUnixNano"] = began_ns.to_string().into();
        }
        Some(point)
    };
    let points: Vec<Value> = group
        .iter()
        .flat_map(|series| samples.iter().filter_map(move |sample| point(series, sample)))
        .collect();
    let Series { name, unit, kind, .. } = &group[0];
    match kind {
        Kind::Gauge => json!({ "name": name, "unit": unit, "gauge": { "dataPoints": points } }),
        // 2 means cumulative.
        Kind::Total => json!({
            "name": name, "unit": unit,
            "sum": { "dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true },
        }),
    }
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}
