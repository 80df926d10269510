//! Waits in the queues of a link, from its log, in intervals.

use std::collections::BTreeMap;

use kendall_archive::series::Series;
use kendall_flows::{LinkRow, rows};

use super::series::{HopQueue, interval_s, seconds};

/// What left a queue in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    packets: f64,
    /// The sum of their waits.
    wait_s: f64,
    max_s: f64,
    pub(super) bytes: f64,
}

impl Left {
    pub(super) fn mean_s(self) -> Option<f64> {
        (self.packets > 0.0).then(|| self.wait_s / self.packets)
    }
}

/// A span of a log, cut into intervals of equal length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// The beginning of the part, in nanoseconds since the start of the log.
    from_ns: i64,
    interval_ns: i64,
    pub(super) intervals: usize,
}

impl Cut {
    /// The largest number of whole intervals in a span.
    pub(super) fn of(from_ns: i64, to_ns: i64, interval_s: f64) -> Self {
        let interval_ns = ((interval_s * 1e9).round() as i64).max(1);
        let intervals = to_ns.saturating_sub(from_ns).max(0) / interval_ns;
        Self { from_ns, interval_ns, intervals: intervals as usize }
    }

    pub(super) fn interval_s(&self) -> f64 {
        seconds(self.interval_ns)
    }

    /// The beginning of an interval, in nanoseconds since that of the span; of the one after the last, the end.
    pub(super) fn edge_ns(&self, interval: usize) -> i64 {
        self.interval_ns * interval as i64
    }

    fn interval(&self, time_ns: i64) -> Option<usize> {
        let at = usize::try_from(time_ns.checked_sub(self.from_ns)?.div_euclid(self.interval_ns)).ok()?;
        (at < self.intervals).then_some(at)
    }
}

/// What left each queue in each interval, of the rows that count.
pub(super) fn left(
    log: &Series,
    cut: Cut,
    counts: impl Fn(&LinkRow<'_>) -> bool,
) -> BTreeMap<(String, usize), Vec<Left>> {
    let of = |name, row: &LinkRow<'_>| {
        log.values(name).get(row.place).copied().flatten().filter(|value| *value >= 0.0)
    };
    let mut queues: BTreeMap<(String, usize), Vec<Left>> = BTreeMap::new();
    for row in rows(log).filter(|row| counts(row)) {
        let Some(at) = cut.interval(row.time_ns) else { continue };
        let queue = queues
            .entry((row.direction.to_owned(), row.hop))
            .or_insert_with(|| vec![Left::default(); cut.intervals]);
        let left = &mut queue[at];
        left.bytes += of("delivered_bytes", &row).unwrap_or_default();
        if let (Some(packets), Some(mean_s)) = (of("delivered_packets", &row), of("queue_delay_mean_s", &row))
        {
            left.packets += packets;
            left.wait_s += packets * mean_s;
            left.max_s = left.max_s.max(of("queue_delay_max_s", &row).unwrap_or_default());
        }
    }
    queues
}

/// The wait in each queue that any packet left, from an instant of the log on, which is 0 of the result.
pub(super) fn queues(log: &Series, from_ns: i64) -> Vec<HopQueue> {
    let Some(last_ns) = log.time_ns.iter().max() else { return Vec::new() };
    // A row is of the 10 ms after its instant.
    let to_ns = last_ns.saturating_add(10_000_000);
    let cut = Cut::of(from_ns, to_ns, interval_s(seconds(to_ns.saturating_sub(from_ns))));
    let queue = |((way, hop), left): ((String, usize), Vec<Left>)| HopQueue {
        way,
        hop,
        at_s: (0..left.len()).map(|at| (at as f64 + 0.5) * cut.interval_s()).collect(),
        mean_s: left.iter().map(|left| left.mean_s()).collect(),
        max_s: left.iter().map(|left| left.mean_s().map(|_| left.max_s)).collect(),
    };
    let all = left(log, cut, |_| true).into_iter().map(queue);
    all.filter(|queue| queue.mean_s.iter().any(Option::is_some)).collect()
}
