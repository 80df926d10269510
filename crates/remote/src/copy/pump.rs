//! Moves bytes between a stream and the thread that works on files.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::thread;

use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::copy::failures::Failures;
use crate::copy::outbox::{Written, outbox};
use crate::copy::partial::PartialFile;
use crate::copy::progress::Progress;
use crate::copy::protocol::{CopyOptions, Message};
use crate::copy::receive::{Answers, Receiver};
use crate::copy::send::{Sending, send};
use crate::copy::target::Target;
use crate::error::RemoteError;
use crate::opening::{REFUSED, decode_refused};
use crate::session::{Bulk, Inward, Outward, alive_while};

/// Bytes that are read from the stream at once, at most.
const PIECE: usize = 256 << 10;
/// Pieces on their way to the thread, at most.
const PIECES: usize = 4;
/// Answers on their way to the stream, at most.
const ANSWERS: usize = 64;

/// What the receiver put in place, as it reports it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) entries: u64,
}

/// Runs a thread, and waits for what it returns.
fn run_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, RemoteError> {
    let (returns, returned) = oneshot::channel();
    thread::Builder::new()
        .name(name.into())
        .spawn(move || _ = returns.send(work()))
        .map_err(|error| RemoteError::Protocol(format!("cannot start a thread: {error}")))?;
    Ok(returned)
}

/// Runs work that may read files for long, and gives the peer signs of life meanwhile. The work checks whether to go on: it ends with
/// this future, which `stop` ends early.
pub(crate) async fn prepare<T: Send + 'static>(
    outward: &mut Outward,
    stop: impl Future<Output = ()>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, RemoteError> + Send + 'static,
) -> Result<Result<T, RemoteError>, RemoteError> {
    let waits = Arc::new(());
    let waiting = Arc::downgrade(&waits);
    let working = spawn_blocking(move || work(&|| waiting.strong_count() > 0));
    tokio::select! {
        worked = alive_while(outward, working) => {
            Ok(worked?.unwrap_or_else(|_| Err(RemoteError::unexpected("a task has panicked"))))
        }
        () = stop => Err(RemoteError::Interrupted),
    }
}

/// Sends sources, and waits until the receiver has finished.
pub(crate) async fn send_all(
    mut inward: Inward,
    mut outward: Outward,
    sending: Sending,
) -> Result<Outcome, RemoteError> {
    let (mut to_write, written) = outbox();
    let failures = sending.failures.clone();
    let sent = run_thread("copy-send", move || _ = send(sending, &mut to_write))?;
    let outcome = {
        let mut writing = pin!(async {
            write_all(&mut outward, written).await?;
            _ = sent.await;
            Ok::<_, RemoteError>(())
        });
        let mut reading = pin!(answers(&mut inward, &failures));
        // Where the receiver ends the copy early, its reason arrives; the loss of the connection, which follows, says less.
        tokio::select! {
            answered = &mut reading => answered,
            written = &mut writing => match written {
                Ok(()) => reading.await,
                Err(lost) => reading.await.and(Err(lost)),
            },
        }?
    };
    outward.shutdown().await.map_err(RemoteError::Lost)?;
    Ok(outcome)
}

async fn write_all(outward: &mut Outward, mut written: Written) -> Result<(), RemoteError> {
    while let Some(buffer) = alive_while(outward, written.full.recv()).await? {
        outward.write_all(&buffer).await.map_err(RemoteError::Lost)?;
        written.reuse(buffer);
    }
    Ok(())
}

/// Reads what the receiver reports until it has finished.
async fn answers(inward: &mut Inward, failures: &Failures) -> Result<Outcome, RemoteError> {
    loop {
        let (kind, body) = inward.next().await?;
        if kind == REFUSED {
            return Err(RemoteError::refused(&decode_refused(&body)?));
        }
        match Message::decode(kind, &body)? {
            Message::Failed { entry, text } => failures.add_entry(entry, &text),
            Message::Finished { entries, .. } => return Ok(Outcome { entries }),
            _ => return Err(RemoteError::unexpected("of the other direction")),
        }
    }
}

/// The state of a receiver in addition to the stream.
pub(crate) struct Receiving {
    pub(crate) target: Target,
    pub(crate) options: CopyOptions,
    pub(crate) partials: Vec<Option<PartialFile>>,
    pub(crate) progress: Progress,
    pub(crate) failures: Failures,
}

/// Answers on their way to the stream.
struct ToStream(mpsc::Sender<Vec<u8>>);

impl Answers for ToStream {
    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        _ = self.0.blocking_send(bytes);
    }
}

/// A piece of the stream: the buffer and how much of it is filled.
type Piece = (Vec<u8>, usize);

/// Receives everything that the sender sends. However it ends, the target folder is left in order before this returns;
/// `stop` ends it early.
pub(crate) async fn receive_all(
    inward: Inward,
    mut outward: Outward,
    receiving: Receiving,
    stop: impl Future<Output = ()>,
) -> Result<(), RemoteError> {
    let (stream, arrived) = inward.into_bulk();
    let (pieces, from_stream) = mpsc::channel::<Piece>(PIECES);
    let (empty, to_reuse) = mpsc::channel(PIECES);
    let (answers, mut from_thread) = mpsc::channel(ANSWERS);
    let received = run_thread("copy-receive", move || {
        work(receiving, ToStream(answers), &arrived, from_stream, &empty)
    })?;
    // Owns its end of the channel: the thread sees the end of the data.
    let reading = read_all(stream, pieces, to_reuse);
    let writing = async {
        while let Some(bytes) = alive_while(&mut outward, from_thread.recv()).await? {
            outward.write_all(&bytes).await.map_err(RemoteError::Lost)?;
        }
        Ok(())
    };
    let moved = tokio::select! {
        // One that fails ends the other.
        moved = async { tokio::try_join!(reading, writing) } => moved.map(|_| ()),
        () = stop => Err(RemoteError::Interrupted),
    };
    drop(from_thread);
    let received = received.await.unwrap_or_else(|_| Err(RemoteError::unexpected("the thread has panicked")));
    match (moved, received) {
        // The thread knows best: after everything has arrived, the rest of the connection does not matter.
        (_, Ok(true)) => Ok(_ = outward.shutdown().await),
        (Err(lost), Ok(false)) => Err(lost),
        (Ok(()), Ok(false)) => Err(RemoteError::Lost(io::ErrorKind::UnexpectedEof.into())),
        (_, Err(error)) => Err(error),
    }
}

/// Hands what arrives to the thread, in as few pieces as the thread's own pace allows.
async fn read_all(
    mut stream: Bulk,
    pieces: mpsc::Sender<Piece>,
    mut to_reuse: mpsc::Receiver<Vec<u8>>,
) -> Result<(), RemoteError> {
    let (mut piece, mut filled) = (vec![0; PIECE], 0);
    let ended = loop {
        tokio::select! {
            biased;
            // The thread has everything, or has given up.
            () = pieces.closed() => return Ok(()),
            read = stream.read(&mut piece[filled..]), if filled < PIECE => match read {
                Ok(0) => break Ok(()),
                Ok(length) => filled += length,
                Err(error) => break Err(error),
            },
            permit = pieces.reserve(), if filled > 0 => {
                let Ok(permit) = permit else { return Ok(()) };
                let next = to_reuse.try_recv().unwrap_or_else(|_| vec![0; PIECE]);
                permit.send((std::mem::replace(&mut piece, next), filled));
                filled = 0;
            }
        }
    };
    if filled > 0 {
        _ = pieces.send((piece, filled)).await;
    }
    ended
}

/// The thread: whether everything has arrived.
fn work(
    receiving: Receiving,
    answers: ToStream,
    arrived: &[u8],
    mut from_stream: mpsc::Receiver<Piece>,
    empty: &mpsc::Sender<Vec<u8>>,
) -> Result<bool, RemoteError> {
    let Receiving { target, options, partials, progress, failures } = receiving;
    let mut receiver = Receiver::new(target, options, partials, answers, progress, failures);
    let mut fed = receiver.feed(arrived);
    while fed.is_ok()
        && !receiver.is_finished()
        && let Some((piece, length)) = from_stream.blocking_recv()
    {
        fed = receiver.feed(&piece[..length]);
        _ = empty.try_send(piece);
    }
    if !receiver.is_finished() {
        receiver.interrupted();
    }
    fed.map(|()| receiver.is_finished())
}
