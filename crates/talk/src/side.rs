//! A conversation with the files of this side's disk.

use std::io;
use std::path::{Path, PathBuf};

use tokio::task::JoinHandle;

use crate::conversation::Conversation;
use crate::event::{Event, FileId, SendError, Violation};
use crate::files::Need;
use crate::protocol::{FileFrame, Frame, Outcome, TalkId};
use crate::transfers::{Report, Source, Transfers, Upload};

/// A command of the user.
#[derive(Clone, Debug)]
pub enum Command {
    /// Send a message, written at this Unix time in milliseconds.
    Send {
        /// The time at which the user wrote the message.
        sent_ms: u64,
        /// The text.
        text: String,
    },
    /// The user has read the peer's messages up to this one.
    Read(u64),
    /// The user is typing.
    Typing,
    /// Offer a file.
    Offer(Upload),
    /// Take a file that the peer has offered.
    Take {
        /// The number of the file.
        file: u64,
        /// The name that the peer has given it. The file is kept under a safe name, next to a file that has the name already.
        name: String,
        /// The folder in which the file must be kept.
        folder: PathBuf,
    },
    /// Refuse a file of the peer's or take back one of ours, also while it is on its way.
    Cancel(FileId),
    /// End the talk.
    Leave,
}

/// One side of a talk, which outlives the connections that carry it.
pub struct Side {
    pub(crate) conversation: Conversation,
    transfers: Transfers,
}

type EventResult = Result<Event, SendError>;

impl Side {
    /// Makes a side of a talk without messages.
    pub fn new(talk: TalkId) -> Self {
        Self { conversation: Conversation::new(talk), transfers: Transfers::new() }
    }

    /// How many messages the peer has not acknowledged.
    pub fn waiting(&self) -> usize {
        self.conversation.waiting()
    }

    /// Executes a command of the user; returns the events for the user. While there is no connection, it is executed
    /// on the next one.
    pub fn obey(&mut self, command: Command) -> Vec<Result<Event, SendError>> {
        match command {
            Command::Send { sent_ms, text } => {
                return vec![self.conversation.send(sent_ms, text).map(Event::Queued)];
            }
            Command::Read(through) => self.conversation.read(through),
            Command::Typing => self.conversation.typing(),
            Command::Offer(upload) => return vec![self.offer(&upload)],
            Command::Take { file, name, folder } => {
                return self.take(file, &name, &folder).into_iter().collect();
            }
            Command::Cancel(file) => self.cancel(file),
            Command::Leave => return self.leave().map(Ok).collect(),
        }
        Vec::new()
    }

    fn offer(&mut self, upload: &Upload) -> EventResult {
        let file = self.conversation.files.offer(upload.name.clone(), upload.size)?;
        self.transfers.uploads.insert(file, Source::new(upload));
        Ok(Event::Offering { file, name: upload.name.clone(), size: upload.size })
    }

    fn take(&mut self, file: u64, name: &str, folder: &Path) -> Option<EventResult> {
        let size = self.conversation.files.take(file)?;
        let error = self.transfers.begin(file, folder, name, size).err()?;
        self.failed(FileId::Peer(file), error.to_string()).map(Ok)
    }

    fn cancel(&mut self, file: FileId) {
        self.transfers.drop_file(file);
        match file {
            FileId::Own(file) => _ = self.conversation.files.withdraw(file),
            FileId::Peer(file) => _ = self.conversation.files.settle(file, Outcome::Refused),
        }
    }

    /// A file that this side cannot read or write; what the user learns, unless it has ended before.
    fn failed(&mut self, file: FileId, why: String) -> Option<Event> {
        self.transfers.drop_file(file);
        let was_open = match file {
            FileId::Own(file) => self.conversation.files.withdraw(file),
            FileId::Peer(file) => self.conversation.files.settle(file, Outcome::Failed),
        };
        was_open.then_some(Event::FileFailed { file, why })
    }

    /// Ends the talk, and with it all files.
    fn leave(&mut self) -> impl Iterator<Item = Event> + use<> {
        let open = self.conversation.leave();
        open.iter().for_each(|file| self.transfers.drop_file(*file));
        open.into_iter().map(|file| Event::FileFailed { file, why: "the talk has ended".to_owned() })
    }

    /// Takes a frame of the peer's; what the user learns.
    pub(crate) async fn handle(&mut self, frame: Frame) -> Result<Vec<Event>, Violation> {
        let Some(event) = self.conversation.handle(frame)? else { return Ok(Vec::new()) };
        match event {
            Event::Piece { file, bytes } => {
                self.transfers.write(file, bytes).await;
                return Ok(Vec::new());
            }
            Event::Sum { file, digest } => {
                self.transfers.finish(file, digest).await;
                return Ok(Vec::new());
            }
            Event::Progress { file, .. } if !self.transfers.is_due(file) => return Ok(Vec::new()),
            Event::Settled { file, .. } => self.transfers.drop_file(file),
            Event::Bye => return Ok(self.leave().chain([event]).collect()),
            _ => {}
        }
        Ok(vec![event])
    }

    /// The next frame that needs no bytes of a file.
    pub(crate) fn outgoing(&mut self) -> Option<Frame> {
        self.conversation.outgoing().or_else(|| {
            let Need::Sum { file } = self.conversation.need()? else { return None };
            let digest = self.transfers.uploads.get(&file)?.digest();
            self.conversation.files.summed(file);
            Some(Frame::File { file, frame: FileFrame::Sum(digest) })
        })
    }

    /// Bytes of a file that are due, and the task that reads them.
    pub(crate) fn need(&self) -> Option<(Need, JoinHandle<io::Result<Vec<u8>>>)> {
        let need = self.conversation.need()?;
        let Need::Piece { file, offset, length } = need else { return None };
        Some((need, self.transfers.uploads.get(&file)?.read(offset, length)))
    }

    /// The frame of bytes that were read, or what the user learns where they cannot be.
    pub(crate) fn piece(
        &mut self,
        need: Need,
        read: io::Result<Vec<u8>>,
    ) -> Result<Option<Frame>, Option<Event>> {
        let Need::Piece { file, offset, .. } = need else { return Ok(None) };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "it has become shorter".to_owned(),
                    _ => error.to_string(),
                };
                return Err(self.failed(FileId::Own(file), why));
            }
        };
        if let Some(source) = self.transfers.uploads.get_mut(&file) {
            source.hash(offset, &bytes);
        }
        let frame = self.conversation.files.piece(need, bytes);
        Ok(frame.map(|(file, frame)| Frame::File { file, frame }))
    }

    /// Waits for what the disk reports.
    pub(crate) async fn report(&mut self) -> Report {
        self.transfers.report().await
    }

    /// What the disk has reported.
    pub(crate) fn try_report(&mut self) -> Option<Report> {
        self.transfers.try_report()
    }

    /// Takes what the disk reports; what the user learns.
    pub(crate) fn reported(&mut self, report: Report) -> Option<Event> {
        match report {
            Report::Written { file, bytes } => {
                let bytes = self.conversation.files.written(file, bytes)?;
                let file = FileId::Peer(file);
                self.transfers.is_due(file).then_some(Event::Progress { file, bytes })
            }
            Report::Ended { file, done: Ok(path) } => {
                self.transfers.drop_file(FileId::Peer(file));
                let is_open = self.conversation.files.settle(file, Outcome::Whole);
                is_open.then_some(Event::Kept { file, path })
            }
            Report::Ended { file, done: Err(why) } => self.failed(FileId::Peer(file), why),
        }
    }
}
