//! The counts of a link, as plain data for the record and for the summary on the screen.

use kendall_linkmodel::Counters;
use serde::{Deserialize, Serialize};

use crate::forward::Done;
use crate::lateness::LatenessSummary;

/// The counts of both directions of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// From client to server.
    pub up: DirectionOutcome,
    /// From server to client.
    pub down: DirectionOutcome,
}

/// The counts and times of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionOutcome {
    /// The counts of each hop, in the order in which packets cross them.
    pub hops: Vec<HopCounts>,
    /// How long the packets that arrived had waited in the queues; `None` where none arrived.
    pub waited: Option<LatenessSummary>,
    /// How late packets were sent, compared with the model.
    pub late: Option<LatenessSummary>,
    /// Packets that the kernel did not accept: losses that the settings do not ask for.
    pub unsent: u64,
}

/// The counts of one hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the model's counters, whose words these are")]
pub struct HopCounts {
    pub offered: u64,
    pub offered_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub copies: u64,
    pub dropped_overflow: u64,
    pub dropped_aqm: u64,
    pub dropped_lost: u64,
    pub dropped_wire_full: u64,
    pub marked: u64,
    pub corrupted: u64,
    pub held_back: u64,
    pub inside: u64,
}

impl HopCounts {
    /// The number of packets that did not arrive.
    pub fn dropped(&self) -> u64 {
        self.dropped_overflow + self.dropped_aqm + self.dropped_lost + self.dropped_wire_full
    }
}

impl From<Counters> for HopCounts {
    fn from(from: Counters) -> Self {
        Self {
            offered: from.offered,
            offered_bytes: from.offered_bytes,
            delivered: from.delivered,
            delivered_bytes: from.delivered_bytes,
            copies: from.copies,
            dropped_overflow: from.dropped.overflow,
            dropped_aqm: from.dropped.aqm,
            dropped_lost: from.dropped.lost,
            dropped_wire_full: from.dropped.wire_full,
            marked: from.marked,
            corrupted: from.corrupted,
            held_back: from.held_back,
            inside: from.inside,
        }
    }
}

impl From<&Done> for DirectionOutcome {
    fn from(done: &Done) -> Self {
        Self {
            hops: done.counters.iter().copied().map(HopCounts::from).collect(),
            waited: done.waited.summary(),
            late: done.late.summary(),
            unsent: done.unsent,
        }
    }
}
