//! The errors of a record.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a record cannot be written or read, with the name of the file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RecordError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not {what}: {why}", path.display())]
    Format { path: PathBuf, what: &'static str, why: String },
}

impl RecordError {
    /// A failure to write this file, from its cause.
    pub fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Write { path: path.into(), source }
    }

    /// A failure to read this file, from its cause.
    pub fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read { path: path.into(), source }
    }
}
