//! A conversation over a stream.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::event::{Event, SendError, Violation};
use crate::files::Need;
use crate::protocol::{Frame, MOST_PIECE, Malformed};
use crate::side::{Command, Side};
use crate::transfers::Report;

/// Encoded frames that wait for the stream: beyond, frames stay in the conversation.
const MOST_OUTGOING: usize = 64 << 10;
/// How long the peer has to take the last bytes and to end its stream.
const PARTING: Duration = Duration::from_secs(5);

/// The reason why a conversation no longer runs over a stream.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// One side has ended the talk, and the other side knows.
    #[error("the talk is over")]
    Over,
    /// The connection is lost: on another one the conversation can go on.
    #[error("the connection to the peer is lost: {0}")]
    Lost(#[source] io::Error),
    /// The peer's bytes are not frames.
    #[error("the peer broke the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// The peer's frames make no sense.
    #[error("{0}")]
    Violation(#[from] Violation),
    /// The user's program no longer takes events or gives commands.
    #[error("the program that talks has ended")]
    Abandoned,
}

/// Runs one side of a talk over a stream until the talk is over or the stream ends. Events wait while the user is slow, and then
/// so does the peer. A command that cannot be done gives `refused`.
///
/// Messages go before files: bytes of a file are read where nothing else waits to be sent.
///
/// If the connection is lost, the side knows what is missing, and can be run over another stream.
///
/// A program that ends after this should first wait for [`PeerConnection::closed`](crate::PeerConnection::closed): else the peer may wait for the
/// last acknowledgment for a few seconds.
pub async fn converse<S: AsyncRead + AsyncWrite>(
    side: &mut Side,
    stream: S,
    commands: &mut mpsc::Receiver<Command>,
    events: &mpsc::Sender<Result<Event, SendError>>,
) -> End {
    side.conversation.connected();
    let mut running = Running { side, events, incoming: BytesMut::new(), outgoing: Vec::new() };
    let end = running.run(stream, commands).await.unwrap_or_else(|end| end);
    side.conversation.disconnected();
    end
}

/// Bytes of a file that are needed, and the task that reads them.
type Reading = (Need, JoinHandle<io::Result<Vec<u8>>>);

struct Running<'a> {
    side: &'a mut Side,
    events: &'a mpsc::Sender<Result<Event, SendError>>,
    incoming: BytesMut,
    outgoing: Vec<u8>,
}

impl Running<'_> {
    async fn run<S: AsyncRead + AsyncWrite>(
        &mut self,
        stream: S,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<End, End> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut reading: Option<Reading> = None;
        while !self.side.conversation.is_over() {
            self.fill();
            if self.outgoing.len() < MOST_PIECE && reading.is_none() {
                reading = self.side.need();
            }
            self.incoming.reserve(MOST_PIECE);
            tokio::select! {
                read = reader.read_buf(&mut self.incoming) => match read.map_err(End::Lost)? {
                    0 => return Err(End::Lost(io::ErrorKind::UnexpectedEof.into())),
                    _ => self.handle(commands).await?,
                },
                written = writer.write(&self.outgoing), if !self.outgoing.is_empty() => {
                    let written = written.map_err(End::Lost)?;
                    self.outgoing.drain(..written);
                }
                command = commands.recv() => self.obey(command.ok_or(End::Abandoned)?).await?,
                (need, read) = finished(&mut reading), if reading.is_some() => {
                    reading = None;
                    self.piece(need, read).await?;
                }
                report = self.side.report() => self.take(report).await?,
            }
        }
        self.fill();
        self.part(&mut reader, &mut writer).await;
        Ok(End::Over)
    }

    /// Writes the last frames and waits until the peer has ended its stream, for a while.
    async fn part(&mut self, reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin)) {
        let part = async {
            writer.write_all(&self.outgoing).await?;
            writer.shutdown().await?;
            tokio::io::copy(reader, &mut tokio::io::sink()).await
        };
        // Both have said goodbye: what fails now, or takes too long, changes nothing.
        _ = timeout(PARTING, part).await;
    }

    /// Encodes what is to be sent, as far as there is room.
    fn fill(&mut self) {
        while self.outgoing.len() < MOST_OUTGOING {
            let Some(frame) = self.side.outgoing() else { return };
            frame.encode(&mut self.outgoing);
        }
    }

    async fn handle(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<(), End> {
        while let Some((frame, length)) = Frame::decode(&self.incoming)? {
            self.incoming.advance(length);
            for event in self.side.handle(frame).await? {
                self.inform(Ok(event)).await?;
            }
            // Each frame can cause a command and a report. One read brings thousands of frames, so if commands and reports
            // were taken once a read, they would pile up.
            while let Ok(command) = commands.try_recv() {
                self.obey(command).await?;
            }
            while let Some(report) = self.side.try_report() {
                self.take(report).await?;
            }
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> Result<(), End> {
        for event in self.side.obey(command) {
            self.inform(event).await?;
        }
        Ok(())
    }

    /// Sends bytes of a file that were read.
    async fn piece(&mut self, need: Need, read: io::Result<Vec<u8>>) -> Result<(), End> {
        match self.side.piece(need, read) {
            Ok(Some(frame)) => frame.encode(&mut self.outgoing),
            Ok(None) | Err(None) => {}
            Err(Some(failed)) => self.inform(Ok(failed)).await?,
        }
        Ok(())
    }

    /// Takes what the disk reports.
    async fn take(&mut self, report: Report) -> Result<(), End> {
        match self.side.reported(report) {
            Some(event) => self.inform(Ok(event)).await,
            None => Ok(()),
        }
    }

    async fn inform(&self, event: Result<Event, SendError>) -> Result<(), End> {
        self.events.send(event).await.map_err(|_| End::Abandoned)
    }
}

/// Waits for bytes that are being read.
async fn finished(reading: &mut Option<Reading>) -> (Need, io::Result<Vec<u8>>) {
    let Some((need, task)) = reading else { return std::future::pending().await };
    let read = task.await.map_err(io::Error::other);
    (*need, read.and_then(|read| read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FileFrame, TalkId, VERSION};

    const TALK: TalkId = TalkId([7; 16]);

    #[tokio::test]
    async fn commands_and_reports_are_taken_between_the_frames_of_one_read() {
        const PIECES: u64 = 5000;
        let folder = tempfile::tempdir().unwrap();
        let mut side = Side::new(TALK);
        side.conversation.connected();
        let (events, _happens) = mpsc::channel(64);
        let (wanted, mut commands) = mpsc::channel(1);
        let mut running =
            Running { side: &mut side, events: &events, incoming: BytesMut::new(), outgoing: Vec::new() };
        let file = |frame| Frame::File { file: 1, frame };
        let feed = |running: &mut Running<'_>, frame: Frame| {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            running.incoming.extend_from_slice(&bytes);
        };
        feed(&mut running, Frame::Hello { version: VERSION, talk: TALK, received: 0 });
        feed(&mut running, file(FileFrame::Offer { size: PIECES, name: "plan".to_owned() }));
        running.handle(&mut commands).await.unwrap();
        running
            .obey(Command::Take { file: 1, name: "plan".to_owned(), folder: folder.path().to_owned() })
            .await
            .unwrap();
        running.fill();
        for offset in 0..PIECES {
            feed(&mut running, file(FileFrame::Piece { offset, bytes: vec![0] }));
        }
        wanted.try_send(Command::Typing).unwrap();
        running.handle(&mut commands).await.unwrap();
        assert!(wanted.try_send(Command::Typing).is_ok(), "the first one was taken");
        // As many may wait as parts of the file do.
        let mut waiting = 0;
        while side.try_report().is_some() {
            waiting += 1;
        }
        assert!(waiting < PIECES / 2, "{waiting} reports wait");
    }
}
