//! TLS 1.3 over TCP, by rustls.

use std::io;
use std::net::SocketAddr;

use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::tcp;
use crate::error::TransportError;
use crate::laboratory;
use crate::transport::{BoxFuture, Connection, Listener, Transport};

/// The transport's name in files, URLs and reports.
pub(crate) const NAME: &str = "tls";

/// TLS 1.3.
pub(crate) struct Tls;

impl Transport for Tls {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let connector = TlsConnector::from(laboratory::client_tls().map_err(io::Error::other)?);
            let (stream, client_port) = tcp::dial(to).await?;
            let stream = connector.connect(laboratory::server_name(), stream).await?;
            Ok(Connection { stream: Box::new(stream), client_port, moved: None })
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError> {
        let acceptor = TlsAcceptor::from(laboratory::server_tls()?);
        Ok(Box::new(tcp::listen(at, NAME, move |stream, client_port| {
            let accepting = acceptor.accept(stream);
            Box::pin(async move {
                Ok(Connection { stream: Box::new(accepting.await?), client_port, moved: None })
            })
        })?))
    }
}
