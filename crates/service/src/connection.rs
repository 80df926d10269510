//! One connection: a request at a time, each read under a deadline, each answered or refused.
//!
//! While a request waits or is served, nothing is read; the socket is only watched for errors. A reset tells at
//! once that the client is gone. A client that closes its side in order may well be waiting still, for it may
//! have shut down only its sending half, and TCP does not tell the two apart. Such a client is served; if it
//! was gone after all, its kernel says so in answer to a keep-alive probe: on Linux some 75 s later, once it has
//! forgotten the connection.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_record::stamps::{Stamp, TURNED_AWAY};
use kendall_station::Job;
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use crate::handler::{Decoded, Handler, Malformed, Reply, Then};
use crate::metrics::{Ending, Times};
use crate::pool::Verdict;
use crate::server::Shared;
use crate::stamps::StampLog;

/// After this long without a byte the kernel probes whether the client still is.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// The time between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// So many probes without an answer, and the client is gone.
const PROBES: u32 = 3;
/// At shutdown, for the rest of a request that is on its way.
const LAST_WORD: Duration = Duration::from_millis(50);
/// Of what a client sent beyond its last request, so much is read before the connection is closed. Closing with
/// unread bytes makes the kernel send a reset, which may overtake the answer.
const SURPLUS_BYTES: usize = 64 * 1024;
/// The buffer grows from this.
const FIRST_READ_BYTES: usize = 256;

/// Prepares a new connection: answers leave at once, and clients that vanish are noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// Serves a connection until it ends.
pub(crate) async fn serve<H: Handler>(
    mut stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<H>>,
    stamps: StampLog,
) -> Ending {
    let mut buffer = Vec::new();
    loop {
        let request = match receive(&mut stream, &mut buffer, &shared).await {
            Ok(request) => request,
            Err(ending) => return ending,
        };
        let (used_bytes, reply) = match request {
            Decoded::Answer { used_bytes, reply } => {
                answer_at_once(&shared, &stamps, peer);
                (used_bytes, Some(reply))
            }
            Decoded::Work { used_bytes, job, task, key } => {
                (used_bytes, have_served(&stream, peer, &shared, &stamps, job, task, key).await)
            }
        };
        let Some(Reply { bytes, then }) = reply else { return Ending::Reset };
        buffer.drain(..used_bytes);
        if let Err(ending) = send(&mut stream, &bytes, shared.config.patience).await {
            return ending;
        }
        if then == Then::Close || shared.is_closing() {
            finish(stream).await;
            return Ending::Finished;
        }
    }
}

/// Has a request served by a worker, or refused; `None` if its client went away first.
async fn have_served<H: Handler>(
    stream: &TcpStream,
    peer: SocketAddr,
    shared: &Shared<H>,
    stamps: &StampLog,
    job: Job,
    task: H::Task,
    key: Option<Vec<u8>>,
) -> Option<Reply> {
    shared.meters.received.inc();
    match shared.pool.admit(job, task, key, peer.port()) {
        Ok(mut claim) => tokio::select! {
            biased;
            verdict = claim.verdict() => match verdict {
                Verdict::Answered(reply) => Some(reply),
                Verdict::Refused => Some(shared.handler.refusal()),
            },
            () = gone(stream) => None,
        },
        Err(fate) => {
            shared.meters.ended(fate);
            let now = now_ns();
            stamps.write(Stamp {
                port: peer.port(),
                queued: now,
                started: now,
                finished: now,
                service: TURNED_AWAY,
            });
            tracing::debug!(%peer, ?fate, "request refused");
            Some(shared.handler.refusal())
        }
    }
}

/// Reads until there is a whole request, or says how the connection ended before.
async fn receive<H: Handler>(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared<H>,
) -> Result<Decoded<H::Task>, Ending> {
    let max_bytes = shared.handler.max_request_bytes();
    let mut closing = pin!(shared.closing());
    let last_deadline = Instant::now() + shared.config.request_deadline;
    let mut deadline = last_deadline.min(Instant::now() + shared.config.patience);
    let mut on_deadline = Ending::Deadline;
    loop {
        if !buffer.is_empty() {
            match shared.handler.decode(buffer) {
                Ok(Some(request)) => return Ok(request),
                Ok(None) if buffer.len() < max_bytes => {}
                Ok(None) | Err(Malformed) => return Err(Ending::Malformed),
            }
        }
        buffer.reserve(buffer.len().clamp(FIRST_READ_BYTES, max_bytes.max(FIRST_READ_BYTES)));
        tokio::select! {
            biased;
            read = stream.read_buf(buffer) => match read {
                Ok(0) if buffer.is_empty() => return Err(Ending::Finished),
                Ok(0) => return Err(Ending::Incomplete),
                Ok(_) if on_deadline == Ending::Shutdown => {}
                Ok(_) => deadline = last_deadline.min(Instant::now() + shared.config.patience),
                Err(_) => return Err(Ending::Reset),
            },
            () = &mut closing, if on_deadline == Ending::Deadline => {
                on_deadline = Ending::Shutdown;
                deadline = deadline.min(Instant::now() + LAST_WORD);
            }
            () = sleep_until(deadline) => {
                // A client in the middle of its request is told, one that has not begun is not.
                if on_deadline == Ending::Shutdown && !buffer.is_empty() {
                    let refusal = shared.handler.refusal();
                    let _ = send(stream, &refusal.bytes, LAST_WORD).await;
                }
                return Err(on_deadline);
            }
        }
    }
}

/// Counts and stamps a request that needed no work.
fn answer_at_once<H: Handler>(shared: &Shared<H>, stamps: &StampLog, peer: SocketAddr) {
    let now = now_ns();
    shared.meters.received.inc();
    shared.meters.answered(Times { response_ns: 0, service_ns: 0 });
    stamps.write(Stamp { port: peer.port(), queued: now, started: now, finished: now, service: 0 });
}

/// Returns once the connection is reset or its network fails. A client that has only shut down its sending half
/// is not gone.
async fn gone(stream: &TcpStream) {
    while let Ok(ready) = stream.ready(Interest::ERROR).await {
        if ready.is_error() {
            return;
        }
    }
}

/// Sends all bytes, as long as the client takes some within each span of patience.
async fn send(stream: &mut TcpStream, mut bytes: &[u8], patience: Duration) -> Result<(), Ending> {
    while !bytes.is_empty() {
        match timeout(patience, stream.write(bytes)).await {
            Ok(Ok(sent)) => bytes = &bytes[sent..],
            Ok(Err(_)) => return Err(Ending::Reset),
            Err(_) => return Err(Ending::Deadline),
        }
    }
    Ok(())
}

/// Closes a connection so that the answer arrives even if the client had sent more than its request.
async fn finish(mut stream: TcpStream) {
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

/// Tells a client, without waiting for anything, that it is turned away.
pub(crate) fn turn_away(stream: &TcpStream, refusal: &Reply) {
    // A socket on which nothing was sent has room for a refusal; if not, the client sees the close alone.
    let _ = stream.try_write(&refusal.bytes);
}
