//! Connections of a client.

use std::io::{self, ErrorKind};
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
/// How long a look-up may take where an address of the server is known already.
const LOOK_UP_LIMIT: Duration = Duration::from_secs(5);

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
    dial_with(host, keys, MessageConfig::default(), None).await
}

/// The same, with other limits of the connection, such as the time without an answer after which it is lost.
///
/// `known` is an address at which the server has answered before. It is used where the host's name cannot be looked up now: the
/// resolver may be reached only by the connection that was lost.
///
/// # Errors
/// As for [`dial`].
pub async fn dial_with(
    host: &Host,
    keys: &KeyDirectory,
    message: MessageConfig,
    known: Option<SocketAddr>,
) -> Result<Dialled, RemoteError> {
    let mut addresses = look_up(&host.address, known).await?;
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

/// The addresses of a host, or the one that is known where the look-up fails.
async fn look_up(address: &str, known: Option<SocketAddr>) -> Result<Vec<SocketAddr>, RemoteError> {
    let unknown = |source| RemoteError::Address { address: address.to_owned(), source };
    let look_up = lookup_host(address);
    let found = match known {
        Some(_) => timeout(LOOK_UP_LIMIT, look_up).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())),
        None => look_up.await,
    };
    let addresses = found.and_then(|found| {
        let addresses: Vec<_> = found.take(MAX_ADDRESSES).collect();
        if addresses.is_empty() { Err(io::Error::other("the name has no address")) } else { Ok(addresses) }
    });
    match (addresses, known) {
        (Err(error), Some(known)) => {
            tracing::debug!("{address} cannot be looked up: {error}; trying {known} again");
            Ok(vec![known])
        }
        (addresses, _) => addresses.map_err(unknown),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_address_serves_where_the_name_cannot_be_looked_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let known = SocketAddr::from(([192, 0, 2, 1], 7));
            // Without a port there is nothing to look up, so the test needs no resolver.
            assert!(matches!(look_up("server", None).await, Err(RemoteError::Address { .. })));
            assert_eq!(look_up("server", Some(known)).await.unwrap(), [known]);
            let found = look_up("192.0.2.9:8", Some(known)).await.unwrap();
            assert_eq!(found, [SocketAddr::from(([192, 0, 2, 9], 8))], "the name counts where it is found");
        });
    }
}
