//! The load generator: sends the requests of a [`Workload`] on schedule and reports the outcome of each.
//!
//! The instants at which requests are due are fixed in advance, and response time counts from them, so a slow server
//! cannot slow its own measurement down (no coordinated omission). The thread that owns the sockets owns the timer. Where
//! several threads send, each makes a [`Share`] of the one schedule. A request that finds every allowed connection busy
//! waits in the generator; that wait is part of its response time, and is counted.
//!
//! The generator does not judge: a [`RunSummary`] is figures. This crate knows no system, computes no answer and writes no
//! file; the caller gets the rows in batches, on one of its threads.

mod connection;
mod dialog;
mod gate;
mod generator;
mod ledger;
mod part;
mod plan;
mod poll;
mod privileges;
mod progress;
mod received;
mod request;
mod rows;
mod schedule;
mod sends;
mod session;
mod share;
mod summary;
mod tally;
mod task;
mod timer;
mod workload;

pub use connection::{Connect, Connection, Exchange, LocalFuture, Stamps};
pub use dialog::{AnswerRead, ConnectionKind, Dialog, Dialogs, Tls, UNREAD_AT_MOST_BYTES, Wire};
pub use generator::{LoadError, run, run_part};
pub use part::RunPart;
pub use plan::{Plan, Timing};
pub use progress::Progress;
pub use received::{OpenRequests, ReceivedRows, RowsMissing};
pub use request::{Body, Request, RequestClass, Reuse};
pub use rows::RowBatches;
pub use sends::{Dispersion, Sends};
pub use session::{Opening, OpeningReply, Session, SessionRead, SessionRequest, Sessions};
pub use share::{NoShare, Share};
pub use summary::{
    AgentFigures, Lag, LagShare, Little, Priority, RunSummary, StampedBy, ThreadFigures, ThreadUse,
};
pub use workload::{Route, Workload};
