//! Errors of CurveCP connections, worded for users.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CurveError {
    /// A key directory was to be created where something exists already.
    #[error("cannot create the key directory {}: it exists already; choose another name", .0.display())]
    KeyDirectoryExists(PathBuf),
    /// A file could not be read, written or locked.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// A file of a key directory does not have the bytes that it should have.
    #[error("{} is not a valid key file: it must have exactly {expected} bytes; restore it from a backup", path.display())]
    KeyFileLength {
        /// The file.
        path: PathBuf,
        /// The bytes it should have.
        expected: usize,
    },
    /// The public key of a directory does not belong to its secret key.
    #[error(
        "{} does not hold the public key that belongs to the secret key beside it; restore the key directory from a backup",
        .0.display()
    )]
    KeysDiffer(PathBuf),
    /// All nonces of a long-term key have been used; another would repeat one.
    #[error("all nonces of {} are used: create a new key directory", .0.display())]
    NoncesUsedUp(PathBuf),
    /// The socket could not be opened.
    #[error("cannot bind UDP {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The protocol cannot be used so.
    #[error(transparent)]
    Protocol(#[from] curvecp::Error),
    /// The socket failed or the runtime stopped, so the endpoint is over.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Program {
        /// The name of the program.
        program: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
}

impl CurveError {
    /// For `map_err`: what was tried with which file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
