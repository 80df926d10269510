//! Peers for tests, and a relay that gives each the address of its peer, as the directory does.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use kendall_curve::curvecp::SecretKey;
use kendall_talk::relay::{Limits, PairId, PeerAnnounced, Relay, RelayHandle, Token};
use kendall_talk::{
    Command, End, Event, MeetError, Meeting, Path, PeerStream, PeerTransport, SendError, Side, TalkId,
    Upload, converse,
};
use tokio::sync::{mpsc, watch};

pub(crate) const TALK: TalkId = TalkId([9; 16]);
pub(crate) const TOKENS: [Token; 2] = [[1; 16], [2; 16]];
/// Longer than anything takes, so that a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The secret keys of two peers, of which the first one dials.
pub(crate) fn keys() -> [SecretKey; 2] {
    let mut keys = [SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32])];
    keys.sort_by_key(|key| key.public_key().0);
    keys
}

/// A relay, and for each side where the relay saw the other one.
pub(crate) struct Introduction {
    pub(crate) address: SocketAddr,
    pub(crate) handle: RelayHandle,
    pub(crate) pair: Cell<Option<PairId>>,
    pub(crate) peers: [watch::Receiver<Vec<SocketAddr>>; 2],
}

impl Introduction {
    /// Has the relay forward for the two.
    pub(crate) fn open(&self) {
        self.pair.set(Some(self.handle.open(TOKENS).unwrap()));
    }
}

/// Starts a relay that runs as long as the runtime.
pub(crate) async fn introduce(address: SocketAddr) -> Introduction {
    let (relay, seen) = Relay::bind(address, Limits::default()).await.unwrap();
    let (address, handle) = (relay.address().unwrap(), relay.handle());
    let [(first, to_first), (second, to_second)] = [(); 2].map(|()| watch::channel(Vec::new()));
    let introduction = Introduction { address, handle, pair: Cell::default(), peers: [to_first, to_second] };
    introduction.open();
    tokio::spawn(relay.run());
    tokio::spawn(pass_on(seen, [second, first]));
    introduction
}

/// Gives each side's address to the other one.
async fn pass_on(mut seen: mpsc::Receiver<PeerAnnounced>, other: [watch::Sender<Vec<SocketAddr>>; 2]) {
    while let Some(PeerAnnounced { side, address, .. }) = seen.recv().await {
        other[side].send_if_modified(|known| {
            let new = !known.contains(&address);
            if new {
                known.push(address);
            }
            new
        });
    }
}

/// One side meets the other.
pub(crate) async fn meet(
    transport: PeerTransport,
    side: usize,
    local: SocketAddr,
    addresses: watch::Receiver<Vec<SocketAddr>>,
    relay: SocketAddr,
) -> Result<(PeerStream, Path), MeetError> {
    let peer = keys()[1 - side].public_key();
    let meeting = Meeting::bind(local, keys()[side].clone())?;
    meeting.join(transport, peer, addresses, Some((relay, TOKENS[side])), PATIENCE).await
}

/// A running conversation, as its user holds it.
pub(crate) struct User {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::UnboundedReceiver<Result<Event, SendError>>,
    running: tokio::task::JoinHandle<(Side, End)>,
}

impl User {
    pub(crate) fn new(mut side: Side, stream: PeerStream) -> Self {
        let (commands, mut wanted) = mpsc::channel(16);
        let (happened, mut happens) = mpsc::channel(16);
        // A user who writes without reading events would wait for the conversation, and the conversation for the user.
        let (seen, events) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(event) = happens.recv().await {
                _ = seen.send(event);
            }
        });
        let running = tokio::spawn(async move {
            let end = converse(&mut side, stream, &mut wanted, &happened).await;
            (side, end)
        });
        Self { commands, events, running }
    }

    pub(crate) async fn say(&self, text: impl Into<String>) {
        self.commands.send(Command::Send { sent_ms: 0, text: text.into() }).await.unwrap();
    }

    /// The texts of the next messages; other events are passed over.
    pub(crate) async fn hear(&mut self, messages: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < messages {
            if let Event::Message { text, .. } = self.next().await {
                texts.push(text);
            }
        }
        texts
    }

    /// Waits for an event; others are passed over.
    pub(crate) async fn see(&mut self, wanted: Event) {
        self.find(|event| event == wanted).await;
    }

    /// Waits for an event that is wanted; others are passed over.
    pub(crate) async fn find(&mut self, is_wanted: impl Fn(Event) -> bool) -> Event {
        loop {
            let event = self.next().await;
            if is_wanted(event.clone()) {
                return event;
            }
        }
    }

    /// The next event. A conversation that ends without one returns why.
    async fn next(&mut self) -> Event {
        let next = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        match next.expect("an event happens in time") {
            Some(event) => event.expect("it was taken"),
            None => {
                let (_, end) = (&mut self.running).await.expect("the conversation does not panic");
                panic!("the conversation has ended: {end:?}")
            }
        }
    }

    /// Offers a file, which the peer takes; their numbers are the same.
    pub(crate) async fn hand(&self, upload: Upload, peer: &mut Self, folder: &FilePath) -> u64 {
        self.commands.send(Command::Offer(upload)).await.unwrap();
        let offered = peer.find(|event| matches!(event, Event::Offered { .. })).await;
        let Event::Offered { file, name, .. } = offered else { unreachable!("it was found") };
        peer.commands.send(Command::Take { file, name, folder: folder.to_owned() }).await.unwrap();
        file
    }

    /// The side, the texts that arrived meanwhile, and why it no longer runs.
    pub(crate) async fn end(mut self) -> (Side, Vec<String>, End) {
        let mut texts = Vec::new();
        while let Some(event) = self.events.recv().await {
            if let Ok(Event::Message { text, .. }) = event {
                texts.push(text);
            }
        }
        let (side, end) = self.running.await.unwrap();
        (side, texts, end)
    }
}
