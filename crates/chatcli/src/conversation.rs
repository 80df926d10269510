//! A conversation with a peer, as a task.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kendall_chat::peer::Met;
use kendall_talk::{Command, Conversation, End, Event, Path, SendError, TalkId, converse};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::known::{Acquaintance, KnownPeers, safety_number};
use crate::output::note;

/// Commands and events that wait.
const WAITING: usize = 64;

/// How long the peer has to say goodbye, too.
const PARTING: Duration = Duration::from_secs(8);

/// How long the last packets of a connection may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A conversation that goes on.
pub(crate) struct Running {
    /// The peer's name.
    pub(crate) name: String,
    /// Which way its packets take.
    pub(crate) path: Path,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Result<Event, SendError>>,
    task: JoinHandle<End>,
}

impl Running {
    /// Begins a conversation, if the peer's key is the one that is known.
    pub(crate) fn begin(met: Met, talk: TalkId, known: &mut KnownPeers) -> anyhow::Result<Self> {
        let Met { stream, path, name, key } = met;
        if known.check(&name, &key)? == Acquaintance::New {
            let number = safety_number(&format!("{key:?}"));
            note(&format!("first talk with {name}, whose safety number is {number}"));
        }
        let (commands, mut wanted) = mpsc::channel(WAITING);
        let (happened, events) = mpsc::channel(WAITING);
        let connection = stream.connection().clone();
        let task = tokio::spawn(async move {
            let end = converse(&mut Conversation::new(talk), stream, &mut wanted, &happened).await;
            drop(happened);
            // Else the peer waits for the last acknowledgment.
            _ = timeout(FAREWELL, connection.closed()).await;
            end
        });
        Ok(Self { name, path, commands, events, task })
    }

    /// Asks the conversation for something; one that has ended does nothing.
    pub(crate) async fn ask(&self, command: Command) {
        _ = self.commands.send(command).await;
    }

    /// Says something now.
    pub(crate) async fn say(&self, text: String) {
        self.ask(Command::Send { sent_ms: now_ms(), text }).await;
    }

    /// Waits until both sides are done, for a while; what the peer says meanwhile is dropped.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let Self { mut task, commands, mut events, .. } = self;
        let done = async {
            loop {
                tokio::select! {
                    end = &mut task => return end,
                    Some(_) = events.recv() => {}
                }
            }
        };
        let end = timeout(PARTING, done).await;
        // The conversation would end without a goodbye if nothing could give it commands.
        drop(commands);
        match end {
            Ok(end) => match end? {
                End::Over => Ok(()),
                lost => Err(lost.into()),
            },
            Err(_) => Ok(()),
        }
    }
}

/// How a path is called.
pub(crate) fn path_name(path: Path) -> &'static str {
    match path {
        Path::Direct(_) => "direct",
        Path::Relayed(_) => "relayed",
    }
}

/// A talk that no other has the number of.
pub(crate) fn new_talk() -> anyhow::Result<TalkId> {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(TalkId(bytes))
}

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
