//! Takes a call to a stream between two clients: the directory introduces them, and then they meet.

use std::net::SocketAddr;
use std::time::Duration;

use kendall_curve::curvecp::{PublicKey, SecretKey};
use kendall_talk::relay::Token;
use kendall_talk::{MeetError, Meeting, Path, PeerStream, PeerTransport, TalkId};
use tokio::sync::watch;

use crate::client::{Client, ClientError};
use crate::protocol::{Addresses, Contact, EndOfCall, Push, Reachable};

/// How long two clients that were brought together have to find a way.
const PATIENCE: Duration = Duration::from_secs(15);

/// Addresses of a peer that are known; [`Meeting::join`] tries as many.
const ADDRESSES: usize = 8;

/// A stream to a peer.
#[derive(Debug)]
pub struct Met {
    /// The encrypted stream, for [`kendall_talk::converse`].
    pub stream: PeerStream,
    /// The path of its packets.
    pub path: Path,
    /// The peer's name.
    pub name: String,
    /// The key that the peer has proved.
    pub key: PublicKey,
}

/// An error that keeps two clients from meeting.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PeerError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Meet(#[from] MeetError),
    #[error("{name} {}", match why {
        EndOfCall::Refused => "refused the call",
        EndOfCall::Unanswered => "did not answer",
        EndOfCall::Cancelled | EndOfCall::Elsewhere | EndOfCall::Gone => "is gone",
    })]
    Ended { name: String, why: EndOfCall },
}

/// A call that this client has begun, and the socket from which it meets the client that accepts.
///
/// A program that waits for several things at once takes a call in steps: [`Calling::begin`], then [`Push::Accepted`] or
/// [`Push::CallEnded`] for its [`number`](Self::number), then [`Calling::accepted`]. [`call`] does all of them.
pub struct Calling {
    meeting: Meeting,
    transport: PeerTransport,
    call: u64,
    server: SocketAddr,
}

impl Calling {
    /// Calls a user for a talk over `transport`. `local` is where its socket is bound; port 0 takes a free one.
    ///
    /// # Errors
    /// Fails where the user cannot be reached.
    pub async fn begin(
        client: &mut Client,
        local: SocketAddr,
        identity: SecretKey,
        name: &str,
        talk: TalkId,
        transport: PeerTransport,
    ) -> Result<Self, PeerError> {
        let meeting = Meeting::bind(local, identity.clone())?;
        let server = client.server_addr();
        let contact = contact(&meeting, &identity, server, transport);
        let call = client.call(name, talk.0, contact).await?;
        Ok(Self { meeting, transport, call, server })
    }

    /// The number of the call.
    pub fn number(&self) -> u64 {
        self.call
    }

    /// The call is accepted, as [`Push::Accepted`] reports.
    pub fn accepted(self, peer: Reachable, token: Token) -> Joining {
        Joining::new(self.meeting, self.transport, self.call, (self.server, token), peer)
    }
}

/// A client that was brought together with another one, and has yet to meet it.
pub struct Joining {
    meeting: Meeting,
    transport: PeerTransport,
    call: u64,
    peer: Reachable,
    relay: (SocketAddr, Token),
    known: watch::Sender<Vec<SocketAddr>>,
}

/// The sender of the addresses at which the peer of a [`Joining`] was observed.
#[derive(Clone, Debug)]
pub struct PeerAddresses(watch::Sender<Vec<SocketAddr>>);

impl Joining {
    fn new(
        meeting: Meeting,
        transport: PeerTransport,
        call: u64,
        relay: (SocketAddr, Token),
        peer: Reachable,
    ) -> Self {
        let (known, _) = watch::channel(peer.contact.addresses.as_slice().to_vec());
        Self { meeting, transport, call, peer, relay, known }
    }

    /// The number of the call.
    pub fn number(&self) -> u64 {
        self.call
    }

    /// Where the addresses of [`Push::PeerSeen`] go while [`meet`](Self::meet) runs.
    pub fn addresses(&self) -> PeerAddresses {
        PeerAddresses(self.known.clone())
    }

    /// Meets the peer, directly or by the relay.
    ///
    /// # Errors
    /// Fails where there is no way to the peer.
    pub async fn meet(self) -> Result<Met, PeerError> {
        let key = PublicKey(self.peer.contact.key);
        let addresses = self.known.subscribe();
        let (stream, path) =
            self.meeting.join(self.transport, key, addresses, Some(self.relay), PATIENCE).await?;
        Ok(Met { stream, path, name: self.peer.name, key })
    }
}

impl PeerAddresses {
    /// Adds an address at which the peer was observed. The oldest of more than eight is forgotten.
    pub fn learn(&self, address: SocketAddr) {
        self.0.send_if_modified(|known| {
            let is_news = !known.contains(&address);
            // Where the peer was seen is more likely to be right than what it says of itself.
            if is_news {
                known.insert(0, address);
                known.truncate(ADDRESSES);
            }
            is_news
        });
    }
}

/// Calls a user for a talk over `transport`, waits until the call is accepted, and meets the client that accepted it. `local` is
/// where the socket of the talk is bound; port 0 takes a free one.
///
/// # Errors
/// Fails where the user cannot be reached or does not accept, and where there is no way to the client.
pub async fn call(
    client: &mut Client,
    local: SocketAddr,
    identity: SecretKey,
    name: &str,
    talk: TalkId,
    transport: PeerTransport,
) -> Result<Met, PeerError> {
    let calling = Calling::begin(client, local, identity, name, talk, transport).await?;
    let call = calling.number();
    let decision = |push: &Push| match push {
        Push::Accepted { call: accepted, peer, token } if *accepted == call => {
            Some(Ok((peer.clone(), *token)))
        }
        Push::CallEnded { call: ended, why } if *ended == call => Some(Err(*why)),
        _ => None,
    };
    let decided = client.pick_push(decision).await?;
    let (peer, token) = decided.map_err(|why| PeerError::Ended { name: name.to_owned(), why })?;
    join(client, calling.accepted(peer, token)).await
}

/// Takes a call that rings, and meets the client that began it.
///
/// # Errors
/// Fails where the call is over, and where there is no way to the client.
pub async fn answer(
    client: &mut Client,
    local: SocketAddr,
    identity: SecretKey,
    call: u64,
) -> Result<Met, PeerError> {
    let joining = accept(client, local, identity, call).await?;
    join(client, joining).await
}

/// Takes a call that rings: the first step of [`answer`], for a program that waits for several things at once.
///
/// # Errors
/// Fails where the call is over.
pub async fn accept(
    client: &mut Client,
    local: SocketAddr,
    identity: SecretKey,
    call: u64,
) -> Result<Joining, PeerError> {
    let meeting = Meeting::bind(local, identity.clone())?;
    let server = client.server_addr();
    let own = contact(&meeting, &identity, server, PeerTransport::default());
    let (peer, token) = client.accept(call, own).await?;
    Ok(Joining::new(meeting, peer.contact.transport, call, (server, token), peer))
}

/// How this client can be reached within its own network; how from outside, the meeting point will see.
fn contact(meeting: &Meeting, identity: &SecretKey, server: SocketAddr, transport: PeerTransport) -> Contact {
    let addresses = meeting.address_towards(server).into_iter().collect();
    Contact { key: identity.public_key().0, transport, addresses: Addresses::new(addresses) }
}

async fn join(client: &mut Client, joining: Joining) -> Result<Met, PeerError> {
    let (call, addresses) = (joining.number(), joining.addresses());
    let seen = |push: &Push| match push {
        Push::PeerSeen { call: of, address } if *of == call => Some(*address),
        _ => None,
    };
    let learn = async {
        loop {
            match client.pick_push(seen).await {
                Ok(address) => addresses.learn(address),
                // The clients can still meet: the directory has done its part.
                Err(_) => return std::future::pending().await,
            }
        }
    };
    tokio::select! {
        met = joining.meet() => met,
        never = learn => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_that_were_seen_last_are_known() {
        let (sender, known) = watch::channel(Vec::new());
        let port = |port| SocketAddr::from(([127, 0, 0, 1], port));
        (1..=100).for_each(|seen| PeerAddresses(sender.clone()).learn(port(seen)));
        assert_eq!(*known.borrow(), (93..=100).rev().map(port).collect::<Vec<_>>());
    }
}
