//! A protocol as a pure state machine over bytes, and the kind of socket that it is spoken over.

use std::net::SocketAddr;
use std::sync::Arc;

use kendall_record::Outcome;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::request::{Request, Reuse};

/// The most bytes of an answer that a [`Dialog`] may leave unread; with more, the answer is wrong.
pub const UNREAD_AT_MOST_BYTES: usize = 64 * 1024;

/// Where requests go, and over what.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The server.
    pub to: SocketAddr,
    /// What carries the bytes.
    pub transport: Transport,
    /// Whether one connection carries many requests, one after the other, or each request has its own.
    pub reuse: Reuse,
}

/// What carries the bytes of requests and answers.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A TCP connection, with Nagle's algorithm off.
    Tcp,
    /// TLS over TCP. Connecting and the handshake are part of the response time of a connection's first request.
    Tls {
        /// Roots, protocol versions, and the protocols offered by ALPN.
        config: Arc<ClientConfig>,
        /// Whom the server's certificate must name.
        name: ServerName<'static>,
    },
    /// One datagram a request. A socket carries one request at a time and is replaced when one is given up, so that
    /// a late answer is not taken for that of the next.
    Udp,
}

/// Makes the dialogs of a workload's connections.
pub trait Dialogs {
    /// The dialog of a new connection.
    fn dialog(&self) -> Box<dyn Dialog>;
}

/// The protocol of one connection, as a pure state machine: no I/O, no clock. It carries one request at a time.
pub trait Dialog {
    /// A request goes out on this connection; its answer follows.
    fn begin(&mut self, index: u64, request: &Request);

    /// Takes bytes of the answer, beginning with those it left unread the last time. A long body is taken as it
    /// comes; an incomplete head may be left, up to [`UNREAD_AT_MOST_BYTES`] of it. Over UDP `bytes` is one
    /// datagram, and what is left of it is dropped.
    fn read(&mut self, bytes: &[u8]) -> AnswerRead;

    /// The server has closed the connection with the answer not complete: what is it then?
    /// [`Outcome::Refused`], unless the end of the connection is a proper end of an answer.
    fn closed(&mut self) -> Outcome {
        Outcome::Refused
    }
}

/// What a [`Dialog`] made of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRead {
    /// The answer is not complete.
    More {
        /// How many bytes were taken.
        used: usize,
    },
    /// It is complete. Bytes beyond it nobody asked for, and the connection is closed over them.
    Done {
        /// How many bytes were taken.
        used: usize,
        /// [`Outcome::Answered`], [`Outcome::Wrong`], or [`Outcome::Refused`] where the server says so in words.
        outcome: Outcome,
        /// Whether the connection can carry another request.
        reuse: Reuse,
    },
}
