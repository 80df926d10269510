//! The load generator: sends the requests of a [`Workload`] on schedule and says what became of each.
//!
//! The instants at which requests are due are fixed in advance, and response time counts from them, so a slow
//! server cannot slow its own measurement down (no coordinated omission). The thread that owns the sockets owns
//! the timer. A request that finds every allowed connection taken waits in the generator; that wait is part of
//! its response time, and counted.
//!
//! This crate knows no system, computes no answer and writes no file: rows go to whoever asked for them.

mod connection;
mod dialog;
mod generator;
mod ledger;
mod plan;
mod poll;
mod progress;
mod schedule;
mod sends;
mod standing;
mod summary;
mod tally;
mod task;
mod timer;
mod workload;

pub use connection::{Connect, Connection, Exchange, LocalFuture, Stamps};
pub use dialog::{Dialog, Dialogs, Reading, Transport, UNREAD_AT_MOST_BYTES, Wire};
pub use generator::{LoadError, run};
pub use plan::{Plan, Timing};
pub use progress::Progress;
pub use sends::{Dispersion, Sends};
pub use summary::{Doubt, Lag, Little, Priority, RunSummary, StampedBy, ThreadUse};
pub use workload::{Body, Request, RequestClass, Reuse, Way, Workload};
