//! Brings two peers that know each other's key and addresses to a stream between them.
//!
//! Both bind one socket, from which they dial and at which they accept. The peer with the smaller key dials; the other one
//! sends a datagram to each address of the dialling peer now and then, which opens the way through its own address
//! translator for the dialling peer's packets. If no direct way was found after a while, the dialling peer also dials the
//! relay. The first connection that stands is taken, and the dialling peer says so by one byte on it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::time::Duration;

use kendall_curve::CurveError;
use kendall_curve::curvecp::{PublicKey, SecretKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::curve::CurveEnd;
use crate::quic::QuicEnd;
use crate::relay::{Token, announcement};
use crate::transport::{PeerStream, PeerTransport};

/// How often the way through a translator is opened again, and the relay is shown the address.
const OPEN_EVERY: Duration = Duration::from_millis(200);
/// How long the direct ways are tried before the relay is, too.
const DIRECT_ALONE: Duration = Duration::from_millis(2500);
/// Addresses of a peer that are tried, at most, and connections that are looked at.
const MOST_ADDRESSES: usize = 8;
/// What the dialling peer writes on the connection that it takes.
const TAKEN: u8 = b'!';

/// The path of the packets of a connection.
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
    /// The socket cannot be had.
    #[error("cannot bind a UDP socket to {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The transport cannot be used.
    #[error("the transport of the talk cannot be used: {0}")]
    Transport(#[source] io::Error),
    /// CurveCP no longer works.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// The peer was not reached in time.
    #[error(
        "the peer was not reached within {0:.0?}, neither directly nor by a relay: is it still there, and does UDP leave this network?"
    )]
    Unreachable(Duration),
    /// Both peers have the same key.
    #[error("the peer has this program's own key: a peer cannot talk to itself")]
    Oneself,
}

/// One peer's socket for one talk, before it knows the other peer.
pub struct Meeting {
    socket: UdpSocket,
    address: SocketAddr,
    identity: SecretKey,
}

impl Meeting {
    /// Binds a socket; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(local: SocketAddr, identity: SecretKey) -> Result<Self, MeetError> {
        let bound = UdpSocket::bind(local).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(|source| MeetError::Bind { address: local, source })?;
        Ok(Self { socket, address, identity })
    }

    /// The address of the socket. Where it is bound to all addresses of the host, see [`Self::address_towards`].
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address at which hosts of the network that leads to `there` reach this socket, if there is such a network. Behind a
    /// translator it is the one inside.
    pub fn address_towards(&self, there: SocketAddr) -> Option<SocketAddr> {
        let local = self.address;
        if !local.ip().is_unspecified() {
            return Some(local);
        }
        // Connecting a UDP socket sends nothing; it chooses the route.
        let any: SocketAddr = if there.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
        let route = UdpSocket::bind(any).ok()?;
        route.connect(there).ok()?;
        Some(SocketAddr::new(route.local_addr().ok()?.ip(), local.port()))
    }

    /// Meets the peer, with which this one has agreed on the transport. `addresses` are those at which it may be; more may come
    /// while this runs. `relay` is where the relay listens, and this side's token there. To be called within a tokio runtime.
    ///
    /// # Errors
    /// There is no way to the peer within `patience`.
    pub async fn join(
        self,
        transport: PeerTransport,
        peer: PublicKey,
        addresses: watch::Receiver<Vec<SocketAddr>>,
        relay: Option<(SocketAddr, Token)>,
        patience: Duration,
    ) -> Result<(PeerStream, Path), MeetError> {
        let Self { socket, address: local, identity } = self;
        let own = identity.public_key();
        if peer == own {
            return Err(MeetError::Oneself);
        }
        let end = match transport {
            PeerTransport::CurveCp => CurveEnd::new(socket, &identity, peer).map(End::CurveCp),
            PeerTransport::Quic => QuicEnd::new(socket, &identity, &peer).map(End::Quic),
        };
        let end = end.map_err(MeetError::Transport)?;
        let dials = own.0 < peer.0;
        let meet = async {
            let opening = end.open_ways(addresses.clone(), relay, !dials);
            let relay = relay.map(|(address, _)| address);
            let meeting = async {
                match dials {
                    true => Ok(end.dial(addresses.clone(), relay).await),
                    false => end.accept().await,
                }
            };
            tokio::select! {
                stream = meeting => stream,
                never = opening => match never {},
            }
        };
        let stream = timeout(patience, meet).await.map_err(|_| MeetError::Unreachable(patience))??;
        let address = stream.connection().address().unwrap_or(local);
        let path = match relay {
            Some((relay, _)) if relay == address => Path::Relayed(relay),
            _ => Path::Direct(address),
        };
        Ok((stream, path))
    }
}

/// One peer's end of the connections of a talk.
#[derive(Clone)]
enum End {
    CurveCp(CurveEnd),
    Quic(QuicEnd),
}

impl End {
    fn send_datagram(&self, to: SocketAddr, datagram: &[u8]) {
        match self {
            Self::CurveCp(end) => end.send_datagram(to, datagram),
            Self::Quic(end) => end.send_datagram(to, datagram),
        }
    }

    /// The stream, once the peer has answered.
    async fn connect(self, address: SocketAddr) -> Option<PeerStream> {
        match self {
            Self::CurveCp(end) => end.connect(address).await.map(PeerStream::CurveCp),
            Self::Quic(end) => Some(PeerStream::Quic(end.connect(address).await)),
        }
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
                self.send_datagram(relay, &announcement(&token));
            }
            if for_peer {
                for address in addresses.borrow().iter().take(MOST_ADDRESSES) {
                    self.send_datagram(*address, &[0]);
                }
            }
        }
    }

    /// Dials each address as it becomes known, and the relay after a while; takes the first connection that stands.
    async fn dial(
        &self,
        mut addresses: watch::Receiver<Vec<SocketAddr>>,
        relay: Option<SocketAddr>,
    ) -> PeerStream {
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
                    attempts.spawn(self.clone().connect(address));
                }
            }
            tokio::select! {
                Some(Ok(Some(mut stream))) = attempts.join_next() => {
                    // An error shows when the stream is used.
                    _ = stream.write_all(&[TAKEN]).await;
                    return stream;
                }
                changed = addresses.changed(), if more => more = changed.is_ok(),
                () = sleep_until(relay_from), if relay.is_some() => {
                    let address = relay.take().expect("it was just there");
                    attempts.spawn(self.clone().connect(address));
                }
                else => return std::future::pending().await,
            }
        }
    }

    /// Takes the connection that the dialling peer takes.
    async fn accept(&self) -> Result<PeerStream, MeetError> {
        let mut candidates = JoinSet::new();
        loop {
            let has_room = candidates.len() < MOST_ADDRESSES;
            tokio::select! {
                candidate = self.candidate(has_room) => drop(candidates.spawn(taken(candidate?))),
                Some(Ok(Some(stream))) = candidates.join_next() => return Ok(stream),
            }
        }
    }

    /// Waits for a connection, which then has to prove that it is the peer's. Without room, connections over QUIC are refused;
    /// CurveCP has its own bound.
    async fn candidate(&self, has_room: bool) -> Result<Candidate, MeetError> {
        match self {
            Self::CurveCp(end) => {
                let stream = end.accept().await?;
                Ok(Box::pin(async { Some(PeerStream::CurveCp(stream)) }))
            }
            Self::Quic(end) => loop {
                let Some(incoming) = end.accept().await else { std::future::pending().await };
                if has_room {
                    let end = end.clone();
                    return Ok(Box::pin(async { end.admit(incoming).await.map(PeerStream::Quic) }));
                }
                incoming.refuse();
            },
        }
    }
}

/// The stream of a connection that begins, if it is the peer's.
type Candidate = Pin<Box<dyn Future<Output = Option<PeerStream>> + Send>>;

/// The stream, if the dialling peer takes it.
async fn taken(candidate: Candidate) -> Option<PeerStream> {
    let mut stream = candidate.await?;
    (stream.read_u8().await.ok() == Some(TAKEN)).then_some(stream)
}
