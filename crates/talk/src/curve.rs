//! Talks over CurveCP, in which the handshake proves both keys.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use kendall_curve::curvecp::{
    ClientConfig, DomainName, Extension, MessageConfig, PublicKey, SecretKey, ServerConfig,
};
use kendall_curve::{CurveError, Endpoint, RandomNonces, Stream};

use crate::terms::{IDLE, KEEP_ALIVE, NAME};

/// One peer's end of the connections of a talk.
#[derive(Clone)]
pub(crate) struct CurveEnd {
    endpoint: Arc<Endpoint>,
    identity: SecretKey,
    peer: PublicKey,
}

impl CurveEnd {
    /// On a socket, for talks with one peer; within a tokio runtime.
    ///
    /// # Errors
    /// Where the system refuses the socket.
    pub(crate) fn new(socket: UdpSocket, identity: &SecretKey, peer: PublicKey) -> io::Result<Self> {
        let mut config = ServerConfig::new(identity.clone(), Extension::default(), name());
        config.message = message();
        config.max_connections = 4;
        config.authorise = Some(Box::new(move |key, _| *key == peer));
        let endpoint = Arc::new(Endpoint::server_on(socket, config, RandomNonces)?);
        Ok(Self { endpoint, identity: identity.clone(), peer })
    }

    /// Sends a datagram that is not of CurveCP.
    pub(crate) fn send_datagram(&self, to: SocketAddr, datagram: &[u8]) {
        self.endpoint.send_datagram(to, datagram);
    }

    /// Dials until the peer has answered, or the endpoint no longer works.
    pub(crate) async fn connect(self, address: SocketAddr) -> Option<Stream> {
        let stream = self.endpoint.connect(self.towards(address)).ok()?;
        stream.connection().established().await.then_some(stream)
    }

    /// Waits for a connection of the peer's.
    ///
    /// # Errors
    /// Where the endpoint no longer works.
    pub(crate) async fn accept(&self) -> Result<Stream, CurveError> {
        self.endpoint.accept().await
    }

    fn towards(&self, address: SocketAddr) -> ClientConfig {
        ClientConfig {
            identity: self.identity.clone(),
            server: self.peer,
            server_extension: Extension::default(),
            name: name(),
            addresses: vec![address],
            extension: None,
            capabilities: Default::default(),
            message: message(),
        }
    }
}

fn name() -> DomainName {
    DomainName::new(NAME).expect("it is a name")
}

fn message() -> MessageConfig {
    MessageConfig { idle_timeout: Some(IDLE), keep_alive: Some(KEEP_ALIVE), ..MessageConfig::default() }
}
