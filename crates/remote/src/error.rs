//! Errors of remote work, worded for users.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kendall_curve::CurveError;

use crate::frame::FrameTooLong;
use crate::path::{BadPath, shown};
use crate::wire::BadMessage;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// A file could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// A line of a file of keys cannot be read.
    #[error("{}, line {line}: {reason}", path.display())]
    KeyLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault, and what to write instead.
        reason: &'static str,
    },
    /// Other users could add keys to a file.
    #[error(
        "{0} can be changed by other users (mode {mode:04o}), who could let themselves in: run chmod go-w {0}",
        path.display(),
    )]
    KeysWritable {
        /// The file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// Another user than root and the server's owns a file of keys.
    #[error(
        "{0} belongs to another user (number {owner}), who could let themselves in: run chown {server} {0}",
        path.display(),
    )]
    KeysOwner {
        /// The file.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
        /// The number of the user that runs this process.
        server: u32,
    },
    /// The file of hosts is not valid.
    #[error("{}: {reason}", path.display())]
    HostsFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A host on the command line that the file of hosts does not have.
    #[error(
        "no host is called \"{host}\": add it to {} as\n\n  [{host}]\n  name = \"its domain name\"\n  key = \"its public \
         key, from kendall curve show\"\n  address = \"HOST:PORT\"\n\nor name the server with --server NAME KEY ADDRESS",
        path.display()
    )]
    UnknownHost {
        /// The host as given on the command line.
        host: String,
        /// The file of hosts.
        path: PathBuf,
    },
    /// Sources and target do not make a copy.
    #[error("{0}")]
    Operands(String),
    /// A path leads out of the folder.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// An address cannot be resolved.
    #[error("cannot find the address \"{address}\": {source}; write HOST:PORT")]
    Address {
        /// The address as the user wrote it.
        address: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// No server answered.
    #[error(
        "no server answered at {address}. A server is silent to a client whose key it does not admit, and to one that is wrong \
         about its key or its name. Check: (1) is this key in the server's file of authorised keys? {client} (2) does \
         `kendall curve show` print there {server}, and is {name} its name? (3) does UDP reach {address}?"
    )]
    NoAnswer {
        /// The places at which the host was looked up.
        address: String,
        /// The client's public key.
        client: String,
        /// The server's public key in the client's settings.
        server: String,
        /// The server's name in the client's settings.
        name: String,
    },
    /// The server refused the request.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The connection ended before the copy.
    #[error("the connection was lost: {0}. Run the same command again: it continues where this one ended")]
    Lost(io::Error),
    /// Nothing has come from the peer for too long, although its machine answers.
    #[error(
        "the peer has sent nothing for {} s: its program hangs, or is stopped. Run the same command again: it continues where \
         this one ended",
        .0.as_secs_f64()
    )]
    Silent(Duration),
    /// The copy was stopped by a signal.
    #[error("interrupted. Run the same command again: it continues where this one ended")]
    Interrupted,
    /// The peer broke the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The connection.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

impl RemoteError {
    /// For `map_err`: what was tried with which file.
    pub(crate) fn file<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source: source.into() }
    }

    /// A refusal that a peer has sent, as a terminal may show it.
    pub(crate) fn refused(text: &str) -> Self {
        Self::Refused(shown(text.as_bytes()).into_owned())
    }

    pub(crate) fn unexpected(message: &str) -> Self {
        Self::Protocol(format!(
            "the peer sent a message out of order ({message}); check that both sides run the same version of kendall"
        ))
    }
}

impl From<BadMessage> for RemoteError {
    fn from(error: BadMessage) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<FrameTooLong> for RemoteError {
    fn from(error: FrameTooLong) -> Self {
        Self::Protocol(error.to_string())
    }
}
