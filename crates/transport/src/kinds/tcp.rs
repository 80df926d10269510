//! TCP, unencrypted. Small messages are sent at once (no Nagle), as in every other kind.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::error::TransportError;
use crate::transport::{BoxFuture, Connection, Listener, Opening, Transport};

/// The most connections that wait in the kernel.
const BACKLOG: u32 = 1024;

/// The transport's name in files, URLs and reports.
pub(crate) const NAME: &str = "tcp";

/// TCP.
pub(crate) struct Tcp;

impl Transport for Tcp {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let (stream, client_port) = dial(to).await?;
            Ok(Connection { stream: Box::new(stream), client_port, moved: None })
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError> {
        Ok(Box::new(listen(at, NAME, |stream, client_port| {
            Box::pin(async move { Ok(Connection { stream: Box::new(stream), client_port, moved: None }) })
        })?))
    }
}

/// A connection of TCP, and the client's port.
pub(super) async fn dial(to: SocketAddr) -> io::Result<(TcpStream, u16)> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let port = stream.local_addr()?.port();
    Ok((stream, port))
}

/// A server whose connections begin as TCP; `open` completes each.
pub(super) struct OverTcp<F> {
    listener: TcpListener,
    address: SocketAddr,
    open: F,
}

/// Listens for connections of TCP, on which `open` builds.
pub(super) fn listen<F>(
    address: SocketAddr,
    kind: &'static str,
    open: F,
) -> Result<OverTcp<F>, TransportError>
where
    F: Fn(TcpStream, u16) -> Opening + Send + Sync,
{
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let (listener, address) = bind().map_err(|source| TransportError::Listen { address, kind, source })?;
    Ok(OverTcp { listener, address, open })
}

impl<F> Listener for OverTcp<F>
where
    F: Fn(TcpStream, u16) -> Opening + Send + Sync,
{
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Opening>> {
        Box::pin(async move {
            let (stream, from) = self.listener.accept().await?;
            // A connection that is already closed fails in its handshake or at its first read.
            let _ = stream.set_nodelay(true);
            Ok((self.open)(stream, from.port()))
        })
    }
}
