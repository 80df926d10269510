//! Frames on a stream of bytes, with bounds on what waits in either direction.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::shell::protocol::{FrameError, HEADER, MAX_BODY, header};

/// While more than this waits to be sent, nothing is received, so that a peer that asks and does not read is bounded.
const OUTBOX: usize = 256 * 1024;

/// While less than this waits to be sent, bulk data may be added.
const BULK: usize = 64 * 1024;

/// A stream of frames.
pub(crate) struct Framed<S> {
    stream: S,
    inbox: BytesMut,
    outbox: Vec<u8>,
    sent: usize,
}

/// What has happened on a [`Framed`].
#[derive(Debug)]
pub(crate) enum Progress {
    /// A frame has arrived: its kind and its body.
    Frame(u8, Bytes),
    /// There is capacity for bulk data again.
    Drained,
    /// The peer has ended its stream.
    Ended,
}

/// The reason why a stream of frames is over.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The stream has failed.
    Io(io::Error),
    /// The peer has broken the protocol.
    Frame(FrameError),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Framed<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, inbox: BytesMut::new(), outbox: Vec::new(), sent: 0 }
    }

    /// The stream below.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Where frames are appended that are to be sent. They leave while [`Self::progress`] is awaited.
    pub(crate) fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Whether bulk data may be added.
    pub(crate) fn takes_bulk(&self) -> bool {
        self.outbox.len() - self.sent < BULK
    }

    /// Sends what waits and receives the next frame. Can be cancelled.
    pub(crate) async fn progress(&mut self) -> Result<Progress, StreamError> {
        poll_fn(|context| self.poll_progress(context)).await
    }

    fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<Progress, StreamError>> {
        let was_full = !self.takes_bulk();
        self.poll_send(context).map_err(StreamError::Io)?;
        if was_full && self.takes_bulk() {
            return Poll::Ready(Ok(Progress::Drained));
        }
        if self.outbox.len() - self.sent > OUTBOX {
            return Poll::Pending;
        }
        loop {
            if let Some((kind, length)) = header(&self.inbox).map_err(StreamError::Frame)?
                && self.inbox.len() >= HEADER + length
            {
                self.inbox.advance(HEADER);
                return Poll::Ready(Ok(Progress::Frame(kind, self.inbox.split_to(length).freeze())));
            }
            if ready!(self.poll_receive(context)).map_err(StreamError::Io)? == 0 {
                return Poll::Ready(Ok(Progress::Ended));
            }
        }
    }

    /// Sends as much as the stream takes.
    fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.sent < self.outbox.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.outbox[self.sent..]) {
                Poll::Ready(written) => self.sent += written?,
                Poll::Pending => break,
            }
        }
        if self.sent == self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
        } else if self.sent > OUTBOX {
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let before = self.inbox.len();
        self.inbox.resize(before + HEADER + MAX_BODY, 0);
        let mut into = ReadBuf::new(&mut self.inbox[before..]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut into);
        let count = into.filled().len();
        self.inbox.truncate(before + count);
        ready!(read)?;
        Poll::Ready(Ok(count))
    }

    /// Sends all that waits and ends our stream in success.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            self.poll_send(context)?;
            if self.outbox.is_empty() { Poll::Ready(io::Result::Ok(())) } else { Poll::Pending }
        })
        .await?;
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::shell::protocol::ClientFrame;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn frames_arrive_whole_and_a_peer_that_does_not_read_stops_being_read() {
        runtime().block_on(async {
            let (ours, mut theirs) = duplex(64);
            let mut framed = Framed::new(ours);
            let mut sent = Vec::new();
            ClientFrame::Input { offset: 5, bytes: &[7; 100] }.append(&mut sent);
            ClientFrame::Ping.append(&mut sent);
            let writer = tokio::spawn(async move {
                theirs.write_all(&sent).await.unwrap();
                theirs
            });
            let Progress::Frame(16, body) = framed.progress().await.unwrap() else { panic!("no input") };
            assert_eq!(
                ClientFrame::decode(16, &body),
                Ok(ClientFrame::Input { offset: 5, bytes: &[7; 100] })
            );
            assert!(matches!(framed.progress().await, Ok(Progress::Frame(22, _))));
            let mut theirs = writer.await.unwrap();
            // Too much waits to be sent: what comes in is left in the stream.
            framed.outbox().resize(OUTBOX + 1000, 0);
            theirs.write_all(&[0, 0, 0, 0, 22]).await.unwrap();
            let soon = std::time::Duration::from_millis(20);
            assert!(tokio::time::timeout(soon, framed.progress()).await.is_err());
            assert!(!framed.takes_bulk());
            let mut read = vec![0; OUTBOX];
            tokio::select! {
                read = theirs.read_exact(&mut read) => assert_eq!(read.unwrap(), OUTBOX),
                _ = async { loop { framed.progress().await.unwrap(); } } => unreachable!(),
            }
            drop(theirs);
        });
    }

    #[test]
    fn a_frame_that_is_too_long_is_an_error() {
        runtime().block_on(async {
            let (ours, mut theirs) = duplex(64);
            theirs.write_all(&[255, 255, 255, 255, 1]).await.unwrap();
            assert!(matches!(
                Framed::new(ours).progress().await,
                Err(StreamError::Frame(FrameError::TooLong(_)))
            ));
        });
    }
}
