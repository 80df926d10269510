//! A talk with a contact, as a task: one conversation over as many connections as it takes.

use std::pin::pin;

use kendall_chatcli::FAREWELL;
use kendall_talk::{
    Command, End, Event as Said, FileId, Outcome, PeerStream, SendError, Side, TalkId, converse,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Events, Happened};
use crate::model::{Event, FileEvent, TalkEvent};

/// Commands that wait for a talk: twice the messages that the state gives it at once.
const MOST_COMMANDS: usize = 1024;

/// A talk that goes on.
pub(crate) struct Talk {
    pub(crate) id: u128,
    commands: mpsc::Sender<Command>,
    streams: mpsc::Sender<(PeerStream, bool)>,
    task: JoinHandle<()>,
}

struct Task {
    name: String,
    id: u128,
    side: Side,
    commands: mpsc::Receiver<Command>,
    streams: mpsc::Receiver<(PeerStream, bool)>,
    events: Events,
}

/// The reason why a connection is no longer used.
enum Next {
    /// The talk has ended.
    Ended(End),
    /// The contact has another one.
    Replaced(PeerStream, bool),
}

impl Talk {
    /// Begins a talk, which waits for its first connection.
    pub(crate) fn begin(name: String, id: u128, events: Events) -> Self {
        let (commands, wanted) = mpsc::channel(MOST_COMMANDS);
        let (streams, connected) = mpsc::channel(1);
        let side = Side::new(talk_id(id));
        let task = Task { name, id, side, commands: wanted, streams: connected, events };
        Self { id, commands, streams, task: tokio::spawn(task.run()) }
    }

    /// Hands over a command.
    pub(crate) fn command(&self, command: Command) -> Result<(), &'static str> {
        match self.commands.try_send(command) {
            Err(mpsc::error::TrySendError::Full(_)) => Err("the connection takes no more messages"),
            // A talk that is over has said so.
            _ => Ok(()),
        }
    }

    /// Goes on over another connection.
    pub(crate) fn continue_over(&self, stream: PeerStream, is_relayed: bool) {
        // With one that waits already, this one is superfluous.
        _ = self.streams.try_send((stream, is_relayed));
    }

    /// Ends the talk and waits for the contact's goodbye.
    pub(crate) async fn leave(self) {
        _ = self.commands.try_send(Command::Leave);
        _ = self.task.await;
    }
}

impl Task {
    async fn run(mut self) {
        let Some(mut next) = self.first().await else { return };
        loop {
            let connection = next.0.connection();
            match self.over(next.0, next.1).await {
                Next::Replaced(stream, is_relayed) => next = (stream, is_relayed),
                Next::Ended(End::Abandoned) => return,
                Next::Ended(End::Over) => {
                    self.inform(TalkEvent::Over).await;
                    // Without it the peer waits for the last acknowledgment.
                    _ = timeout(FAREWELL, connection.closed()).await;
                    return;
                }
                Next::Ended(End::Lost(error)) => {
                    self.inform(TalkEvent::Lost(error.to_string())).await;
                    match self.first().await {
                        Some(stream) => next = stream,
                        None => return,
                    }
                }
                Next::Ended(broken) => return self.inform(TalkEvent::Broken(broken.to_string())).await,
            }
        }
    }

    /// Waits for a connection; `None` where the talk ends before.
    async fn first(&mut self) -> Option<(PeerStream, bool)> {
        loop {
            let command = tokio::select! {
                stream = self.streams.recv() => return stream,
                command = self.commands.recv() => command?,
            };
            match command {
                Command::Typing => {}
                Command::Leave => return None,
                command => {
                    for event in self.side.obey(command) {
                        pass(&self.events, &self.name, self.id, event, false).await;
                    }
                }
            }
        }
    }

    /// Runs the conversation over a connection.
    async fn over(&mut self, stream: PeerStream, is_relayed: bool) -> Next {
        let (said, mut says) = mpsc::channel(64);
        let Self { name, id, side, commands, streams, events } = self;
        let mut running = pin!(converse(side, stream, commands, &said));
        let end = loop {
            tokio::select! {
                biased;
                Some(event) = says.recv() => pass(events, name, *id, event, is_relayed).await,
                end = &mut running => break end,
                Some((stream, is_relayed)) = streams.recv() => return Next::Replaced(stream, is_relayed),
            }
        };
        while let Ok(event) = says.try_recv() {
            pass(events, name, *id, event, is_relayed).await;
        }
        Next::Ended(end)
    }

    async fn inform(&self, event: TalkEvent) {
        let event = Event::Talk { name: self.name.clone(), talk: self.id, event };
        _ = self.events.send(Happened::Event(event)).await;
    }
}

/// The name of a talk on the wire.
pub(crate) fn talk_id(talk: u128) -> TalkId {
    TalkId(talk.to_be_bytes())
}

/// Passes on what a conversation reports.
async fn pass(events: &Events, name: &str, talk: u128, said: Result<Said, SendError>, is_relayed: bool) {
    let of_file = |file, event| TalkEvent::File { file, event };
    let (first, second) = match said {
        Ok(Said::Connected { delivered }) => {
            (TalkEvent::Connected { is_relayed }, Some(TalkEvent::Delivered(delivered)))
        }
        Ok(Said::Message { number, sent_ms, text }) => {
            (TalkEvent::Message { number, at_ms: sent_ms, text }, None)
        }
        Ok(Said::Delivered(through)) => (TalkEvent::Delivered(through), None),
        Ok(Said::Read(through)) => (TalkEvent::Read(through), None),
        Ok(Said::Typing) => (TalkEvent::Typing, None),
        Ok(Said::Bye) => (TalkEvent::Bye, None),
        Ok(Said::Offering { file, name, size }) => {
            (of_file(FileId::Own(file), FileEvent::Offered { name, size }), None)
        }
        Ok(Said::Offered { file, name, size }) => {
            (of_file(FileId::Peer(file), FileEvent::Offered { name, size }), None)
        }
        Ok(Said::Progress { file, bytes }) => (of_file(file, FileEvent::Progress(bytes)), None),
        Ok(Said::Kept { file, path }) => {
            let place = Some(path.display().to_string());
            (of_file(FileId::Peer(file), FileEvent::Whole { place }), None)
        }
        Ok(Said::FileFailed { file, why }) => (of_file(file, FileEvent::Failed(why)), None),
        Ok(Said::Settled { file, outcome }) => {
            let event = match outcome {
                Outcome::Whole => FileEvent::Whole { place: None },
                Outcome::Refused | Outcome::Withdrawn => FileEvent::Dropped,
                Outcome::Failed => FileEvent::Failed("it cannot be written there".to_owned()),
            };
            (of_file(file, event), None)
        }
        Ok(Said::Queued(_) | Said::Piece { .. } | Said::Sum { .. }) | Err(SendError::Over) => return,
        Err(error @ SendError::TooManyFiles) => {
            let event = Event::Note { name: Some(name.to_owned()), text: error.to_string() };
            _ = events.send(Happened::Event(event)).await;
            return;
        }
        Err(error) => (TalkEvent::Broken(error.to_string()), None),
    };
    for event in [Some(first), second].into_iter().flatten() {
        let event = Event::Talk { name: name.to_owned(), talk, event };
        _ = events.send(Happened::Event(event)).await;
    }
}
