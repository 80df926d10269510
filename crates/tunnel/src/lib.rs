//! A virtual private network over CurveCP.
//!
//! A server has a TUN device and a pool of addresses; each client has a TUN device with the addresses that the server assigned
//! to its key. IP packets travel as [frames](kendall_remote::frame) on one CurveCP stream per client, with the offload header
//! (`virtio_net_hdr`, Virtual I/O Device specification 1.2, section 5.1.6) that the kernel gives them: a TCP segment of
//! 64 kB stays whole from one kernel to the other.
//!
//! The stream is reliable, so a packet that is lost on the way delays those behind it and is never missing. Congestion shows to
//! the connections inside as drops of the queue before the stream, which CoDel keeps short.
//!
//! Not for: machines without Linux's TUN devices, and networks of Ethernet frames.

mod addresses;
mod client;
mod device;
mod error;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod offload;
mod outbox;
mod packet;
mod protocol;
mod routes;
mod server;

pub use addresses::{Assigned, Pool};
pub use client::{ClientSettings, connect};
pub use error::TunnelError;
pub use protocol::MTUS;
pub use server::{ServerSettings, serve};
