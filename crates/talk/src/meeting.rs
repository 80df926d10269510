//! How two peers that know each other's key and addresses come to have a stream between them.
//!
//! Both bind one socket, from which they dial and at which they accept. The peer with the smaller key dials; the other one
//! sends a datagram to each address of the dialling peer now and then, which opens the way through its own address
//! translator for the dialling peer's packets. If no direct way was found after a while, the dialling peer also dials the
//! relay. The first connection that stands is taken, and the dialling peer says so by one byte on it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kendall_curve::curvecp::{
    ClientConfig, DomainName, Extension, MessageConfig, PublicKey, SecretKey, ServerConfig,
};
use kendall_curve::{CurveError, Endpoint, RandomNonces, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::relay::{Token, announcement};

/// The name that a peer's side of a connection has. Peers are known by their keys.
const NAME: &str = "peer.kendall";
/// How often the way through a translator is opened again, and the relay is shown the address.
const OPEN_EVERY: Duration = Duration::from_millis(200);
/// How long the direct ways are tried before the relay is, too.
const DIRECT_ALONE: Duration = Duration::from_millis(2500);
/// A connection that is silent for so long is lost: a vanished peer is noticed within seconds.
const IDLE: Duration = Duration::from_secs(6);
/// How often an idle connection shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_millis(1500);
/// Addresses of a peer that are tried, at most.
const MOST_ADDRESSES: usize = 8;
/// What the dialling peer writes on the connection that it takes.
const TAKEN: u8 = b'!';

/// Which way the packets of a connection take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Straight to the peer at this address.
    Direct(SocketAddr),
    /// Through the relay at this address.
    Relayed(SocketAddr),
}

/// Two peers did not meet.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// The transport cannot be used.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// There was no way in time.
    #[error(
        "the peer was not reached within {0:.0?}, neither directly nor by a relay: is it still there, and does UDP leave this network?"
    )]
    Unreachable(Duration),
    /// Both have the same key.
    #[error("the peer has this program's own key: a peer cannot talk to itself")]
    Oneself,
}

/// One peer's socket for one talk, before it knows the other peer.
pub struct Meeting {
    endpoint: Arc<Endpoint>,
    identity: SecretKey,
    /// Who may connect, once that is known.
    peer: Arc<OnceLock<PublicKey>>,
}

impl Meeting {
    /// Binds a socket; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn bind(local: SocketAddr, identity: SecretKey) -> Result<Self, MeetError> {
        let peer = Arc::new(OnceLock::new());
        let mut config = ServerConfig::new(identity.clone(), Extension::default(), name());
        config.message = message();
        config.max_connections = 4;
        let expected = peer.clone();
        config.authorise = Some(Box::new(move |key, _| expected.get() == Some(key)));
        let endpoint = Arc::new(Endpoint::server(local, config, RandomNonces)?);
        Ok(Self { endpoint, identity, peer })
    }

    /// The address of the socket. Where it is bound to all addresses of the host, see [`Self::address_towards`].
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// The address at which hosts of the network that leads to `there` reach this socket, if there is such a network. Behind a
    /// translator it is the one inside.
    pub fn address_towards(&self, there: SocketAddr) -> Option<SocketAddr> {
        let local = self.endpoint.address();
        if !local.ip().is_unspecified() {
            return Some(local);
        }
        // Connecting a UDP socket sends nothing; it chooses the route.
        let any: SocketAddr = if there.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
        let route = UdpSocket::bind(any).ok()?;
        route.connect(there).ok()?;
        Some(SocketAddr::new(route.local_addr().ok()?.ip(), local.port()))
    }

    /// Meets the peer. `addresses` are those at which it may be; more may come while this runs. `relay` is where the relay
    /// listens, and this side's token there.
    ///
    /// # Errors
    /// There is no way to the peer within `patience`.
    pub async fn join(
        self,
        peer: PublicKey,
        addresses: watch::Receiver<Vec<SocketAddr>>,
        relay: Option<(SocketAddr, Token)>,
        patience: Duration,
    ) -> Result<(Stream, Path), MeetError> {
        let own = self.identity.public_key();
        if peer == own {
            return Err(MeetError::Oneself);
        }
        self.peer.get_or_init(|| peer);
        let dials = own.0 < peer.0;
        let meet = async {
            let opening = self.open_ways(addresses.clone(), relay, !dials);
            let relay = relay.map(|(address, _)| address);
            let meeting = async {
                match dials {
                    true => self.dial(peer, addresses.clone(), relay).await,
                    false => self.accept().await,
                }
            };
            tokio::select! {
                stream = meeting => stream,
                never = opening => match never {},
            }
        };
        let stream = timeout(patience, meet).await.map_err(|_| MeetError::Unreachable(patience))??;
        let address = stream.connection().address().unwrap_or_else(|| self.address());
        let path = match relay {
            Some((relay, _)) if relay == address => Path::Relayed(relay),
            _ => Path::Direct(address),
        };
        Ok((stream, path))
    }

    /// Shows the relay this socket's address, and opens the way for the peer's packets, again and again.
    async fn open_ways(
        &self,
        addresses: watch::Receiver<Vec<SocketAddr>>,
        relay: Option<(SocketAddr, Token)>,
        for_peer: bool,
    ) -> std::convert::Infallible {
        let mut again = interval(OPEN_EVERY);
        loop {
            again.tick().await;
            if let Some((relay, token)) = relay {
                self.endpoint.send_datagram(relay, &announcement(&token));
            }
            if for_peer {
                for address in addresses.borrow().iter().take(MOST_ADDRESSES) {
                    self.endpoint.send_datagram(*address, &[0]);
                }
            }
        }
    }

    /// Dials each address as it becomes known, and the relay after a while; takes the first connection that stands.
    async fn dial(
        &self,
        peer: PublicKey,
        mut addresses: watch::Receiver<Vec<SocketAddr>>,
        relay: Option<SocketAddr>,
    ) -> Result<Stream, MeetError> {
        let mut tried: Vec<SocketAddr> = Vec::new();
        let mut attempts = JoinSet::new();
        let relay_from = Instant::now() + DIRECT_ALONE;
        let mut relay = relay;
        let mut more = true;
        loop {
            let known = addresses.borrow_and_update().clone();
            for address in known.into_iter().take(MOST_ADDRESSES) {
                if !tried.contains(&address) && tried.len() < MOST_ADDRESSES {
                    tried.push(address);
                    attempts.spawn(attempt(self.endpoint.connect(self.towards(peer, address))?));
                }
            }
            tokio::select! {
                Some(Ok(Some(mut stream))) = attempts.join_next() => {
                    // An error shows when the stream is used.
                    _ = stream.write_all(&[TAKEN]).await;
                    return Ok(stream);
                }
                changed = addresses.changed(), if more => more = changed.is_ok(),
                () = sleep_until(relay_from), if relay.is_some() => {
                    let address = relay.take().expect("it was just there");
                    attempts.spawn(attempt(self.endpoint.connect(self.towards(peer, address))?));
                }
                else => return std::future::pending().await,
            }
        }
    }

    /// Takes the connection that the dialling peer takes.
    async fn accept(&self) -> Result<Stream, MeetError> {
        let mut candidates = JoinSet::new();
        loop {
            tokio::select! {
                stream = self.endpoint.accept() => {
                    let mut stream = stream?;
                    candidates.spawn(async move {
                        (stream.read_u8().await.ok() == Some(TAKEN)).then_some(stream)
                    });
                }
                Some(Ok(Some(stream))) = candidates.join_next() => return Ok(stream),
            }
        }
    }

    fn towards(&self, peer: PublicKey, address: SocketAddr) -> ClientConfig {
        ClientConfig {
            identity: self.identity.clone(),
            server: peer,
            server_extension: Extension::default(),
            name: name(),
            addresses: vec![address],
            extension: None,
            capabilities: Default::default(),
            message: message(),
        }
    }
}

/// The stream, once the peer has answered.
async fn attempt(stream: Stream) -> Option<Stream> {
    stream.connection().established().await.then_some(stream)
}

fn name() -> DomainName {
    DomainName::new(NAME).expect("it is a name")
}

fn message() -> MessageConfig {
    MessageConfig { idle_timeout: Some(IDLE), keep_alive: Some(KEEP_ALIVE), ..MessageConfig::default() }
}
