//! What a link does, measured before it is used: asked and measured side by side.
//!
//! Two UDP sockets, one at each end: [`respond`] at the server's, [`measure`] at the client's. Pings say how long each
//! way takes, trains of packets below the link's rate how many are lost, and trains just above it what the rate is. Both
//! ends read the clock of this machine, so each way is measured by itself.

mod judge;
mod message;
mod probe;
mod respond;
mod train;

pub use judge::{Calibration, Judged, Measured, Note, Quantity, Side};
pub use probe::measure;
pub use respond::respond;

/// What a link counts of a datagram beyond its payload, in bytes: the headers of Ethernet, IPv4 and UDP.
pub const HEADER_BYTES: u32 = 14 + 20 + 8;
