//! A protocol as a pure state machine over bytes, and the kind of its socket.

use std::net::SocketAddr;
use std::sync::Arc;

use kendall_linkmodel::Transport;
use kendall_record::Outcome;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::request::{Request, Reuse};

/// The most bytes of an answer that a [`Dialog`] may leave unread; beyond it, the answer is wrong.
pub const UNREAD_AT_MOST_BYTES: usize = 64 * 1024;

/// The destination of requests, and their transport.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The server.
    pub to: SocketAddr,
    /// The transport of the bytes.
    pub kind: ConnectionKind,
    /// Whether one connection carries many requests, one after the other, or each request has a separate one.
    pub reuse: Reuse,
}

/// The kind of a connection: the transport that carries its bytes, and whether TLS secures it.
#[derive(Clone, Debug)]
pub struct ConnectionKind {
    transport: Transport,
    tls: Option<Tls>,
}

/// The TLS parameters of a connection.
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
    /// UDP, one datagram per request. A socket carries one request at a time and is replaced when one is abandoned, so that a late
    /// answer is not taken for that of the next.
    pub const UDP: Self = Self::plain(Transport::UDP);

    /// Unsecured connections of a transport. A request over a stream is written as soon as it is ready; over datagrams, each
    /// request is one.
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

    /// The TLS parameters, if it is secured.
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
    /// Starts a request on this connection; its answer follows.
    fn begin(&mut self, index: u64, request: &Request);

    /// Reads bytes of the answer, beginning with those it left unread the last time. A long body is read as it arrives; an
    /// incomplete head may be left, up to [`UNREAD_AT_MOST_BYTES`] of it. Over UDP `bytes` is one datagram, and unread bytes of it
    /// are dropped.
    fn read(&mut self, bytes: &[u8]) -> AnswerRead;

    /// The outcome if the server closes the connection before the answer is complete. [`Outcome::Refused`], unless the end of the
    /// connection properly ends the answer.
    fn closed(&mut self) -> Outcome {
        Outcome::Refused
    }

    /// The status of the last complete answer, in a protocol whose answers have one, such as 404 of HTTP.
    fn status(&self) -> Option<u16> {
        None
    }
}

/// The result of reading bytes by a [`Dialog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRead {
    /// The answer is not complete.
    More {
        /// The number of bytes that were read.
        used: usize,
    },
    /// The answer is complete. Further bytes answer no request, and the connection is then closed.
    Done {
        /// The number of bytes that were read.
        used: usize,
        /// [`Outcome::Answered`], [`Outcome::Wrong`], or [`Outcome::Refused`] if the server reports that.
        outcome: Outcome,
        /// Whether the connection can carry another request.
        reuse: Reuse,
    },
}
