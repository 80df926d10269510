//! Users who hold a session: a lasting connection that a log-in opens, over which many requests are out at a time and the
//! server may speak unasked. The answer to one user's request may come on the connection of another.

use bytes::Bytes;
use kendall_record::Outcome;

/// The users of a workload, and their sessions.
pub trait Sessions {
    /// How many users hold a session, at least 1. All sessions are opened before the first request is due; a session that
    /// the server closed is opened again for its user's next request.
    fn users(&self) -> u32;

    /// The user who sends the request with this number where the arrivals name none, as an open stream does not: a pure
    /// function of the number. In a closed population, user i of the arrivals is user i, modulo [`users`](Self::users).
    fn sender(&self, index: u64) -> u32;

    /// The request with this number as this user sends it. Its class is that of
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
    /// What is sent.
    pub bytes: Bytes,
}

/// The protocol of one session, as a pure state machine: no I/O, no clock.
pub trait Session {
    /// What opens the session. It is sent once, as soon as the connection is there, and requests follow it.
    fn opening(&mut self) -> Opening;

    /// Takes a part of what the server sends, beginning with the bytes that were left unread the last time. Up to
    /// [`UNREAD_AT_MOST_BYTES`](crate::UNREAD_AT_MOST_BYTES) of an incomplete message may be left.
    fn read(&mut self, bytes: &[u8]) -> SessionRead;
}

/// How a session is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What is sent first.
    pub bytes: Bytes,
    /// Whether requests wait for the server's word.
    pub reply: OpeningReply,
}

/// Whether the server answers the opening of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningReply {
    /// It does not; requests follow at once.
    None,
    /// It does; requests wait for [`SessionRead::Opened`].
    Expected,
}

/// What a [`Session`] made of bytes. Each but the first takes `used` bytes, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRead {
    /// No message is complete.
    More,
    /// The server has accepted the log-in.
    Opened {
        /// How many bytes were taken.
        used: usize,
    },
    /// The answer to a request, of this user or another.
    Answer {
        /// How many bytes were taken.
        used: usize,
        /// The request's key. An answer to a request that is not out, because it was given up, is dropped.
        key: u64,
        /// [`Outcome::Answered`], [`Outcome::Wrong`], or [`Outcome::Refused`] where the server says so in words.
        outcome: Outcome,
    },
    /// A message that answers no request: a notice, or a step of the log-in.
    Unasked {
        /// How many bytes were taken.
        used: usize,
        /// What the session replies, before any request that waits for the session to open; empty for nothing.
        reply: Bytes,
    },
    /// No message of the protocol. The connection is closed over it.
    Invalid,
}
