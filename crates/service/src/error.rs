//! The reasons why a server cannot start, or cannot finish.

use std::io;
use std::net::SocketAddr;

use kendall_record::RecordError;

/// The reason why a server cannot start, or cannot finish.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ServiceError {
    #[error("cannot listen on {address}: {source}; choose another address with {option}")]
    Listen { address: SocketAddr, option: &'static str, source: io::Error },
    #[error("cannot start the server's {what}: {source}")]
    Start { what: &'static str, source: io::Error },
    #[error("cannot write the server's stamps: {0}")]
    Stamps(#[from] RecordError),
}
