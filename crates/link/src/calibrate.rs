//! Measures a link before it is used, and compares the measurement with the settings.
//!
//! Uses two UDP sockets: [`respond`] at the server's end, [`measure`] at the client's. Pings measure the delay of each direction,
//! trains of packets below the link's rate measure the loss, and trains slightly above it measure the rate. Both ends read the
//! clock of this machine, so each direction is measured separately.

mod judge;
pub(crate) mod message;
mod probe;
mod respond;
mod train;

pub use judge::{Calibration, Judged, Measured, Note, Quantity, Side};
pub use probe::measure;
pub use respond::respond;

/// The bytes that a link counts of a datagram in addition to its payload: the headers of Ethernet, IPv4 and UDP.
pub const HEADER_BYTES: u32 = 14 + 20 + 8;
