//! Errors worded for the user.

use std::io;
use std::path::PathBuf;

/// The reason why a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The address is not one of NATS.
    #[error(
        "{0:?} is not the address of a cluster; write nats://HOST:PORT, tls://HOST:PORT or nats://USER:PASSWORD@HOST:PORT"
    )]
    Address(String),
    /// The server cannot be reached, or rejects the credentials.
    #[error(
        "cannot connect to the cluster at {address}: {reason}; start nats-server -js there, or check address and credentials"
    )]
    Connect {
        /// The address, without credentials.
        address: String,
        /// The error.
        reason: String,
    },
    /// The file of credentials cannot be read.
    #[error("cannot read the credentials {}: {source}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file of certificates cannot be read.
    #[error("cannot read the certificates {}: {source}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
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
