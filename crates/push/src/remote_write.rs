//! Prometheus' remote write, version 1.0: a `WriteRequest` in protobuf, compressed by Snappy
//! (<https://prometheus.io/docs/specs/prw/remote_write_spec/>).

use prost::Message;

use crate::Labels;
use crate::queue::Stamped;
use crate::series::{ALL, Series};

pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("content-type", "application/x-protobuf"),
    ("content-encoding", "snappy"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Samples in the order of their instants, as a series for each number.
pub(crate) fn message(samples: &[Stamped], labels: &Labels) -> Vec<u8> {
    let series = ALL
        .iter()
        .map(|series| TimeSeries { labels: self::labels(series, labels), samples: values(series, samples) });
    // A series without a number yet is left out.
    let request = WriteRequest { timeseries: series.filter(|series| !series.samples.is_empty()).collect() };
    snap::raw::Encoder::new()
        .compress_vec(&request.encode_to_vec())
        .expect("a message of some kilobytes can be compressed")
}

fn values(series: &Series, samples: &[Stamped]) -> Vec<Sample> {
    let value = |sample: &Stamped| {
        let value = (series.of)(sample).filter(|value| value.is_finite())?;
        Some(Sample { value, timestamp: (sample.at_ns / 1_000_000) as i64 })
    };
    samples.iter().filter_map(value).collect()
}

/// Labels in the order of their names, as the specification requires.
fn labels(series: &Series, labels: &Labels) -> Vec<Label> {
    let name = format!("{}_{}", series.name.replace('.', "_"), series.suffix);
    let own = series.label.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let all = [("__name__".to_owned(), name)].into_iter().chain(labels.iter().cloned()).chain(own);
    let mut all: Vec<Label> = all.map(|(name, value)| Label { name, value }).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
