//! Operations on any client's socket, independent of the protocol.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::metrics::Ending;

/// The idle time after which the kernel probes whether the client is still connected.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// The time between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// The number of unanswered probes after which the client counts as gone.
const PROBES: u32 = 3;
/// The most bytes beyond a client's last request that are read before the connection is closed. Closing with
/// unread bytes makes the kernel send a reset, which may overtake the answer.
const SURPLUS_BYTES: usize = 64 * 1024;

/// Prepares a new connection: answers leave at once, and clients that vanish are noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// Returns once the connection is reset or its network fails. A client that has only shut down its sending half
/// is not gone.
pub(crate) async fn gone(stream: &TcpStream) {
    while let Ok(ready) = stream.ready(Interest::ERROR).await {
        if ready.is_error() {
            return;
        }
    }
}

/// Sends all bytes, as long as the client reads some within each span of patience.
pub(crate) async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    patience: Duration,
) -> Result<(), Ending> {
    while !bytes.is_empty() {
        match timeout(patience, stream.write(bytes)).await {
            Ok(Ok(sent)) => bytes = &bytes[sent..],
            Ok(Err(_)) => return Err(Ending::Reset),
            Err(_) => return Err(Ending::Deadline),
        }
    }
    Ok(())
}

/// Closes a connection so that the answer arrives even if the client has sent more than its request.
pub(crate) async fn finish(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut surplus = [0; 4096];
    let mut left = SURPLUS_BYTES;
    while let Ok(read @ 1..) = stream.try_read(&mut surplus) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// Sends a client a rejection, without waiting.
pub(crate) fn turn_away(stream: &TcpStream, refusal: &[u8]) {
    // A socket on which nothing was sent has space for a rejection; otherwise, the client only sees the
    // close.
    let _ = stream.try_write(refusal);
}
