//! A connection for its user: a stream of bytes in both directions, and the state of the connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use curvecp::congestion::Algorithm;
use curvecp::{CloseReason, ConnectionId, LayerStats, PublicKey, Read};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::clock::now;
use crate::shared::{Shared, Stage};

/// The identity of a connection and its peer. Its clones name the same connection.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    stage: watch::Receiver<Stage>,
}

struct Handle {
    shared: Arc<Shared>,
    id: ConnectionId,
    peer: PublicKey,
    client: PublicKey,
    first_address: Option<SocketAddr>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.release(self.id);
    }
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: ConnectionId,
        peer: PublicKey,
        client: PublicKey,
        first_address: Option<SocketAddr>,
        stage: watch::Receiver<Stage>,
    ) -> Self {
        Self { handle: Arc::new(Handle { shared, id, peer, client, first_address }), stage }
    }

    /// The long-term public key that the peer has proved to own; of a client that is [`Stage::Opening`], the key that the
    /// server has to prove.
    pub fn peer(&self) -> PublicKey {
        self.handle.peer
    }

    /// The client's long-term public key, on either side.
    pub fn client(&self) -> PublicKey {
        self.handle.client
    }

    /// The peer's present address, or the last that is known. `None` before a server has answered that has several.
    pub fn address(&self) -> Option<SocketAddr> {
        let present = self.handle.shared.lock().protocol.address(self.handle.id);
        // A socket of both families writes addresses of IPv4 as ones of IPv6.
        let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        present.or(self.handle.first_address).map(plain)
    }

    /// Changes the congestion control of what this side sends: a server chooses it for each client so. No effect once the
    /// endpoint is closed.
    pub fn set_congestion(&self, algorithm: Algorithm) {
        let Handle { shared, id, .. } = &*self.handle;
        _ = shared.lock().protocol.set_congestion(now(), *id, algorithm);
        shared.work.notify_one();
    }

    /// Counters of the connection; zeros once the endpoint is closed.
    pub fn stats(&self) -> LayerStats {
        let state = self.handle.shared.lock();
        state.protocol.layer(self.handle.id).map_or_else(LayerStats::default, |layer| layer.stats())
    }

    /// The phase of the connection's life.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits until the server has answered; true where it has, false where the connection ended before.
    pub async fn established(&self) -> bool {
        let mut stage = self.stage.clone();
        let reached = stage.wait_for(|stage| *stage != Stage::Opening).await.map(|stage| *stage);
        !matches!(reached, Err(_) | Ok(Stage::Closed(CloseReason::NoAnswer)))
    }

    /// Waits until the connection is over, that is until both streams have ended and both sides know, or it has failed.
    /// `None` where the endpoint stopped before.
    pub async fn closed(&self) -> Option<CloseReason> {
        let mut stage = self.stage.clone();
        match *stage.wait_for(|stage| matches!(stage, Stage::Closed(_))).await.ok()? {
            Stage::Closed(reason) => Some(reason),
            Stage::Opening | Stage::Open => None,
        }
    }

    /// The reason why nothing more can be read or written.
    fn failure(&self) -> io::Error {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut};
        let (kind, text) = match self.stage() {
            _ if self.stage.has_changed().is_err() => (ConnectionAborted, "the endpoint is closed"),
            Stage::Opening | Stage::Open | Stage::Closed(CloseReason::Finished) => {
                (ConnectionReset, "the peer ended its stream in failure")
            }
            Stage::Closed(CloseReason::NoAnswer) => (TimedOut, "the server does not answer"),
            Stage::Closed(CloseReason::Failed(_)) => {
                (TimedOut, "the peer has not answered within the idle time-out")
            }
            Stage::Closed(CloseReason::Evicted) => {
                (ConnectionAborted, "a new client needed the place of this silent one")
            }
            Stage::Closed(_) => (ConnectionAborted, "the connection can send no further packets"),
        };
        io::Error::new(kind, text)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let peer = self.handle.peer;
        f.debug_struct("Connection")
            .field("peer", &peer)
            .field("stage", &self.stage())
            .finish_non_exhaustive()
    }
}

/// The two streams of a connection: reads give what the peer wrote, writes go to the peer.
///
/// Shutting it down ends our stream in success; the end is delivered after all that was written, also if the stream is
/// dropped then. Dropping it before ends our stream in failure, which the peer sees as an error.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    finished: bool,
}

impl Stream {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, finished: false }
    }

    /// The identity of the connection and its peer.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Ends our stream in failure: the peer reads what has been sent and then an error.
    pub fn abort(&mut self) {
        let Handle { shared, id, .. } = &*self.connection.handle;
        _ = shared.lock().protocol.abort(*id);
        self.finished = true;
        shared.work.notify_one();
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let Handle { shared, id, .. } = &*self.connection.handle;
        let mut state = shared.lock();
        let read = if state.stopped {
            Ok(Read::Failed)
        } else {
            state.protocol.read(*id, into.initialize_unfilled())
        };
        match read {
            Ok(Read::Bytes(bytes)) => {
                drop(state);
                into.advance(bytes);
                // The peer may have to learn that it can send more.
                shared.work.notify_one();
                Poll::Ready(Ok(()))
            }
            Ok(Read::Blocked) => {
                let entry = state.connections.get_mut(id).expect("a held connection has an entry");
                entry.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Ok(Read::Finished) => Poll::Ready(Ok(())),
            Ok(Read::Failed) | Err(_) => {
                drop(state);
                Poll::Ready(Err(self.connection.failure()))
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.finished {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the stream was ended")));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Handle { shared, id, .. } = &*self.connection.handle;
        let mut state = shared.lock();
        let over = state.connections.get(id).is_none_or(|entry| entry.is_over());
        match if over { Err(()) } else { state.protocol.write(*id, bytes).map_err(|_| ()) } {
            Ok(0) => {
                let entry = state.connections.get_mut(id).expect("the entry was just found");
                entry.writer = Some(context.waker().clone());
                drop(state);
                shared.work.notify_one();
                Poll::Pending
            }
            Ok(taken) => {
                drop(state);
                shared.work.notify_one();
                Poll::Ready(Ok(taken))
            }
            Err(()) => {
                drop(state);
                Poll::Ready(Err(self.connection.failure()))
            }
        }
    }

    /// Returns at once: what was written leaves as soon as the network takes it.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.finished, true) {
            let Handle { shared, id, .. } = &*self.connection.handle;
            _ = shared.lock().protocol.finish(*id);
            shared.work.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.finished {
            self.abort();
        }
        let Handle { shared, id, .. } = &*self.connection.handle;
        _ = shared.lock().protocol.stop_reading(*id);
        shared.work.notify_one();
    }
}
