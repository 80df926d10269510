//! A conversation with a peer, as a task.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kendall_chat::client::Client;
use kendall_chat::peer::{self, Met};
use kendall_talk::{Command, End, Event, Path, PeerStream, SendError, Side, TalkId, converse};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::known::{Acquaintance, KnownPeers, safety_number};
use crate::output::{note, shown};
use crate::profile::enforced;
use crate::session::{FAREWELL, User, local};

/// Commands and events that a conversation has room for.
const ROOM: usize = 64;

/// How long the peer has to say goodbye, too.
const PARTING: Duration = Duration::from_secs(8);

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
    ///
    /// # Errors
    /// Fails with the stream, which [`part`] ends.
    pub(crate) fn begin(
        met: Met,
        talk: TalkId,
        known: &mut KnownPeers,
    ) -> Result<Self, (anyhow::Error, Box<PeerStream>)> {
        let Met { stream, path, name, key } = met;
        let connection = stream.connection();
        match known.check(&name, &key) {
            Ok(Acquaintance::Known) => {}
            Ok(Acquaintance::New) => {
                let number = safety_number(&format!("{key:?}"));
                note(&format!("first talk with {}, whose safety number is {number}", shown(&name)));
            }
            Err(error) => return Err((error, Box::new(stream))),
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

    /// Ends the talk. The peer has a while to say goodbye, too.
    pub(crate) fn leave(&mut self) {
        self.ask(Command::Leave);
        let task = self.task.abort_handle();
        tokio::spawn(async move {
            sleep(PARTING).await;
            task.abort();
        });
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
                // Commands first: otherwise a peer could cause more commands than are given.
                biased;
                room = self.commands.reserve(), if !self.waiting.is_empty() => match (room, self.waiting.pop_front()) {
                    (Ok(room), Some(command)) => room.send(command),
                    _ => self.waiting.clear(),
                },
                event = self.events.recv() => return event,
            }
        }
    }

    /// Waits until both sides are done; what the peer says meanwhile is dropped.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        while self.next().await.is_some() {}
        match self.task.await {
            Ok(End::Over) => Ok(()),
            Ok(lost) => Err(lost.into()),
            // The peer has not said goodbye in time.
            Err(error) if error.is_cancelled() => Ok(()),
            Err(error) => Err(error.into()),
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
    let wanted = enforced(name).unwrap_or_else(|_| name.to_owned());
    if met.name != wanted {
        return Err(Failure::AnotherUser { wanted, answered: shown(&met.name) }.into());
    }
    Ok((met, talk))
}

/// Begins a conversation with a user who was called, or who has called.
///
/// # Errors
/// Fails where the user's key is not the one that is known.
pub(crate) async fn begin(user: &User, met: Met, talk: TalkId) -> anyhow::Result<Running> {
    match Running::begin(met, talk, &mut user.profile.known_peers()?) {
        Ok(running) => Ok(running),
        Err((error, stream)) => {
            part(*stream).await;
            Err(error)
        }
    }
}

/// Ends the stream of a peer that is not talked to, and waits a while until the peer knows.
pub async fn part(mut stream: PeerStream) {
    let connection = stream.connection();
    let parting = async {
        // An end in failure could overtake that the two have met.
        _ = stream.shutdown().await;
        drop(stream);
        connection.closed().await;
    };
    _ = timeout(FAREWELL, parting).await;
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

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_messages_does_not_pile_up_commands() {
        const MESSAGES: usize = 1000;
        let talk = TalkId([7; 16]);
        let (stream, other) = duplex(1 << 20);
        let (commands, mut wanted) = mpsc::channel(ROOM);
        let (happened, events) = mpsc::channel(ROOM);
        let task =
            tokio::spawn(async move { converse(&mut Side::new(talk), stream, &mut wanted, &happened).await });
        let path = Path::Direct("127.0.0.1:1".parse().unwrap());
        let mut running =
            Running { name: "ann".to_owned(), path, commands, events, waiting: VecDeque::new(), task };
        let mut peer = Side::new(talk);
        for _ in 0..MESSAGES {
            peer.obey(Command::Send { sent_ms: 0, text: String::new() });
        }
        tokio::spawn(async move {
            let (_commands, mut none) = mpsc::channel(1);
            let (happened, mut happens) = mpsc::channel(1);
            tokio::join!(converse(&mut peer, other, &mut none, &happened), async {
                while happens.recv().await.is_some() {}
            })
        });
        let (mut messages, mut most) = (0, 0);
        while messages < MESSAGES {
            if let Event::Message { number, .. } = running.next().await.unwrap().unwrap() {
                messages += 1;
                running.ask(Command::Read(number));
                most = most.max(running.waiting());
            }
        }
        assert!(most <= 3 * ROOM, "{most} commands wait");
    }
}
