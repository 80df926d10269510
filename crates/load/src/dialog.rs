//! A protocol as a pure state machine over bytes, and the kind of socket that it is spoken over.

use std::net::SocketAddr;
use std::sync::Arc;

use kendall_linkmodel::Transport;
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
    pub kind: ConnectionKind,
    /// Whether one connection carries many requests, one after the other, or each request has its own.
    pub reuse: Reuse,
}

/// The kind of a connection: the transport that carries its bytes, and whether TLS secures it.
#[derive(Clone, Debug)]
pub struct ConnectionKind {
    transport: Transport,
    tls: Option<Tls>,
}

/// What a connection needs for TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Roots, protocol versions, and the protocols offered by ALPN.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

impl ConnectionKind {
    /// A TCP connection, with Nagle's algorithm off.
    pub const TCP: Self = Self::plain(Transport::TCP);
    /// One datagram a request. A socket carries one request at a time and is replaced when one is given up, so that
    /// a late answer is not taken for that of the next.
    pub const UDP: Self = Self::plain(Transport::UDP);

    /// Connections of a transport, not secured. Of streams, a request is written as soon as it is there; of datagrams, each request
    /// is one.
    pub const fn plain(transport: Transport) -> Self {
        Self { transport, tls: None }
    }

    /// TLS over TCP. Connecting and the handshake are part of the response time of a connection's first request.
    pub fn tls(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        Self { transport: Transport::TCP, tls: Some(Tls { config, name }) }
    }

    /// The transport.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What secures it, if anything.
    pub fn security(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }
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

    /// The status of the last answer that was complete, in a protocol whose answers have one, such as 404 of HTTP.
    fn status(&self) -> Option<u16> {
        None
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
