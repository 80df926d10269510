//! Emulates a network link for real programs.
//!
//! The model of the link is [`kendall_linkmodel`]. This crate carries packets to it, waits until they are due, and measures the
//! result.

mod back_end;
pub mod calibrate;
mod emulated;
mod emulator;
mod end;
mod error;
mod forward;
mod forwarder;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod hops;
mod lateness;
mod leftovers;
mod measured;
mod namespace;
mod netem;
mod netlink;
mod outcome;
mod pace;
mod port;
mod program;
mod protocol;
mod receive;
pub mod relay;
mod setup;
mod spool;
mod tun;

pub use back_end::BackEnd;
pub use emulated::{CLIENT, EMULATE, EmulatedLink, End, SERVER, check_congestion_control, probe};
pub use emulator::emulate;
pub use error::LinkError;
pub use forwarder::Forward;
pub use frame::MTU_BYTES;
pub use hops::Hop;
pub use lateness::{Lateness, LatenessSummary};
pub use measured::measure_relay;
pub use namespace::Privilege;
pub use outcome::{DirectionOutcome, HopCounts, Outcome};
pub use program::{ProgramEnd, ServerProgram};
pub use protocol::LinkSettings;
pub use spool::layout;
