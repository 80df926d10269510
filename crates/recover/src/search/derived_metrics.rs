//! The metrics that are computed at a scrape rather than counted: the progress of the table and whether it has paid off,
//! and the estimated sources of passwords.

use std::fmt::{self, Error};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::learned::{Kind, SourceEstimate};
use super::query::PasswordSource;
use super::shared::Shared;
use super::table::TableReport;

/// The collector of these metrics.
pub(super) struct DerivedMetrics(pub(super) Arc<Shared>);

impl Collector for DerivedMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        if let Some(report) = self.0.table_report() {
            table(&mut encoder, &report)?;
        }
        self.learned(&mut encoder)
    }
}

/// The gauges of a table; unknown ones are skipped.
fn table(encoder: &mut DescriptorEncoder<'_>, report: &TableReport) -> Result<(), Error> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let gauges = [
        (
            "longest",
            "Length of the longest passwords in the table, in characters",
            Some(report.longest as f64),
        ),
        ("passwords", "Passwords in the complete table", Some(report.passwords as f64)),
        ("bytes", "Memory that the table takes", Some(report.bytes as f64)),
        (
            "next_bytes",
            "Memory that a table one character longer would take",
            report.next_bytes.map(|b| b as f64),
        ),
        ("done", "Share of the table that is built; it answers at 1", Some(report.done)),
        ("hits", "Requests that the table has answered", Some(report.hits as f64)),
        ("cost_seconds", "Processor time that building the table took", report.cost_ns.map(seconds)),
        (
            "saved_seconds",
            "Average processor time of searches for the requests that the table answered",
            Some(seconds(report.saved_ns)),
        ),
        (
            "break_even_requests",
            "Requests that the table must answer until building it has paid off",
            report.break_even,
        ),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            let name = format!("recover_table_{name}");
            let metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
    }
    Ok(())
}

impl DerivedMetrics {
    fn learned(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Mean time that a candidate takes in a search";
        let mut family =
            encoder.encode_descriptor("recover_candidate_seconds", help, None, MetricType::Gauge)?;
        for (kind, way) in [(Kind::Rules, PasswordSource::Rules), (Kind::Masks, PasswordSource::BruteForce)] {
            let gauge = ConstGauge::new(self.0.learned.ns_of(kind) / 1e9);
            gauge.encode(family.encode_family(&[("way", way.name())])?)?;
        }
        let help = "Probability, by the adaptive strategy, of where a password is that is not known at once";
        let mut family =
            encoder.encode_descriptor("recover_learned_probability", help, None, MetricType::Gauge)?;
        for SourceEstimate { length, way, probability } in self.0.learned.estimates() {
            let labels = [("length", length.as_str()), ("way", way.name())];
            ConstGauge::new(probability).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for DerivedMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metrics of the table and of the statistics")
    }
}
