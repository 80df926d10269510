//! The reason why processes cannot be watched.

use std::io;
use std::net::SocketAddr;

use kendall_record::RecordError;

/// The reason why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ProbeError {
    #[error("there is no process {pid} that can be watched: {source}")]
    NoProcess { pid: u32, source: io::Error },
    #[error(
        "{} is not an address of this machine, so the server at {address} cannot be watched from here; run kendall probe where it runs",
        address.ip()
    )]
    Elsewhere { address: SocketAddr },
    #[error(
        "nothing listens at {address} on this machine, so there is no server to watch; to watch a server in a container or in another \
         network namespace, give the number of its process"
    )]
    NoListener { address: SocketAddr },
    #[error(
        "the process that listens at {address} belongs to another user; run kendall as that user or as root"
    )]
    OtherUser { address: SocketAddr },
    #[error("several processes listen at {address}: {pids}; give the number of the one to watch")]
    SeveralListen { address: SocketAddr, pids: String },
    #[error("cannot start the thread that watches: {0}")]
    Thread(io::Error),
    #[error("the thread that watches has failed")]
    Failed,
    #[error(transparent)]
    Record(#[from] RecordError),
}
