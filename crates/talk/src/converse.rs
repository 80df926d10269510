//! A conversation over a stream.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::conversation::{Conversation, Event, SendError, Violation};
use crate::protocol::{Frame, Malformed};

/// Encoded frames that wait for the stream: beyond, frames stay in the conversation.
const MOST_OUTGOING: usize = 64 << 10;
/// How long the peer has to take the last bytes and to end its stream.
const PARTING: Duration = Duration::from_secs(5);

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send a message, written at this Unix time in milliseconds.
    Send {
        /// When it was written.
        sent_ms: u64,
        /// The text.
        text: String,
    },
    /// The user has seen the peer's messages up to this one.
    Read(u64),
    /// The user is typing.
    Typing,
    /// End the talk.
    Leave,
}

/// Why a conversation no longer runs over a stream.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// One side has ended the talk, and the other knows.
    #[error("the talk is over")]
    Over,
    /// The connection is lost: on another one the conversation can go on.
    #[error("the connection to the peer is lost: {0}")]
    Lost(#[source] io::Error),
    /// The peer's bytes are no frames.
    #[error("the peer does not keep to the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// The peer's frames make no sense.
    #[error("{0}")]
    Violation(#[from] Violation),
    /// The user's program no longer takes events or gives commands.
    #[error("the program that talks has ended")]
    Abandoned,
}

/// Runs a conversation over a stream until the talk is over or the stream ends. Events wait while the user is slow, and then
/// so does the peer. A command that cannot be done gives `refused`.
///
/// If the connection is lost, the conversation knows what is missing, and can be run over another stream.
///
/// A program that ends after this should first wait for [`PeerConnection::closed`](crate::PeerConnection::closed): else the peer may wait for the
/// last acknowledgment for a few seconds.
pub async fn converse<S: AsyncRead + AsyncWrite>(
    conversation: &mut Conversation,
    stream: S,
    commands: &mut mpsc::Receiver<Command>,
    events: &mpsc::Sender<Result<Event, SendError>>,
) -> End {
    conversation.connected();
    let mut running = Running { conversation, events, incoming: BytesMut::new(), outgoing: Vec::new() };
    let end = running.run(stream, commands).await.unwrap_or_else(|end| end);
    conversation.disconnected();
    end
}

struct Running<'a> {
    conversation: &'a mut Conversation,
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
        while !self.conversation.is_over() {
            self.fill();
            tokio::select! {
                read = reader.read_buf(&mut self.incoming) => match read.map_err(End::Lost)? {
                    0 => return Err(End::Lost(io::ErrorKind::UnexpectedEof.into())),
                    _ => self.handle().await?,
                },
                written = writer.write(&self.outgoing), if !self.outgoing.is_empty() => {
                    let written = written.map_err(End::Lost)?;
                    self.outgoing.drain(..written);
                }
                command = commands.recv() => self.obey(command.ok_or(End::Abandoned)?).await?,
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
            let Some(frame) = self.conversation.outgoing() else { return };
            frame.encode(&mut self.outgoing);
        }
    }

    async fn handle(&mut self) -> Result<(), End> {
        while let Some((frame, length)) = Frame::decode(&self.incoming)? {
            self.incoming.advance(length);
            if let Some(event) = self.conversation.handle(frame)? {
                self.inform(Ok(event)).await?;
            }
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> Result<(), End> {
        match command {
            Command::Send { sent_ms, text } => {
                let taken = self.conversation.send(sent_ms, text);
                self.inform(taken.map(Event::Queued)).await?;
            }
            Command::Read(through) => self.conversation.read(through),
            Command::Typing => self.conversation.typing(),
            Command::Leave => self.conversation.leave(),
        }
        Ok(())
    }

    async fn inform(&self, event: Result<Event, SendError>) -> Result<(), End> {
        self.events.send(event).await.map_err(|_| End::Abandoned)
    }
}
