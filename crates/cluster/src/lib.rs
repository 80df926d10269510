//! Searches on many machines.
//!
//! A server hands chunks of its searches to workers through a work queue of NATS, and keeps testing other parts itself. Each range
//! of candidates is accounted for once in a [`Ledger`], which is the truth; the queue is a cache that is rebuilt from it.
//!
//! [`Coordinator`] is the logic, without sockets and clocks; [`Cluster`] gives it a connection, a ledger and a clock. [`work`]
//! is the other side.

mod bytes;
mod cluster;
mod coordinator;
mod error;
mod fleet;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod joint_search;
mod ledger;
mod protocol;
mod queue;
mod ranges;
mod spec;
mod worker;

pub use cluster::{Cluster, ClusterCounters, ClusterJob, ClusterOptions, ClusterStatus};
pub use coordinator::{ChunkOutcome, Coordinator, Effect, Opening};
pub use error::ClusterError;
pub use fleet::{CHUNK, Fleet, FleetSpeed, MOST_BATCH, SILENT, batch};
pub use joint_search::{JointSearch, JointState};
pub use ledger::{Ledger, LedgerEntry, LedgerRecord};
pub use protocol::{
    BeatMessage, ChunkMessage, CoordinatorId, MOST_BYTES, MOST_RANGES, Queue, ReportAnswer, ReportMessage,
    WorkerId,
};
pub use ranges::RangeSet;
pub use spec::{JobId, SearchKind, SearchSpec};
pub use worker::{WorkerOptions, WorkerReport, work};
