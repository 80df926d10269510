//! Counters of the events on a link.

use crate::drops::{Cause, Drops};
use crate::log::FlowLog;

/// Counters of the events on a link. At any time `offered + copies = delivered + dropped + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were passed to the link.
    pub offered: u64,
    /// The bytes of the offered packets.
    pub offered_bytes: u64,
    /// Packets that the link delivered, copies included.
    pub delivered: u64,
    /// The bytes of the delivered packets.
    pub delivered_bytes: u64,
    /// Extra packets: the wire delivered a packet once more.
    pub copies: u64,
    /// Packets that will not arrive.
    pub dropped: Drops,
    /// Packets marked instead of dropped.
    pub marked: u64,
    /// Packets damaged on the wire.
    pub corrupted: u64,
    /// Packets held back so that others overtake them.
    pub held_back: u64,
    /// Packets inside: waiting, or on the wire; copies included.
    pub inside: u64,
}

/// The counters and log that the parts of a link write.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) counters: Counters,
    pub(crate) log: Option<FlowLog>,
}

impl Ledger {
    pub(crate) fn offered(&mut self, at_ns: i64, flow: u64, bytes: u32, queue_bytes: u64) {
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(bytes);
        self.counters.inside += 1;
        if let Some(row) = self.log.as_mut().and_then(|log| log.row(at_ns, flow)) {
            row.offered += 1;
            row.offered_bytes += u64::from(bytes);
            row.queue_bytes_max = row.queue_bytes_max.max(queue_bytes);
        }
    }

    pub(crate) fn dropped(&mut self, at_ns: i64, flow: u64, cause: Cause) {
        self.counters.dropped.count(cause);
        self.counters.inside -= 1;
        if let Some(row) = self.log.as_mut().and_then(|log| log.row(at_ns, flow)) {
            row.dropped.count(cause);
        }
    }

    pub(crate) fn marked(&mut self, at_ns: i64, flow: u64) {
        self.counters.marked += 1;
        if let Some(row) = self.log.as_mut().and_then(|log| log.row(at_ns, flow)) {
            row.marked += 1;
        }
    }

    pub(crate) fn waited(&mut self, at_ns: i64, flow: u64, waited_ns: i64) {
        if let Some(row) = self.log.as_mut().and_then(|log| log.row(at_ns, flow)) {
            row.waited(waited_ns);
        }
    }

    pub(crate) fn copied(&mut self, copies: u32) {
        self.counters.copies += u64::from(copies - 1);
        self.counters.inside += u64::from(copies - 1);
    }

    pub(crate) fn delivered(&mut self, at_ns: i64, flow: u64, bytes: u32, copies: u32) {
        let (copies, all_bytes) = (u64::from(copies), u64::from(copies) * u64::from(bytes));
        self.counters.delivered += copies;
        self.counters.delivered_bytes += all_bytes;
        self.counters.inside -= copies;
        if let Some(row) = self.log.as_mut().and_then(|log| log.row(at_ns, flow)) {
            row.delivered += copies;
            row.delivered_bytes += all_bytes;
        }
    }
}
