//! The messages of a session on its stream, one after another, before bulk data begins.

use std::io;

use kendall_curve::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::error::RemoteError;
use crate::frame::{Frame, FrameDecoder};

/// Bytes read at once.
const PIECE: usize = 16 << 10;

/// The half of a stream that is read, with what has arrived of it and was not read yet.
pub(crate) struct Inward {
    pub(crate) stream: ReadHalf<Stream>,
    decoder: FrameDecoder,
    arrived: Vec<u8>,
}

/// The half that is written.
pub(crate) type Outward = WriteHalf<Stream>;

/// Divides a connection into the two halves.
pub(crate) fn split(stream: Stream) -> (Inward, Outward) {
    let (stream, outward) = tokio::io::split(stream);
    // No frame of kind 0 exists, so all are handed out whole.
    (Inward { stream, decoder: FrameDecoder::new(0), arrived: Vec::new() }, outward)
}

impl Inward {
    /// Waits for the next frame: its kind and body. Cancelling loses no byte.
    ///
    /// # Errors
    /// [`RemoteError::Lost`] also where the stream ends.
    pub(crate) async fn next(&mut self) -> Result<(u8, Vec<u8>), RemoteError> {
        loop {
            let mut input = &self.arrived[..];
            let frame = self.decoder.next(&mut input)?.map(|frame| match frame {
                Frame::Whole { kind, body } => (kind, body.to_vec()),
                Frame::Data(piece) => (0, piece.to_vec()),
            });
            let left = input.len();
            self.arrived.drain(..self.arrived.len() - left);
            if let Some(frame) = frame {
                return Ok(frame);
            }
            self.arrived.reserve(PIECE);
            if self.stream.read_buf(&mut self.arrived).await.map_err(RemoteError::Lost)? == 0 {
                return Err(RemoteError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// The stream, and bytes of it that belong to no frame that was handed out.
    pub(crate) fn into_stream(self) -> (ReadHalf<Stream>, Vec<u8>) {
        let partial = self.decoder.into_partial();
        let arrived = if partial.is_empty() { self.arrived } else { [partial, self.arrived].concat() };
        (self.stream, arrived)
    }
}

/// Writes bytes.
///
/// # Errors
/// [`RemoteError::Lost`].
pub(crate) async fn write(outward: &mut Outward, bytes: &[u8]) -> Result<(), RemoteError> {
    outward.write_all(bytes).await.map_err(RemoteError::Lost)
}
