//! The errors of a server of the laboratory.

use std::io;
use std::net::SocketAddr;

use kendall_record::RecordError;

/// The reason why a server cannot start, or cannot finish.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TransportError {
    #[error("cannot listen on {address} with {kind}: {source}; choose another address with --listen")]
    Listen { address: SocketAddr, kind: &'static str, source: io::Error },
    #[error("cannot start the {what}: {source}; close other programs or raise the limit of processes")]
    Start { what: &'static str, source: io::Error },
    #[error("cannot make the laboratory's certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    #[error(transparent)]
    Stamps(#[from] RecordError),
}
