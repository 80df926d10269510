//! Connections of a client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use kendall_curve::curvecp::{ClientConfig, DomainName, MessageConfig};
use kendall_curve::{Connection, CurveError, Endpoint, KeyDirectory, Stream};
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::error::RemoteError;
use crate::hosts::Host;

/// Addresses of a host that are tried, at most.
const MAX_ADDRESSES: usize = 8;

/// A connection that may still be opening: it can be written to at once.
#[derive(Debug)]
pub struct Dialled {
    /// The socket, which lives as long as the connection.
    pub endpoint: Endpoint,
    /// The stream.
    pub stream: Stream,
    connection: Connection,
    no_answer: NoAnswer,
}

/// The checks to make where no server answers.
#[derive(Clone, Debug)]
pub struct NoAnswer {
    connection: Connection,
    host: Host,
    client: String,
}

/// Opens a connection to a host, as the client whose key directory this is.
///
/// # Errors
/// [`RemoteError::Address`] where the host's address is not known, [`RemoteError::Curve`].
pub async fn dial(host: &Host, keys: &KeyDirectory) -> Result<Dialled, RemoteError> {
    dial_with(host, keys, MessageConfig::default()).await
}

/// The same, with other limits of the connection, such as the time without an answer after which it is lost.
///
/// # Errors
/// As for [`dial`].
pub async fn dial_with(
    host: &Host,
    keys: &KeyDirectory,
    message: MessageConfig,
) -> Result<Dialled, RemoteError> {
    let unknown = |source| RemoteError::Address { address: host.address.clone(), source };
    let mut addresses: Vec<SocketAddr> = lookup_host(&host.address).await.map_err(unknown)?.collect();
    if addresses.is_empty() {
        return Err(unknown(std::io::Error::other("the name has no address")));
    }
    addresses.truncate(MAX_ADDRESSES);
    let nonces = keys.nonces()?;
    let endpoint = bind(&mut addresses, |any| Endpoint::client(any, nonces))?;
    let stream = endpoint.connect(ClientConfig {
        identity: keys.secret().clone(),
        server: host.key,
        server_extension: Default::default(),
        name: DomainName::new(&host.name).map_err(CurveError::from)?,
        addresses,
        extension: None,
        capabilities: Default::default(),
        message,
    })?;
    let connection = stream.connection().clone();
    let client = format!("{:?}", keys.public_key());
    let no_answer = NoAnswer { connection: connection.clone(), host: host.clone(), client };
    Ok(Dialled { endpoint, stream, connection, no_answer })
}

impl Dialled {
    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Watches for a server that does not answer.
    pub fn no_answer(&self) -> NoAnswer {
        self.no_answer.clone()
    }
}

impl NoAnswer {
    /// Ends only where no server answers within a time: with what to check.
    pub async fn within(self, limit: Duration) -> RemoteError {
        if let Ok(true) = timeout(limit, self.connection.established()).await {
            std::future::pending::<()>().await;
        }
        let Host { name, key, address, .. } = self.host;
        RemoteError::NoAnswer { address, client: self.client, server: format!("{key:?}"), name }
    }
}

/// Binds a socket that reaches the addresses, and drops those that it cannot reach: on a machine without IPv6, those of
/// IPv6.
fn bind<E>(
    addresses: &mut Vec<SocketAddr>,
    client: impl FnOnce(SocketAddr) -> Result<E, CurveError>,
) -> Result<E, CurveError> {
    let unspecified = |ip: IpAddr| SocketAddr::new(ip, 0);
    let [v4, v6] = [unspecified(Ipv4Addr::UNSPECIFIED.into()), unspecified(Ipv6Addr::UNSPECIFIED.into())];
    if addresses.iter().all(SocketAddr::is_ipv4) {
        return client(v4);
    }
    if addresses.iter().any(SocketAddr::is_ipv4) && UdpSocket::bind(v6).is_err() {
        addresses.retain(SocketAddr::is_ipv4);
        return client(v4);
    }
    client(v6)
}
