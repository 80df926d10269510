//! Flows that compete for a link: the record that a run of them leaves, and what each flow got.
//!
//! A record is a folder: [`About`] says what ran, [`ClientRecord`] what arrived every 100 ms, and the folder `link` has the emulator's own
//! log. [`Traces`] reads all of it; [`competition`] makes the result from it. A [`Tournament`] is a folder of such records.
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
