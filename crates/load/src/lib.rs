//! The load generator: sends the requests of a [`Workload`] on schedule and says what became of each.
//!
//! The instants at which requests are due are fixed in advance, and response time counts from them, so a slow
//! server cannot slow its own measurement down (no coordinated omission). The thread that owns the sockets owns
//! the timer. A request that finds every allowed connection taken waits in the generator; that wait is part of
//! its response time, and counted.
//!
//! This crate knows no system, computes no answer and writes no file: rows go to whoever asked for them.

mod bridge;
mod dialog;
mod generator;
mod plan;
mod schedule;
mod summary;
mod task;
mod timer;
mod workload;

pub use dialog::{Dialog, Dialogs, Reading, Transport, UNREAD_AT_MOST_BYTES, Wire};
pub use generator::{LoadError, Progress, run};
pub use plan::Plan;
pub use summary::{Doubt, Lag, RunSummary};
pub use task::{Connect, Connection, Exchange, LocalFuture, Stamps};
pub use workload::{Request, RequestClass, Reuse, Way, Workload};
