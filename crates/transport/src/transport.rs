//! The trait of a transport: connect, listen, and a stream of bytes each way.

use std::future::{Future, ready};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::TransportError;

/// A future that any thread can run.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream of bytes each way. Shutting it down ends the direction to the peer in order.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection, at either end.
pub struct Connection {
    /// The bytes each way.
    pub stream: Box<dyn Duplex>,
    /// The client's port, which matches the server's stamps to the client's rows.
    pub client_port: u16,
    /// For a client whose transport can follow a change of its address: call it after one.
    pub moved: Option<Moved>,
}

/// Continues a connection from the client's new address.
pub type Moved = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A handshake at the server's side, which the server runs concurrently with others.
pub type Opening = BoxFuture<'static, io::Result<Connection>>;

/// A transport. Its methods are called within a tokio runtime with I/O and timers.
pub trait Transport: Send + Sync {
    /// Opens a connection, from a separate socket.
    ///
    /// It is ready once bytes can be written. That is after the handshake, except where the first bytes travel with it, as in
    /// CurveCP; there, a server that does not answer fails the first read.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>>;

    /// Listens; port 0 picks a free one.
    ///
    /// # Errors
    /// Fails if the address is in use or not permitted, and if no certificate can be created.
    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError>;
}

/// A server's end of a transport.
pub trait Listener: Send {
    /// The address on which it listens, with the port that was picked.
    fn address(&self) -> SocketAddr;

    /// Waits for a client. Can be cancelled without losing one.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Opening>>;

    /// Ends all connections, and waits until their clients know. Over TCP the system does so.
    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Any port of this machine that can reach the address.
pub(crate) fn any_port(to: SocketAddr) -> SocketAddr {
    let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(any, 0)
}
