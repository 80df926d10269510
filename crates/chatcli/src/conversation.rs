//! A conversation with a peer, as a task.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kendall_chat::client::Client;
use kendall_chat::name::Name;
use kendall_chat::peer::{self, Met};
use kendall_talk::{Command, End, Event, Path, SendError, Side, TalkId, converse};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::known::{Acquaintance, KnownPeers, safety_number};
use crate::output::{note, shown};
use crate::session::{User, local};

/// Commands and events that a conversation has room for.
const ROOM: usize = 64;

/// How long the peer has to say goodbye, too.
const PARTING: Duration = Duration::from_secs(8);

/// How long the last packets of a connection may take.
pub const FAREWELL: Duration = Duration::from_secs(2);

/// A conversation that goes on.
pub(crate) struct Running {
    /// The peer's name.
    pub(crate) name: String,
    /// The path of its packets.
    pub(crate) path: Path,
    commands: mpsc::Sender<Command>,
    events: mpsc::Receiver<Result<Event, SendError>>,
    /// Commands that the conversation has no room for yet.
    waiting: VecDeque<Command>,
    task: JoinHandle<End>,
}

impl Running {
    /// Begins a conversation, if the peer's key is the one that is known.
    pub(crate) async fn begin(met: Met, talk: TalkId, known: &mut KnownPeers) -> anyhow::Result<Self> {
        let Met { mut stream, path, name, key } = met;
        let connection = stream.connection();
        match known.check(&name, &key) {
            Ok(Acquaintance::Known) => {}
            Ok(Acquaintance::New) => {
                let number = safety_number(&format!("{key:?}"));
                note(&format!("first talk with {}, whose safety number is {number}", shown(&name)));
            }
            Err(error) => {
                // The peer learns at once that nothing comes: an end in failure could overtake that the two have met.
                _ = stream.shutdown().await;
                drop(stream);
                _ = timeout(FAREWELL, connection.closed()).await;
                return Err(error);
            }
        }
        let (commands, mut wanted) = mpsc::channel(ROOM);
        let (happened, events) = mpsc::channel(ROOM);
        let task = tokio::spawn(async move {
            let end = converse(&mut Side::new(talk), stream, &mut wanted, &happened).await;
            drop(happened);
            // Else the peer waits for the last acknowledgment.
            _ = timeout(FAREWELL, connection.closed()).await;
            end
        });
        Ok(Self { name, path, commands, events, waiting: VecDeque::new(), task })
    }

    /// Has the conversation do something, which happens while [`Self::next`] is awaited.
    pub(crate) fn ask(&mut self, command: Command) {
        self.waiting.push_back(command);
    }

    /// Says something now.
    pub(crate) fn say(&mut self, text: String) {
        self.ask(Command::Send { sent_ms: now_ms(), text });
    }

    /// How many commands wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Waits for what happens; `None` where the conversation is over. Cancelling loses nothing.
    ///
    /// Commands are given meanwhile: a conversation whose events are not taken has no room for them.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, SendError>> {
        loop {
            tokio::select! {
                room = self.commands.reserve(), if !self.waiting.is_empty() => match (room, self.waiting.pop_front()) {
                    (Ok(room), Some(command)) => room.send(command),
                    _ => self.waiting.clear(),
                },
                event = self.events.recv() => return event,
            }
        }
    }

    /// Waits until both sides are done, for a while; what the peer says meanwhile is dropped.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        let parted = timeout(PARTING, async { while self.next().await.is_some() {} }).await;
        if parted.is_err() {
            self.task.abort();
            return Ok(());
        }
        match self.task.await? {
            End::Over => Ok(()),
            lost => Err(lost.into()),
        }
    }
}

/// Calls a user for a new talk, and meets the client that takes the call.
///
/// # Errors
/// Fails where the user cannot be reached or refuses, and where another one answers.
pub(crate) async fn call(user: &User, client: &mut Client, name: &str) -> anyhow::Result<(Met, TalkId)> {
    let (talk, at, key) = (new_talk()?, local(client), user.profile.key()?);
    let met = peer::call(client, at, key.secret().clone(), name, talk, user.transport).await;
    let met = met.map_err(|error| Failure::of_call(name, error))?;
    // The directory writes names in one way, however they are typed.
    let wanted = Name::new(name).map_or_else(|_| name.to_owned(), |name| name.shown().to_owned());
    if met.name != wanted {
        return Err(Failure::AnotherUser { wanted, answered: shown(&met.name) }.into());
    }
    Ok((met, talk))
}

/// How a path is called.
pub fn path_name(path: Path) -> &'static str {
    match path {
        Path::Direct(_) => "direct",
        Path::Relayed(_) => "relayed",
    }
}

/// A talk that no other has the number of.
///
/// # Errors
/// Fails where the system has no random numbers.
pub fn new_talk() -> anyhow::Result<TalkId> {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(TalkId(bytes))
}

/// Unix time in milliseconds.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
