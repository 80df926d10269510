//! Flows that compete for a link: the record of such a run, and the share of each flow.
//!
//! A record is a folder: [`About`] describes the run, [`ClientRecord`] has what arrived every 100 ms, and the folder `link` has
//! the emulator's own log. [`Traces`] reads all of it; [`competition`] computes the result. A [`Tournament`] is a folder of such
//! records.
//!
//! This crate starts nothing and opens no socket: the transport laboratory writes these records, the analysis reads them.

mod link_log;
mod measured;
mod record;

pub use link_log::{LinkRow, rows};
pub use measured::{
    Competition, FlowResult, Handshakes, Hop, Latency, competition, handshakes, jain, measured_from_ns,
};
pub use record::{
    ABOUT, About, ClientRecord, ECHO_PORT, FlowAbout, LINK, LinkDirection, PROCESSOR_TIMES, SEEN, TOURNAMENT,
    Tick, Tournament, Traces,
};
