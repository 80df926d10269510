//! From a call to a stream between two clients: the directory brings them together, and then they meet.

use std::net::SocketAddr;
use std::time::Duration;

use kendall_curve::Stream;
use kendall_curve::curvecp::{PublicKey, SecretKey};
use kendall_talk::relay::Token;
use kendall_talk::{MeetError, Meeting, Path, TalkId};
use tokio::sync::watch;

use crate::client::{Client, ClientError};
use crate::protocol::{Addresses, Contact, EndOfCall, Push, Reachable};

/// How long two clients that were brought together have to find a way.
const PATIENCE: Duration = Duration::from_secs(15);

/// A stream to a peer.
#[derive(Debug)]
pub struct Met {
    /// The encrypted stream, for [`kendall_talk::converse`].
    pub stream: Stream,
    /// Which way its packets take.
    pub path: Path,
    /// The peer's name.
    pub name: String,
    /// The key that the peer has proved.
    pub key: PublicKey,
}

/// Two clients did not come together.
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

/// Calls a user, waits until the call is accepted, and meets the client that accepted it. `local` is where the socket of the
/// talk is bound; port 0 takes a free one.
///
/// # Errors
/// Fails where the user cannot be reached or does not accept, and where there is no way to the client.
pub async fn call(
    client: &mut Client,
    local: SocketAddr,
    identity: SecretKey,
    name: &str,
    talk: TalkId,
) -> Result<Met, PeerError> {
    let meeting = Meeting::bind(local, identity.clone())?;
    let call = client.call(name, talk.0, contact(&meeting, &identity, client.server_addr())).await?;
    let mut others = Vec::new();
    let accepted = loop {
        match client.next_push().await? {
            Push::Accepted { call: accepted, peer, token } if accepted == call => break Ok((peer, token)),
            Push::CallEnded { call: ended, why } if ended == call => {
                break Err(PeerError::Ended { name: name.to_owned(), why });
            }
            other => others.push(other),
        }
    };
    others.into_iter().try_for_each(|push| client.keep(push))?;
    let (peer, token) = accepted?;
    join(client, meeting, call, peer, token).await
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
    let meeting = Meeting::bind(local, identity.clone())?;
    let contact = contact(&meeting, &identity, client.server_addr());
    let (peer, token) = client.accept(call, contact).await?;
    join(client, meeting, call, peer, token).await
}

/// How this client can be reached within its own network; how from outside, the meeting point will see.
fn contact(meeting: &Meeting, identity: &SecretKey, server: SocketAddr) -> Contact {
    let addresses = meeting.address_towards(server).into_iter().collect();
    Contact { key: identity.public_key().0, addresses: Addresses::new(addresses) }
}

async fn join(
    client: &mut Client,
    meeting: Meeting,
    call: u64,
    peer: Reachable,
    token: Token,
) -> Result<Met, PeerError> {
    let key = PublicKey(peer.contact.key);
    let (known, addresses) = watch::channel(peer.contact.addresses.as_slice().to_vec());
    let relay = Some((client.server_addr(), token));
    let mut others = Vec::new();
    let learn = async {
        loop {
            match client.next_push().await {
                Ok(Push::PeerSeen { call: of, address }) if of == call => known.send_if_modified(|known| {
                    let is_news = !known.contains(&address);
                    // Where the peer was seen is more likely to be right than what it says of itself.
                    if is_news {
                        known.insert(0, address);
                    }
                    is_news
                }),
                Ok(other) => {
                    others.push(other);
                    false
                }
                // The clients can still meet: the directory has done its part.
                Err(_) => return std::future::pending().await,
            };
        }
    };
    let met = tokio::select! {
        met = meeting.join(key, addresses, relay, PATIENCE) => met,
        never = learn => match never {},
    };
    others.into_iter().try_for_each(|push| client.keep(push))?;
    let (stream, path) = met?;
    Ok(Met { stream, path, name: peer.name, key })
}
