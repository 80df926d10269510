//! Users who hold a session: a lasting connection that a log-in opens, over which many requests are in flight at a time
//! and the server may send messages without a request. The answer to one user's request may arrive on the connection of
//! another.

use bytes::Bytes;
use kendall_record::Outcome;

/// The users of a workload, and their sessions.
pub trait Sessions {
    /// The number of users with a session, at least 1. All sessions are opened before the first request is due; a session
    /// that the server closed is opened again for its user's next request.
    fn users(&self) -> u32;

    /// The user who sends the request with this number if the arrivals name none, as for an open stream: a pure function
    /// of the number. In a closed population, user i of the arrivals is user i, modulo [`users`](Self::users).
    fn sender(&self, index: u64) -> u32;

    /// The request with this number, sent by this user. Its class is that of
    /// [`Workload::request`](crate::Workload::request), whose bytes are not sent.
    fn message(&self, index: u64, user: u32) -> SessionRequest;

    /// The protocol of a user's session that is about to be opened.
    fn session(&self, user: u32) -> Box<dyn Session>;
}

/// A request over a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// The key of its answer, on any user's session; different for all requests of a run.
    pub key: u64,
    /// The bytes to send.
    pub bytes: Bytes,
}

/// The protocol of one session, as a pure state machine: no I/O, no clock.
pub trait Session {
    /// The opening of the session. It is sent once, as soon as the connection is established, and requests follow it.
    fn opening(&mut self) -> Opening;

    /// Reads bytes from the server, beginning with those that were left unread the last time. Up to
    /// [`UNREAD_AT_MOST_BYTES`](crate::UNREAD_AT_MOST_BYTES) of an incomplete message may be left.
    fn read(&mut self, bytes: &[u8]) -> SessionRead;
}

/// The opening of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The first bytes to send.
    pub bytes: Bytes,
    /// Whether requests wait for the server's reply.
    pub reply: OpeningReply,
}

/// Whether the server answers the opening of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningReply {
    /// The server does not answer the opening; requests follow at once.
    None,
    /// The server answers the opening; requests wait for [`SessionRead::Opened`].
    Expected,
}

/// The result of reading bytes by a [`Session`]. All but the first consume `used` bytes, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRead {
    /// No message is complete.
    More,
    /// The server has accepted the log-in.
    Opened {
        /// The number of bytes that were read.
        used: usize,
    },
    /// The answer to a request, of this user or another.
    Answer {
        /// The number of bytes that were read.
        used: usize,
        /// The request's key. An answer to a request that is not in flight, because it was abandoned, is dropped.
        key: u64,
        /// [`Outcome::Answered`], [`Outcome::Wrong`], or [`Outcome::Refused`] if the server reports that.
        outcome: Outcome,
    },
    /// A message that answers no request: a notice, or a step of the log-in.
    Unasked {
        /// The number of bytes that were read.
        used: usize,
        /// The reply of the session, before any request that waits for the session to open; empty for none.
        reply: Bytes,
    },
    /// Not a message of the protocol. The connection is closed.
    Invalid,
}
