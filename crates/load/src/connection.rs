//! Connections that bring their own futures: for protocols whose libraries need a runtime.

use std::future::Future;
use std::io;
use std::pin::Pin;

use kendall_record::Outcome;

use crate::request::{Request, Reuse};

/// A future that stays on the generator's thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Opens connections.
pub trait Connect {
    /// Opens a connection. Called within a tokio runtime of one thread.
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// A connection that carries one request at a time; for a protocol with several streams, one of them.
pub trait Connection {
    /// The client's port, which matches the server's stamps.
    fn port(&self) -> u16;

    /// Sends a request and waits for its complete answer. The stamps are set as events occur, so that they
    /// are there even if the caller gives up and drops the future.
    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange>;

    /// Whether the server has kept it open, as far as is known without waiting. Asked before each request but the first: a server may
    /// close a connection that is idle. The default is for a protocol whose exchange takes another connection where it must.
    fn is_open(&mut self) -> bool {
        true
    }
}

/// The events on a connection, by [`kendall_record::clock::now_ns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Just before the first byte was passed to the kernel.
    pub sent: Option<i64>,
    /// When the first byte of the answer had arrived.
    pub first_byte: Option<i64>,
    /// When the answer was complete, or the exchange failed.
    pub completed: Option<i64>,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// The status of the complete answer, in a protocol whose answers have one, such as 404 of HTTP.
    pub status: Option<u16>,
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// [`Outcome::Answered`], [`Outcome::Wrong`] or [`Outcome::Refused`].
    pub outcome: Outcome,
    /// Whether the connection can carry another request.
    pub reuse: Reuse,
}
