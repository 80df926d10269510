//! Moves long bodies between a socket and a system: in pieces, each when the other side can take it.
//!
//! The server disconnects a client that moves too little. The clock only runs while the server waits for the client, and is
//! reset after each [`LEAST_BYTES`], so that a slow line may take hours over gigabytes, and one byte now and then is not
//! enough.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use crate::metrics::Ending;
use crate::reply::Reader;
use crate::socket::gone;
use crate::upload::Sink;

/// The least number of bytes that a client must move within each span of its patience, or all that is left, if that is
/// less.
const LEAST_BYTES: usize = 64 * 1024;
/// The size of the pieces in which bytes are discarded.
const DROPPED_BYTES: usize = 16 * 1024;

/// How much longer a client may keep the runtime waiting.
struct Patience {
    span: Duration,
    left: Duration,
    moved: usize,
}

impl Patience {
    fn new(span: Duration) -> Self {
        Self { span, left: span, moved: 0 }
    }

    /// Waits for the client.
    async fn wait<T>(&mut self, client: impl Future<Output = io::Result<T>>) -> Result<T, Ending> {
        let begun = Instant::now();
        let done = timeout(self.left, client).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(Ending::Reset),
            Err(_) => Err(Ending::Deadline),
        }
    }

    /// Waits for the client to move some bytes.
    async fn wait_to_move(
        &mut self,
        moving: impl Future<Output = io::Result<usize>>,
    ) -> Result<usize, Ending> {
        let bytes = self.wait(moving).await?;
        self.moved(bytes);
        Ok(bytes)
    }

    /// Records that the client moved this many bytes.
    fn moved(&mut self, bytes: usize) {
        self.moved += bytes;
        if self.moved >= LEAST_BYTES {
            (self.left, self.moved) = (self.span, 0);
        }
    }
}

/// Fills a sink with a body, the beginning of which may already be in `buffered`. Whenever this is dropped, `owed_bytes` is
/// the number of bytes that the client has yet to send.
pub(crate) async fn fill<A: 'static>(
    stream: &TcpStream,
    buffered: &mut Vec<u8>,
    sink: &mut dyn Sink<A>,
    owed_bytes: &mut u64,
    patience: Duration,
    moved: &Counter,
) -> Result<(), Ending> {
    let mut patience = Patience::new(patience);
    while *owed_bytes > 0 {
        if buffered.is_empty() {
            // A connection that waits needs no buffer.
            patience.wait(stream.readable()).await.inspect_err(|_| sink.truncated())?;
        }
        let buffer = sink.buffer().await.map_err(no_place)?;
        let most = usize::try_from(*owed_bytes).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..most];
        let read = if buffered.is_empty() {
            match stream.try_read(buffer) {
                Ok(0) => Err(Ending::Incomplete),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
                read => read.map_err(|_| Ending::Reset),
            }
        } else {
            Ok(take_front(buffered, buffer))
        };
        let read = read.inspect_err(|_| sink.truncated())?;
        patience.moved(read);
        *owed_bytes -= read as u64;
        moved.inc_by(read as u64);
        sink.filled(read).await.map_err(no_place)?;
        // A fast client must not keep the others from the thread of sockets.
        yield_now().await;
    }
    Ok(())
}

/// How the work of an answer that has begun ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    CutShort,
}

/// Sends all of a reader's bytes, and waits until the work behind it has ended, too.
pub(crate) async fn deliver(
    stream: &TcpStream,
    mut reader: Box<dyn Reader>,
    patience: Duration,
    moved: &Counter,
    end: impl Future<Output = End>,
) -> Result<(), Ending> {
    let mut patience = Patience::new(patience);
    let mut end = pin!(end);
    let mut ended = None;
    while ended != Some(End::CutShort) {
        let mut next = reader.piece();
        let piece = tokio::select! {
            biased;
            piece = &mut next => piece,
            how = &mut end, if ended.is_none() => {
                ended = Some(how);
                if how == End::CutShort {
                    break;
                }
                tokio::select! {
                    biased;
                    piece = &mut next => piece,
                    () = gone(stream) => return Err(Ending::Reset),
                }
            }
            () = gone(stream) => return Err(Ending::Reset),
        };
        let mut piece = piece.map_err(cut)?;
        if piece.is_empty() {
            if ended.is_none() {
                ended = Some(end.await);
            }
            break;
        }
        while !piece.is_empty() {
            let sent = patience.wait_to_move(write(stream, piece)).await?;
            moved.inc_by(sent as u64);
            piece = &piece[sent..];
        }
        // As above.
        yield_now().await;
    }
    match ended {
        Some(End::CutShort) => Err(Ending::CutShort),
        _ => Ok(()),
    }
}

/// Reads this many bytes and discards them, as long as they arrive.
pub(crate) async fn discard(
    stream: &TcpStream,
    buffered: &mut Vec<u8>,
    mut bytes: u64,
    patience: Duration,
) -> Result<(), Ending> {
    let mut patience = Patience::new(patience);
    // An array would be part of every connection, also of those that discard nothing.
    let mut dropped = vec![0; DROPPED_BYTES];
    while bytes > 0 {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(DROPPED_BYTES);
        let read = if buffered.is_empty() {
            patience.wait_to_move(read(stream, &mut dropped[..most])).await?
        } else {
            take_front(buffered, &mut dropped[..most])
        };
        if read == 0 {
            return Err(Ending::Incomplete);
        }
        bytes -= read as u64;
        yield_now().await;
    }
    Ok(())
}

fn no_place(error: io::Error) -> Ending {
    tracing::warn!(%error, "there is no space for the body of a request; its connection is closed");
    Ending::NoPlace
}

fn cut(error: io::Error) -> Ending {
    tracing::warn!(%error, "an answer that had begun cannot continue; its connection is reset");
    Ending::CutShort
}

/// Moves bytes from the front of a buffer; returns their number.
fn take_front(buffered: &mut Vec<u8>, buffer: &mut [u8]) -> usize {
    let taken = buffered.len().min(buffer.len());
    buffer[..taken].copy_from_slice(&buffered[..taken]);
    buffered.drain(..taken);
    taken
}

async fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

async fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}
