//! QUIC, by quinn: one bidirectional stream for each connection.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use tokio::io::join;

use crate::error::TransportError;
use crate::laboratory;
use crate::transport::{BoxFuture, Connection, Listener, Moved, Opening, Transport, any_port};

/// The receive window, large enough that flow control does not limit the measurement: about what Linux grants TCP.
const WINDOW_BYTES: u32 = 6 << 20;

/// The transport's name in files, URLs and reports.
pub(crate) const NAME: &str = "quic";

/// QUIC.
pub(crate) struct Quic;

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into());
    Arc::new(transport)
}

impl Transport for Quic {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let tls = laboratory::client_tls().map_err(io::Error::other)?;
            let tls = QuicClientConfig::try_from(tls).expect("ring has the first suite of QUIC");
            let mut config = ClientConfig::new(Arc::new(tls));
            config.transport_config(transport());
            let endpoint = Endpoint::client(any_port(to))?;
            let client_port = endpoint.local_addr()?.port();
            let connecting =
                endpoint.connect_with(config, to, laboratory::host()).map_err(io::Error::other)?;
            let connection = connecting.await?;
            let (send, receive) = connection.open_bi().await?;
            // The connection ends with its two halves.
            let stream = join(receive, send);
            let moved: Moved = Box::new(move || endpoint.rebind(UdpSocket::bind(any_port(to))?));
            Ok(Connection { stream: Box::new(stream), client_port, moved: Some(moved) })
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError> {
        let tls = laboratory::server_tls()?;
        let tls = QuicServerConfig::try_from(tls).expect("ring has the first suite of QUIC");
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport());
        let failed = |source| TransportError::Listen { address: at, kind: NAME, source };
        let endpoint = Endpoint::server(config, at).map_err(failed)?;
        let address = endpoint.local_addr().map_err(failed)?;
        Ok(Box::new(Server { endpoint, address }))
    }
}

struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Listener for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Opening>> {
        Box::pin(async move {
            let closed = || io::Error::other("the endpoint is closed");
            let incoming = self.endpoint.accept().await.ok_or_else(closed)?;
            let client_port = incoming.remote_address().port();
            let opening = async move {
                let connection = incoming.await?;
                let (send, receive) = connection.accept_bi().await?;
                Ok(Connection { stream: Box::new(join(receive, send)) as _, client_port, moved: None })
            };
            Ok(Box::pin(opening) as Opening)
        })
    }
    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.endpoint.close(0_u32.into(), b"the server ends");
        Box::pin(self.endpoint.wait_idle())
    }
}
