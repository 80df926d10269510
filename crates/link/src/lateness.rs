//! How late the emulator was: from the instant at which a packet was due by the model until it was sent.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The largest recorded lateness: a minute, in ns.
const LATEST_NS: u64 = 60_000_000_000;

/// A histogram of lateness, in constant memory.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LATEST_NS, 2).expect("bounds of a histogram that can be"))
    }
}

/// How late the packets of an emulated link were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessSummary {
    /// The number of packets sent.
    pub packets: u64,
    /// The median, in ns.
    pub p50_ns: u64,
    /// The 99th percentile, in ns.
    pub p99_ns: u64,
    /// The maximum, in ns.
    pub max_ns: u64,
    /// The histogram: the upper edge in ns of each non-empty bucket, and its number of packets.
    pub buckets: Vec<(u64, u64)>,
}

impl Lateness {
    /// Counts packets that were due at one instant and left at another. An early packet counts as on time.
    pub fn record(&mut self, due_ns: i64, left_ns: i64, packets: u64) {
        let late_ns = u64::try_from(left_ns.saturating_sub(due_ns)).unwrap_or(0);
        self.0.saturating_record_n(late_ns, packets);
    }

    /// Adds the counts of another emulator.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("histograms of the same bounds");
    }

    /// The summary so far; `None` where no packet has left.
    pub fn summary(&self) -> Option<LatenessSummary> {
        let histogram = &self.0;
        (!histogram.is_empty()).then(|| LatenessSummary {
            packets: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
            buckets: histogram
                .iter_log(1_000, 2.0)
                .filter(|bucket| bucket.count_since_last_iteration() > 0)
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_accounts_for_every_packet() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.summary(), None);
        for late_ns in 0..1000 {
            lateness.record(5, 5 + late_ns * 1_000, 1);
        }
        let mut all = Lateness::default();
        all.add(&lateness);
        all.record(10, 3, 1); // early
        let summary = all.summary().unwrap();
        assert_eq!(summary.packets, 1001);
        assert_eq!(summary.buckets.iter().map(|(_, packets)| packets).sum::<u64>(), 1001);
        assert!((summary.p50_ns as f64 / 500e3 - 1.0).abs() < 0.02, "{}", summary.p50_ns);
        assert!((summary.p99_ns as f64 / 990e3 - 1.0).abs() < 0.02, "{}", summary.p99_ns);
        assert!(summary.max_ns >= 999_000);
    }
}
