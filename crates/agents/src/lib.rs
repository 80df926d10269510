//! One load from several machines: `kendall agent`, and the fleet of agents that a load or an experiment uses.
//!
//! A [`Fleet`] splits a plan into [`Share`](kendall_load::Share)s, so that all agents together send the requests of one
//! generator, and starts them at one instant. Agents return rows and distributions, which are added; no percentile is
//! averaged. The messages go over the request and reply of a NATS server that the user runs.
//!
//! An agent loads only targets that its own command line allows, reads no file that a message names, and starts nothing.

mod agent;
mod clock;
mod fleet;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod job;
mod message;
mod outbox;
mod rows;

pub use agent::{AgentOptions, agent};
pub use fleet::{Fleet, FleetError, FleetOptions};
pub use job::Target;
