//! Accepts connections, and rejects them when there are too many.

use std::fs::File;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::metrics::Ending;
use crate::shared::{Shared, System};
use crate::socket;
use crate::stamps::StampLog;

/// Connections that the kernel completes before they are accepted; it caps this at `net.core.somaxconn`.
const BACKLOG: u32 = 4096;
/// The delay after a network error that does not concern the next connection.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// Opens a listening socket. The server closes connections first, so it must be able to bind an address that
/// is in TIME_WAIT.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Raises the soft limit on open files to the hard one. If that fails, the old limit stays.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
    {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
}

/// Accepts connections for ever. The semaphore holds a permit for each connection that may be open.
pub(crate) async fn run<S: System>(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    shared: &Arc<Shared<S>>,
    stamps: &StampLog,
) {
    let mut spare = Spare::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => welcome(stream, peer, permits, shared, stamps),
            Err(error) if is_out_of_descriptors(&error) => {
                if spare.turn_one_away(listener).await {
                    shared.meters.accepted.inc();
                    shared.meters.closed(Ending::Descriptors);
                    tracing::debug!("no file descriptor is left; a connection was closed unanswered");
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a connection failed before it was accepted");
                sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Accepts the connections that the kernel has completed, without waiting for more.
pub(crate) async fn sweep<S: System>(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    shared: &Arc<Shared<S>>,
    stamps: &StampLog,
) {
    for _ in 0..BACKLOG {
        match accept_now(listener).await {
            Some(Ok((stream, peer))) => welcome(stream, peer, permits, shared, stamps),
            Some(Err(_)) | None => return,
        }
    }
}

fn welcome<S: System>(
    stream: TcpStream,
    peer: SocketAddr,
    permits: &Arc<Semaphore>,
    shared: &Arc<Shared<S>>,
    stamps: &StampLog,
) {
    let meters = &shared.meters;
    meters.accepted.inc();
    let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
        socket::turn_away(&stream, &shared.system.turned_away());
        meters.closed(Ending::ConnectionLimit);
        tracing::debug!(%peer, "too many connections; one was rejected");
        return;
    };
    if let Err(error) = socket::prepare(&stream) {
        tracing::debug!(%peer, %error, "a connection failed right away");
        meters.closed(Ending::Reset);
        return;
    }
    meters.open.inc();
    let (shared, stamps) = (Arc::clone(shared), stamps.clone());
    tokio::spawn(async move {
        let ending = S::serve(stream, peer, Arc::clone(&shared), stamps).await;
        shared.meters.open.dec();
        shared.meters.closed(ending);
        tracing::trace!(%peer, ?ending, "connection closed");
        drop(permit);
    });
}

async fn accept_now(listener: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = ready(()) => None,
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// A file descriptor in reserve for when there is no other. Without it a full process could not even accept a
/// connection to close it, and would find the same connection waiting for ever.
struct Spare(Option<File>);

impl Spare {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Closes one waiting connection, if there is one. Returns whether it did.
    async fn turn_one_away(&mut self, listener: &TcpListener) -> bool {
        self.0 = None;
        let turned_away = matches!(accept_now(listener).await, Some(Ok(_)));
        *self = Self::new();
        if !turned_away {
            // Another thread took the descriptor. Others will be freed; an immediate retry would only spin.
            sleep(RETRY_AFTER).await;
        }
        turned_away
    }
}
