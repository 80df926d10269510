//! Errors of a remote shell, worded for users.

use std::io;

use kendall_curve::CurveError;

use crate::error::RemoteError;
use crate::shell::protocol::FrameError;

/// An error of the remote shell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The endpoint cannot be used.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// A connection cannot be opened.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The peer broke the protocol.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer sent a valid frame where it has no place, or numbers that cannot be.
    #[error("the peer broke the shell's protocol: {0}")]
    Protocol(&'static str),
    /// The server answered nothing.
    #[error("{0}")]
    NoAnswer(String),
    /// The connection ended in place of an answer.
    #[error("the connection ended before the server answered: {0}")]
    Connection(io::Error),
    /// The server refused.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The session no longer exists, so a lost connection cannot be resumed.
    #[error("the connection was lost and the session cannot go on: {0}")]
    SessionGone(String),
    /// The user does not exist on this machine.
    #[error("there is no user {0} in this machine's user database; correct the file of authorised keys")]
    NoUser(String),
    /// Only root can run programs as another user.
    #[error("cannot run programs as the user {0}: the server does not run as root")]
    NotRoot(String),
    /// The user database cannot be read.
    #[error("cannot read this machine's user database: {0}")]
    Users(io::Error),
    /// A program or its terminal could not be set up.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The shell.
        program: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The local terminal or a standard stream cannot be used.
    #[error("cannot use {what}: {source}")]
    Local {
        /// The resource that cannot be used.
        what: &'static str,
        /// The error that the operating system reported.
        source: io::Error,
    },
}
