//! The messages of a session on its stream, one after another, before bulk data begins; and signs of life.
//!
//! CurveCP detects a machine that has disappeared, but not a program that hangs. So an end that has nothing to send for [`ALIVE_EVERY`] sends
//! an empty frame, and one that receives nothing for the limit on silence ends the session.

use std::io;
use std::pin::pin;
use std::time::Duration;

use kendall_curve::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;

use crate::error::RemoteError;
use crate::frame::{self, Frame, FrameDecoder};
use crate::opening::ALIVE;

/// Bytes read at once.
const PIECE: usize = 16 << 10;
/// An end that has had nothing to send for this long says that it is there.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// The default time for which a peer may send nothing: several signs of life.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// The half of a stream that is read, with what has arrived of it and was not read yet.
pub(crate) struct Inward {
    stream: ReadHalf<Stream>,
    silence_limit: Duration,
    decoder: FrameDecoder,
    arrived: Vec<u8>,
}

/// The half that is written.
pub(crate) type Outward = WriteHalf<Stream>;

/// Divides a connection into the two halves. A peer that sends nothing for the limit is lost.
pub(crate) fn split(stream: Stream, silence_limit: Duration) -> (Inward, Outward) {
    let (stream, outward) = tokio::io::split(stream);
    // No frame of kind 0 exists, so all are handed out whole.
    (Inward { stream, silence_limit, decoder: FrameDecoder::new(0), arrived: Vec::new() }, outward)
}

/// What is read of a stream from where its messages end.
pub(crate) struct Bulk {
    stream: ReadHalf<Stream>,
    silence_limit: Duration,
}

impl Bulk {
    /// Reads what has arrived: at least a byte, or none at the end. Cancelling loses no byte.
    ///
    /// # Errors
    /// [`RemoteError::Lost`] and [`RemoteError::Silent`].
    pub(crate) async fn read(&mut self, into: &mut [u8]) -> Result<usize, RemoteError> {
        let read = timeout(self.silence_limit, self.stream.read(into)).await;
        read.map_err(|_| RemoteError::Silent(self.silence_limit))?.map_err(RemoteError::Lost)
    }
}

impl Inward {
    /// Waits for the next frame: its kind and body. Cancelling loses no byte.
    ///
    /// # Errors
    /// [`RemoteError::Lost`] also where the stream ends, and [`RemoteError::Silent`].
    pub(crate) async fn next(&mut self) -> Result<(u8, Vec<u8>), RemoteError> {
        loop {
            let mut input = &self.arrived[..];
            let frame = self.decoder.next(&mut input)?.map(|frame| match frame {
                Frame::Whole { kind, body } => (kind, body.to_vec()),
                Frame::Data(piece) => (0, piece.to_vec()),
            });
            let left = input.len();
            self.arrived.drain(..self.arrived.len() - left);
            match frame {
                Some((ALIVE, _)) => continue,
                Some(frame) => return Ok(frame),
                None => {}
            }
            self.arrived.reserve(PIECE);
            let read = timeout(self.silence_limit, self.stream.read_buf(&mut self.arrived)).await;
            if read.map_err(|_| RemoteError::Silent(self.silence_limit))?.map_err(RemoteError::Lost)? == 0 {
                return Err(RemoteError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// The stream, and bytes of it that belong to no frame that was handed out.
    pub(crate) fn into_bulk(self) -> (Bulk, Vec<u8>) {
        let partial = self.decoder.into_partial();
        let arrived = if partial.is_empty() { self.arrived } else { [partial, self.arrived].concat() };
        (Bulk { stream: self.stream, silence_limit: self.silence_limit }, arrived)
    }
}

/// Writes bytes.
///
/// # Errors
/// [`RemoteError::Lost`].
pub(crate) async fn write(outward: &mut Outward, bytes: &[u8]) -> Result<(), RemoteError> {
    outward.write_all(bytes).await.map_err(RemoteError::Lost)
}

/// Waits for something to send, and gives the peer signs of life meanwhile.
///
/// # Errors
/// [`RemoteError::Lost`].
pub(crate) async fn alive_while<T>(
    outward: &mut Outward,
    work: impl Future<Output = T>,
) -> Result<T, RemoteError> {
    let mut work = pin!(work);
    loop {
        if let Ok(done) = timeout(ALIVE_EVERY, &mut work).await {
            return Ok(done);
        }
        let mut sign = Vec::new();
        frame::append(&mut sign, ALIVE, &[]);
        write(outward, &sign).await?;
    }
}
