//! The frames that arrive on a stream.

use kendall_remote::frame::{Frame, FrameDecoder};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::TunnelError;

/// Bytes read at once, at most: several of the largest packets.
const ROOM: usize = 256 << 10;

/// A stream that is read as frames.
pub(crate) struct Frames<R> {
    stream: R,
    decoder: FrameDecoder,
    arrived: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(stream: R) -> Self {
        // No frame of kind 0 exists, so all are handed out whole.
        Self { stream, decoder: FrameDecoder::new(0), arrived: Vec::with_capacity(ROOM) }
    }

    /// Waits for bytes, and hands out each frame that has become whole: its kind and body. Cancelling loses no byte.
    ///
    /// # Errors
    /// [`TunnelError::Lost`] also where the stream ends; [`TunnelError::Protocol`]; what `each` returns.
    pub(crate) async fn receive(
        &mut self,
        mut each: impl FnMut(u8, &[u8]) -> Result<(), TunnelError>,
    ) -> Result<(), TunnelError> {
        self.arrived.clear();
        if self.stream.read_buf(&mut self.arrived).await.map_err(TunnelError::Lost)? == 0 {
            return Err(TunnelError::Lost(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let mut input = &self.arrived[..];
        while let Some(frame) = self.decoder.next(&mut input)? {
            if let Frame::Whole { kind, body } = frame {
                each(kind, body)?;
            }
        }
        Ok(())
    }
}
