//! Why processes cannot be watched.

use std::io;

use kendall_record::RecordError;

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ProbeError {
    #[error("there is no process {pid} that can be watched: {source}")]
    NoProcess { pid: u32, source: io::Error },
    #[error("cannot start the thread that watches: {0}")]
    Thread(io::Error),
    #[error("the thread that watches has failed")]
    Failed,
    #[error(transparent)]
    Record(#[from] RecordError),
}
