//! Errors worded for the user.

use std::io;
use std::path::PathBuf;

use kendall_nats::NatsError;

/// The reason why a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no connection to the NATS server.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The queue cannot be created.
    #[error(
        "cannot create the work queue: {0}; nats-server needs JetStream (nats-server -js), and this user the permission"
    )]
    Queue(String),
    /// The ledger cannot be opened.
    #[error("cannot open the ledger {}: {reason}", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread for the cluster: {0}")]
    Thread(io::Error),
    /// The search on a graphics card was required and is impossible.
    #[error("cannot search on a graphics card: {0}; leave out --device gpu")]
    Card(String),
}
