//! Series along time, and how long their intervals are.

use serde::Serialize;

/// A series has no more intervals; those of longer runs are longer.
const MOST_INTERVALS: usize = 400;
/// The shortest interval, in seconds: that of the records of flows.
const SHORTEST_S: f64 = 0.1;

/// The goodput of flows along time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Goodput {
    /// The ends of the intervals, one more than these are, in seconds since the first flows began.
    pub edges_s: Vec<f64>,
    /// Each flow.
    pub flows: Vec<FlowGoodput>,
}

/// The goodput of one flow along time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowGoodput {
    /// The name of the flow: "curve".
    pub kind: String,
    /// Bytes per second in each interval.
    pub bytes_per_s: Vec<f64>,
}

impl Goodput {
    /// Whether anything arrived at all.
    pub fn has_any(&self) -> bool {
        self.flows.iter().flat_map(|flow| &flow.bytes_per_s).any(|rate| *rate > 0.0)
    }
}

/// The wait in one queue of a link along time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopQueue {
    /// "up" is from client to server, "down" back.
    pub way: String,
    /// The hop, from 1, in the order in which packets cross them in that direction.
    pub hop: usize,
    /// The middles of the intervals, in seconds since the first flows began.
    pub at_s: Vec<f64>,
    /// The mean wait over the packets that left the queue; `None` where none did.
    pub mean_s: Vec<Option<f64>>,
    /// The longest.
    pub max_s: Vec<Option<f64>>,
}

/// How long the intervals of a series are that spans this.
pub(super) fn interval_s(span_s: f64) -> f64 {
    let tenths = (span_s / SHORTEST_S / MOST_INTERVALS as f64).ceil().max(1.0);
    tenths * SHORTEST_S
}

/// How long the intervals of a cloud are: a tenth of the span, at least 0.1 s and at most a second, so that a cloud has about ten
/// points or more and one does not show single packets.
pub(super) fn window_s(span_s: f64) -> f64 {
    (span_s / 10.0).clamp(SHORTEST_S, 1.0)
}

/// Seconds of a number of nanoseconds.
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
