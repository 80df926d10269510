//! CurveCP, by kendall's own implementation.

use std::io;
use std::net::SocketAddr;

use kendall_curve::curvecp::{ClientConfig, Extension, SecretKey, ServerConfig};
use kendall_curve::{CurveError, Endpoint, RandomNonces, system_random};

use crate::error::TransportError;
use crate::laboratory;
use crate::transport::{BoxFuture, Connection, Listener, Moved, Opening, Transport, any_port};

/// The transport's name in files, URLs and reports.
pub(crate) const NAME: &str = "curve";

/// CurveCP.
pub(crate) struct Curve;

impl Transport for Curve {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let endpoint = Endpoint::client(any_port(to), RandomNonces).map_err(io::Error::other)?;
            let stream = endpoint.connect(ClientConfig {
                identity: SecretKey::generate(&mut system_random()),
                server: laboratory::curve_secret().public_key(),
                server_extension: Extension::default(),
                name: laboratory::curve_name(),
                addresses: vec![to],
                extension: None,
                capabilities: Default::default(),
                message: Default::default(),
            });
            let client_port = endpoint.address().port();
            let stream = Box::new(stream.map_err(io::Error::other)?);
            let moved: Moved = Box::new(move || {
                endpoint.network_changed();
                Ok(())
            });
            Ok(Connection { stream, client_port, moved: Some(moved) })
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError> {
        let config =
            ServerConfig::new(laboratory::curve_secret(), Extension::default(), laboratory::curve_name());
        let endpoint = Endpoint::server(at, config, RandomNonces).map_err(|error| {
            let source = match error {
                CurveError::Bind { source, .. } => source,
                other => io::Error::other(other),
            };
            TransportError::Listen { address: at, kind: NAME, source }
        })?;
        Ok(Box::new(Server(endpoint)))
    }
}

struct Server(Endpoint);

impl Listener for Server {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Opening>> {
        Box::pin(async move {
            let stream = self.0.accept().await.map_err(io::Error::other)?;
            let client_port = stream.connection().address().map_or(0, |address| address.port());
            let opening =
                async move { Ok(Connection { stream: Box::new(stream) as _, client_port, moved: None }) };
            Ok(Box::pin(opening) as Opening)
        })
    }
    fn close(&mut self) -> BoxFuture<'_, ()> {
        // The streams are gone by now, which ends their connections.
        Box::pin(self.0.idle())
    }
}
