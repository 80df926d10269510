//! Emulates a network link for real programs.
//!
//! The link itself is [`kendall_linkmodel`]: this crate brings packets to it, waits until they are due, and measures
//! what came of it.

mod lateness;

pub use lateness::{Lateness, LatenessSummary};
