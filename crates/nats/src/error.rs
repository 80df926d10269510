//! Errors worded for the user.

use std::io;
use std::path::PathBuf;

/// The reason why there is no connection to a NATS server.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The address is invalid.
    #[error(
        "{0:?} is not the address of a NATS server; write nats://HOST:PORT, tls://HOST:PORT or \
         nats://USER:PASSWORD@HOST:PORT"
    )]
    Address(String),
    /// The server cannot be reached, or rejects the credentials.
    #[error(
        "cannot connect to the NATS server at {address}: {reason}; start nats-server there, or check address and credentials"
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
}
