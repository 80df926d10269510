//! The frames that a thread reads from files: large buffers, which the task that owns the stream writes and gives back.

use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::copy::protocol::{DATA, Message};
use crate::frame;

/// Bytes that are written to the stream at once, about.
const BUFFER: usize = 256 << 10;
/// Buffers on their way to the stream, at most.
const BUFFERS: usize = 8;
/// Data begins in a new buffer where fewer bytes than this are left.
const LEAST: usize = 16 << 10;
/// Beyond the buffer, so that a message begun near its end seldom makes it grow.
const MARGIN: usize = 8 << 10;

/// The task that owns the stream has ended: the connection is lost or the copy was interrupted.
#[derive(Debug)]
pub(crate) struct StreamClosed;

/// The thread's end.
pub(crate) struct Outbox {
    buffer: Vec<u8>,
    full: mpsc::Sender<Vec<u8>>,
    empty: mpsc::Receiver<Vec<u8>>,
}

/// The task's end.
pub(crate) struct Written {
    pub(crate) full: mpsc::Receiver<Vec<u8>>,
    empty: mpsc::Sender<Vec<u8>>,
}

/// Both ends.
pub(crate) fn outbox() -> (Outbox, Written) {
    let ((full, from_thread), (empty, to_reuse)) = (mpsc::channel(BUFFERS), mpsc::channel(BUFFERS));
    (Outbox { buffer: new_buffer(), full, empty: to_reuse }, Written { full: from_thread, empty })
}

fn new_buffer() -> Vec<u8> {
    Vec::with_capacity(BUFFER + MARGIN)
}

impl Written {
    /// Gives a buffer back that was written.
    pub(crate) fn reuse(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        _ = self.empty.try_send(buffer);
    }
}

impl Outbox {
    /// Whether nothing that is sent arrives any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.full.is_closed()
    }

    /// Sends a message.
    pub(crate) fn message(&mut self, message: &Message) -> Result<(), StreamClosed> {
        message.encode(&mut self.buffer);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Sends up to `most` bytes of a file from an offset on, and returns those that were read: none at its end.
    pub(crate) fn data(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        most: u64,
    ) -> Result<io::Result<&[u8]>, StreamClosed> {
        if self.buffer.len() + LEAST > BUFFER && !self.buffer.is_empty() {
            self.flush()?;
        }
        let start = frame::begin(&mut self.buffer, DATA);
        let read = loop {
            match rustix::io::pread(file, spare_capacity(&mut self.buffer), offset) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        let body = start + frame::HEADER;
        match read {
            Ok(read) => {
                let length = usize::try_from(most).map_or(read, |most| read.min(most));
                self.buffer.truncate(if length == 0 { start } else { body + length });
                if length == 0 {
                    return Ok(Ok(&[]));
                }
                frame::end(&mut self.buffer, start);
                Ok(Ok(&self.buffer[body..]))
            }
            Err(error) => {
                self.buffer.truncate(start);
                Ok(Err(error.into()))
            }
        }
    }

    /// Sends what has been gathered.
    pub(crate) fn flush(&mut self) -> Result<(), StreamClosed> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let next = self.empty.try_recv().unwrap_or_else(|_| new_buffer());
        self.full.blocking_send(std::mem::replace(&mut self.buffer, next)).map_err(|_| StreamClosed)
    }
}
