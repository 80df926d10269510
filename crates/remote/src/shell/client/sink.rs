//! Output on its way to a terminal or a pipe that may not take it at once.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A writer with what waits for it. The client bounds that: it accepts no more output than the server may send before an
/// acknowledgment, and connects again only while little waits.
pub(super) struct Sink {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    queue: VecDeque<Chunk>,
    /// Bytes of the first chunk that are written.
    written: usize,
    flushed: bool,
}

struct Chunk {
    /// The position of the chunk in the session's output; the client's own lines have none.
    offset: Option<u64>,
    bytes: Vec<u8>,
}

impl Sink {
    pub(super) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        Self { writer, queue: VecDeque::new(), written: 0, flushed: true }
    }

    pub(super) fn push(&mut self, offset: Option<u64>, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.queue.push_back(Chunk { offset, bytes: bytes.to_vec() });
        }
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.queue.iter().map(|chunk| chunk.bytes.len()).sum::<usize>() - self.written
    }

    /// Whether all is written.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flushed
    }

    /// Offset of the first output that is not written.
    pub(super) fn first_waiting(&self) -> Option<u64> {
        let at = self.queue.iter().position(|chunk| chunk.offset.is_some())?;
        let written = if at == 0 { self.written as u64 } else { 0 };
        self.queue[at].offset.map(|offset| offset + written)
    }

    /// Writes some. Can be cancelled.
    pub(super) async fn write(&mut self) -> io::Result<()> {
        let Some(chunk) = self.queue.front() else {
            self.writer.flush().await?;
            self.flushed = true;
            return Ok(());
        };
        let count = self.writer.write(&chunk.bytes[self.written..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.flushed = false;
        self.written += count;
        if self.written == chunk.bytes.len() {
            self.queue.pop_front();
            self.written = 0;
        }
        Ok(())
    }
}
