//! What a scrape of the metrics is told that is not counted, but follows from what was: how far the table is and whether
//! it has paid, and where passwords are thought to be.

use std::fmt::{self, Error};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::learned::{Kind, Place};
use super::shared::Shared;
use super::table::TableReport;
use super::wanted::Way;

/// See the module.
pub(super) struct Told(pub(super) Arc<Shared>);

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        if let Some(report) = self.0.table_report() {
            table(&mut encoder, &report)?;
        }
        self.learned(&mut encoder)
    }
}

/// The gauges of a table; those that are not known yet are left out.
fn table(encoder: &mut DescriptorEncoder<'_>, report: &TableReport) -> Result<(), Error> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let gauges = [
        ("longest", "Passwords of up to so many characters are in the table", Some(report.longest as f64)),
        ("passwords", "Passwords that the table has, or will have", Some(report.passwords as f64)),
        ("bytes", "Memory that the table takes", Some(report.bytes as f64)),
        (
            "next_bytes",
            "Memory that a table of one character more would take",
            report.next_bytes.map(|b| b as f64),
        ),
        ("done", "How much of the table is built; it answers at 1", Some(report.done)),
        ("hits", "Requests that the table has answered", Some(report.hits as f64)),
        ("cost_seconds", "Processor time that building the table took", report.cost_ns.map(seconds)),
        (
            "saved_seconds",
            "Processor time that searches would have taken for what the table answered, on average",
            Some(seconds(report.saved_ns)),
        ),
        (
            "break_even_requests",
            "Requests that the table has to answer before building it has paid",
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

impl Told {
    fn learned(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Mean time that a candidate takes in a search";
        let mut family =
            encoder.encode_descriptor("recover_candidate_seconds", help, None, MetricType::Gauge)?;
        for (kind, way) in [(Kind::Rules, Way::Rules), (Kind::Masks, Way::BruteForce)] {
            let gauge = ConstGauge::new(self.0.learned.ns_of(kind) / 1e9);
            gauge.encode(family.encode_family(&[("way", way.name())])?)?;
        }
        let help = "Where the adaptive strategy thinks a password to be that is not known at once";
        let mut family =
            encoder.encode_descriptor("recover_learned_probability", help, None, MetricType::Gauge)?;
        for Place { length, way, probability } in self.0.learned.places() {
            let labels = [("length", length.as_str()), ("way", way.name())];
            ConstGauge::new(probability).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is told of table and of what was learned")
    }
}
