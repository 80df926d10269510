//! The server of the laboratory: the same over every transport.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_record::stamps::Stamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::error::TransportError;
use crate::kind::Kind;
use crate::protocol::{HEAD_BYTES, Head, PIECE_BYTES, Pattern, REPORT_EVERY};
use crate::stamping::{Stamps, Writing};
use crate::transport::{Connection, Duplex, Listener, Opening};

/// The longest time of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// The longest silence between two requests, and the longest time of a transfer without progress.
const SILENCE: Duration = Duration::from_secs(60);
/// The pause after a failed accept, such as for lack of descriptors, before a retry.
const REST: Duration = Duration::from_millis(50);
/// The time for clients to learn that the server ends, and for its threads to end.
const GRACE: Duration = Duration::from_millis(500);

/// The options of the server.
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// The transport.
    pub kind: Kind,
    /// The address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The most open connections; further ones are closed.
    pub connections: usize,
    /// Threads that serve connections.
    pub threads: NonZeroUsize,
    /// The file for the stamp of each answered request, if any.
    pub stamps: Option<PathBuf>,
}

/// A server that listens. Clients wait until it runs.
pub struct Server {
    runtime: Runtime,
    listener: Box<dyn Listener>,
    desk: Arc<Desk>,
    writing: Option<Writing>,
}

/// The shared state of all connections.
struct Desk {
    places: Arc<Semaphore>,
    pattern: Pattern,
    stamps: Stamps,
}

impl Server {
    /// Opens the socket and the file of stamps.
    ///
    /// # Errors
    /// Fails if the address is in use or not permitted, no thread can be started, or the file cannot be written.
    pub fn bind(options: &TransportOptions) -> Result<Self, TransportError> {
        let runtime = Builder::new_multi_thread().worker_threads(options.threads.get()).enable_all().build();
        let runtime =
            runtime.map_err(|source| TransportError::Start { what: "threads of the server", source })?;
        let listener = {
            let _within = runtime.enter();
            options.kind.transport().listen(options.listen)?
        };
        let (stamps, writing) = Stamps::open(options.stamps.as_deref())?;
        let places = Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS)));
        let desk = Arc::new(Desk { places, pattern: Pattern::default(), stamps });
        Ok(Self { runtime, listener, desk, writing })
    }

    /// The address on which it listens, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `until` is ready, and then ends all connections.
    ///
    /// # Errors
    /// Fails if the stamps cannot be written.
    pub fn run_until(self, until: impl Future<Output = ()>) -> Result<(), TransportError> {
        let Self { runtime, mut listener, desk, writing } = self;
        runtime.block_on(async {
            let mut connections = JoinSet::new();
            tokio::select! {
                () = until => {}
                () = accept_all(&mut *listener, &desk, &mut connections) => {}
            }
            connections.shutdown().await;
            // Otherwise clients of CurveCP and QUIC would learn of the end by a time-out.
            if timeout(GRACE, listener.close()).await.is_err() {
                tracing::debug!("some clients did not confirm that their connections have ended");
            }
        });
        drop(listener);
        runtime.shutdown_timeout(GRACE);
        drop(desk);
        writing.map_or(Ok(()), Writing::finish)
    }

    /// Serves until SIGINT or SIGTERM. Calls `ready` with the address once the server accepts clients.
    ///
    /// # Errors
    /// Fails if signals cannot be handled, or the stamps cannot be written.
    pub fn run_until_signalled(self, ready: impl FnOnce(SocketAddr)) -> Result<(), TransportError> {
        let (mut interrupt, mut terminate) = {
            let _within = self.runtime.enter();
            let failed = |source| TransportError::Start { what: "handling of signals", source };
            let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
            (interrupt, signal(SignalKind::terminate()).map_err(failed)?)
        };
        ready(self.address());
        self.run_until(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
}

async fn accept_all(listener: &mut dyn Listener, desk: &Arc<Desk>, connections: &mut JoinSet<()>) {
    loop {
        let accepted = tokio::select! {
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(opening) => match desk.places.clone().try_acquire_owned() {
                Ok(place) => {
                    let desk = desk.clone();
                    connections.spawn(async move {
                        if let Err(error) = attend(opening, &desk).await {
                            tracing::debug!(%error, "a connection ended");
                        }
                        drop(place);
                    });
                }
                Err(_) => tracing::debug!("a connection was closed: the limit of connections is reached"),
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(REST).await;
            }
        }
    }
}

/// Serves a connection from its handshake to its end.
async fn attend(opening: Opening, desk: &Desk) -> io::Result<()> {
    let Connection { mut stream, client_port: port, .. } = within(HANDSHAKE, opening).await?;
    let mut head = [0; HEAD_BYTES];
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let first = within(SILENCE, stream.read(&mut head)).await?;
        if first == 0 {
            return within(SILENCE, stream.shutdown()).await;
        }
        within(SILENCE, stream.read_exact(&mut head[first..])).await?;
        let queued = now_ns();
        match Head::decode(&head).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))? {
            Head::Send(bytes) => {
                let mut place = 0;
                while place < bytes {
                    let next = desk.pattern.piece(place..bytes);
                    within(SILENCE, stream.write_all(next)).await?;
                    place += next.len() as u64;
                }
            }
            Head::Echo(bytes) => {
                let mut left = bytes;
                while left > 0 {
                    let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let read = within(SILENCE, stream.read(&mut piece[..most])).await?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    within(SILENCE, stream.write_all(&piece[..read])).await?;
                    left -= read as u64;
                }
            }
            Head::Take(bytes) => take(&mut *stream, bytes, &mut piece, &desk.pattern).await?,
        }
        within(SILENCE, stream.flush()).await?;
        let finished = now_ns();
        let service = finished - queued;
        desk.stamps.put(Stamp { port, queued, started: queued, finished, service, fixed: None });
    }
}

/// Receives an upload, compares its bytes, and reports the progress.
async fn take(stream: &mut dyn Duplex, bytes: u64, piece: &mut [u8], pattern: &Pattern) -> io::Result<()> {
    let mut reports = interval(REPORT_EVERY);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut taken, mut last) = (0, Instant::now());
    while taken < bytes {
        let most = piece.len().min(usize::try_from(bytes - taken).unwrap_or(usize::MAX));
        tokio::select! {
            read = stream.read(&mut piece[..most]) => match read? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read if pattern.piece(taken..taken + read as u64) != &piece[..read] => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "an upload differs from its pattern"));
                }
                read => (taken, last) = (taken + read as u64, Instant::now()),
            },
            _ = reports.tick() => {
                if last.elapsed() > SILENCE {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                within(SILENCE, stream.write_all(&taken.to_be_bytes())).await?;
                within(SILENCE, stream.flush()).await?;
            }
        }
    }
    within(SILENCE, stream.write_all(&taken.to_be_bytes())).await
}

/// The result of a step, or an error if it takes too long.
async fn within<T>(limit: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
