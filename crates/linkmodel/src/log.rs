//! A log of the events of each flow in each short span of time: a table that grows at one end and is drained at the
//! other.

use std::collections::BTreeMap;

use crate::drops::Drops;

/// The most rows that wait to be drained. A link with more flows between two drains counts the rest on the flow
/// [`OTHERS`].
const MOST_ROWS: usize = 16_384;

/// The flow that collects the events without a row.
pub const OTHERS: u64 = 0;

/// The events of one flow in one span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// When the span begins, in ns on the clock of the caller.
    pub start_ns: i64,
    /// The flow of these packets.
    pub flow: u64,
    /// Packets passed to the link.
    pub offered: u64,
    /// The bytes of the offered packets.
    pub offered_bytes: u64,
    /// Packets that the link delivered, copies included.
    pub delivered: u64,
    /// The bytes of the delivered packets: the goodput.
    pub delivered_bytes: u64,
    /// Packets that were dropped.
    pub dropped: Drops,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that left the queue for the wire.
    pub sent: u64,
    /// The shortest wait of one of those in the queue, in ns; 0 if none was sent.
    pub wait_min_ns: i64,
    /// The longest, in ns.
    pub wait_max_ns: i64,
    /// The sum over them, in ns; divided by `sent` it is the mean.
    pub wait_sum_ns: i64,
    /// The most waiting bytes of all flows that any of its packets found on arrival.
    pub queue_bytes_max: u64,
}

impl FlowRow {
    /// The mean time in the queue of the packets that left it, in ns; `None` if none did.
    pub fn wait_mean_ns(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.wait_sum_ns as f64 / self.sent as f64)
    }

    pub(crate) fn waited(&mut self, waited_ns: i64) {
        self.wait_min_ns = if self.sent == 0 { waited_ns } else { self.wait_min_ns.min(waited_ns) };
        self.wait_max_ns = self.wait_max_ns.max(waited_ns);
        self.wait_sum_ns = self.wait_sum_ns.saturating_add(waited_ns);
        self.sent += 1;
    }
}

/// The log of a link, a row for each flow and span.
#[derive(Debug)]
pub(crate) struct FlowLog {
    every_ns: i64,
    rows: BTreeMap<(i64, u64), FlowRow>,
}

impl FlowLog {
    /// An empty log with spans of this length, at least 1 ns.
    pub(crate) fn new(every_ns: i64) -> Self {
        Self { every_ns: every_ns.max(1), rows: BTreeMap::new() }
    }

    /// The row of a flow at an instant. `None` if the log is full and even the row for all others does not exist.
    pub(crate) fn row(&mut self, at_ns: i64, flow: u64) -> Option<&mut FlowRow> {
        let span = at_ns.div_euclid(self.every_ns);
        let full = self.rows.len() >= MOST_ROWS;
        let flow = if full && !self.rows.contains_key(&(span, flow)) { OTHERS } else { flow };
        if self.rows.len() >= 2 * MOST_ROWS {
            return self.rows.get_mut(&(span, flow));
        }
        let start_ns = span * self.every_ns;
        Some(self.rows.entry((span, flow)).or_insert_with(|| FlowRow {
            start_ns,
            flow,
            ..FlowRow::default()
        }))
    }

    /// Takes out the rows of all spans that end at or before an instant, oldest first.
    pub(crate) fn drain(&mut self, until_ns: i64) -> impl Iterator<Item = FlowRow> + use<> {
        let open = self.rows.split_off(&(until_ns.div_euclid(self.every_ns), 0));
        std::mem::replace(&mut self.rows, open).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_drained_once_it_is_over() {
        let mut log = FlowLog::new(10);
        for (at_ns, flow) in [(3, 7), (9, 7), (10, 7), (12, 8), (-1, 7)] {
            log.row(at_ns, flow).unwrap().offered += 1;
        }
        let drained: Vec<_> = log.drain(19).map(|row| (row.start_ns, row.flow, row.offered)).collect();
        assert_eq!(drained, [(-10, 7, 1), (0, 7, 2)]);
        assert_eq!(log.drain(20).map(|row| (row.start_ns, row.flow)).collect::<Vec<_>>(), [(10, 7), (10, 8)]);
        assert_eq!(log.drain(i64::MAX).count(), 0);
    }

    #[test]
    fn more_flows_than_it_holds_are_booked_together() {
        let mut log = FlowLog::new(10);
        let flows = 3 * MOST_ROWS as u64;
        for flow in 1..=flows {
            log.row(5, flow).unwrap().offered += 1;
        }
        let rows: Vec<FlowRow> = log.drain(10).collect();
        assert_eq!(rows.len(), MOST_ROWS + 1);
        assert_eq!(rows.iter().map(|row| row.offered).sum::<u64>(), flows);
        assert_eq!((rows[0].flow, rows[0].offered), (OTHERS, 2 * MOST_ROWS as u64));
    }

    #[test]
    fn a_log_without_drains_stays_bounded() {
        let mut log = FlowLog::new(10);
        for at_ns in 0..10 * 5 * MOST_ROWS as i64 {
            log.row(at_ns, 1);
        }
        assert!(log.rows.len() <= 2 * MOST_ROWS);
    }
}
