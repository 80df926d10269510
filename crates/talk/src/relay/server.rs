//! A relay on a UDP socket.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::{DatagramAction, Limits, PairId, Pairs, Token, TooManyPairs};

/// The longest datagram that is forwarded: CurveCP's have at most 1,440 bytes.
const MOST_BYTES: usize = 1500;
/// Announcements that wait for the relay's owner; peers repeat theirs.
const SEEN: usize = 1024;
/// How often silent pairs are looked for.
const EXPIRE_EVERY: Duration = Duration::from_secs(5);

/// The announcement of a peer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAnnounced {
    /// The pair.
    pub pair: PairId,
    /// The side whose token it was: the first or the second.
    pub side: usize,
    /// The address that the announcement came from.
    pub address: SocketAddr,
}

/// Opens and closes pairs of a relay. Clones are of the same relay.
#[derive(Clone, Debug)]
pub struct RelayHandle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begin: Instant,
    pairs: Mutex<Pairs>,
}

impl Shared {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn pairs(&self) -> MutexGuard<'_, Pairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RelayHandle {
    /// A new pair, whose peers will announce themselves with these tokens, which must be drawn for it.
    ///
    /// # Errors
    /// There are too many.
    pub fn open(&self, tokens: [Token; 2]) -> Result<PairId, TooManyPairs> {
        self.0.pairs().open(self.0.now(), tokens)
    }

    /// Forgets a pair, if it still exists.
    pub fn close(&self, pair: PairId) {
        self.0.pairs().close(pair);
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> usize {
        self.0.pairs().len()
    }
}

/// A relay that is bound to its address.
#[derive(Debug)]
pub struct Relay {
    socket: UdpSocket,
    shared: Arc<Shared>,
    seen: mpsc::Sender<PeerAnnounced>,
}

impl Relay {
    /// Binds the socket. Announcements come through the receiver; where it is full they are dropped, and repeated by the peers.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        limits: Limits,
    ) -> io::Result<(Self, mpsc::Receiver<PeerAnnounced>)> {
        let socket = UdpSocket::bind(address).await?;
        let (seen, receiver) = mpsc::channel(SEEN);
        let shared = Shared { begin: Instant::now(), pairs: Mutex::new(Pairs::new(limits)) };
        Ok((Self { socket, shared: Arc::new(shared), seen }, receiver))
    }

    /// The address at which the relay listens.
    ///
    /// # Errors
    /// The socket does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Opens and closes pairs.
    pub fn handle(&self) -> RelayHandle {
        RelayHandle(self.shared.clone())
    }

    /// Forwards until the task is dropped or the socket fails.
    ///
    /// # Errors
    /// The socket is unusable.
    pub async fn run(self) -> io::Result<()> {
        let mut datagram = [0; MOST_BYTES + 1];
        let mut expire = tokio::time::interval(EXPIRE_EVERY);
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut datagram) => match received {
                    Ok((length, from)) if length <= MOST_BYTES => self.forward(from, &datagram[..length]),
                    Ok(_) => {}
                    // What a closed port of a peer's host answers.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                },
                _ = expire.tick() => self.shared.pairs().expire(self.shared.now()),
            }
        }
    }

    fn forward(&self, from: SocketAddr, datagram: &[u8]) {
        let verdict = self.shared.pairs().handle(self.shared.now(), from, datagram);
        match verdict {
            DatagramAction::Forward(to) => {
                // If the socket's buffer is full, the packet is lost, as on any link.
                _ = self.socket.try_send_to(datagram, to);
            }
            DatagramAction::Seen { pair, side } => {
                tracing::debug!(?pair, side, "a peer announced itself from {from}");
                _ = self.seen.try_send(PeerAnnounced { pair, side, address: from });
            }
            DatagramAction::Drop => {}
        }
    }
}
