//! The connection to the directory server, as a task: it logs in, waits for calls, and passes requests and news.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use kendall_chat::client::{Client, ClientError};
use kendall_chat::password::Stretch;
use kendall_chat::peer::{Calling, Joining, PeerAddresses, PeerError, accept};
use kendall_chat::protocol::{EndOfCall, Presence, Push};
use kendall_chatcli::{Account, Failure, STAY_ALIVE, connect, local, worded};
use kendall_curve::curvecp::SecretKey;
use kendall_talk::PeerTransport;
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::{interval, timeout};
use zeroize::Zeroizing;

use super::talk::talk_id;
use super::{Events, Happened};
use crate::model::Event;

/// How long the server has to answer a request.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who logs in where.
pub(crate) struct Login {
    pub(crate) account: Account,
    pub(crate) password: Zeroizing<String>,
    pub(crate) identity: SecretKey,
    pub(crate) transport: PeerTransport,
}

/// What is asked of the directory.
pub(crate) enum Request {
    Watch(String),
    Unwatch(String),
    Who,
    Call { name: String, talk: u128 },
    Cancel { name: String },
    Answer { call: u64, name: String, talk: u128 },
    Refuse { call: u64 },
    LogOut,
}

struct Session {
    client: Client,
    identity: SecretKey,
    transport: PeerTransport,
    events: Events,
    /// Calls of this side that ring.
    calling: HashMap<u64, (Calling, String, u128)>,
    /// Where the addresses of a peer go that is about to be met.
    joining: HashMap<u64, PeerAddresses>,
    /// Calls that are about to be met, or not any more.
    met: mpsc::Sender<u64>,
}

/// Holds a session until it is lost or the user logs out.
pub(crate) async fn attend(login: Login, mut asked: mpsc::Receiver<Request>, events: Events) {
    let lost = match hold(login, &mut asked, &events).await {
        Ok(()) => return,
        Err(error) => error,
    };
    let happened = match lost.downcast_ref() {
        Some(Failure::WrongNameOrPassword) => Happened::Fatal(lost),
        _ => Happened::Event(Event::Offline { why: format!("{lost:#}") }),
    };
    _ = events.send(happened).await;
}

async fn hold(login: Login, asked: &mut mpsc::Receiver<Request>, events: &Events) -> anyhow::Result<()> {
    let mut client = connect(&login.account).await?;
    in_time(client.log_in(&login.account.name, &login.password, Stretch::default())).await?;
    in_time(client.wait_for_calls()).await?;
    let (met, mut mets) = mpsc::channel(64);
    let mut session = Session {
        client,
        identity: login.identity,
        transport: login.transport,
        events: events.clone(),
        calling: HashMap::new(),
        joining: HashMap::new(),
        met,
    };
    inform(&session.events, Event::Online).await;
    let mut alive = interval(STAY_ALIVE);
    loop {
        tokio::select! {
            push = session.client.next_push() => session.hear(push.map_err(worded)?).await?,
            request = asked.recv() => match request {
                None | Some(Request::LogOut) => return in_time(session.client.log_out()).await,
                Some(request) => session.ask(request).await?,
            },
            Some(call) = mets.recv() => drop(session.joining.remove(&call)),
            _ = alive.tick() => in_time(session.client.stay_alive()).await?,
        }
    }
}

/// The answer to a request, if it comes in time.
async fn in_time<T>(answer: impl Future<Output = Result<T, ClientError>>) -> anyhow::Result<T> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(worded),
        Err(_) => anyhow::bail!("the directory server has not answered within {PATIENCE:?}"),
    }
}

/// What came of a request whose refusal changes nothing: the call is over already, or the name is not one.
fn taken(answer: Result<Result<(), ClientError>, Elapsed>) -> anyhow::Result<()> {
    match answer {
        Ok(Ok(()) | Err(ClientError::Refused { .. })) => Ok(()),
        Ok(Err(error)) => Err(worded(error)),
        Err(_) => anyhow::bail!("the directory server has not answered within {PATIENCE:?}"),
    }
}

async fn inform(events: &Events, event: Event) {
    // The main loop has ended if it takes no more events.
    _ = events.send(Happened::Event(event)).await;
}

async fn failed(events: &Events, name: String, talk: u128, error: PeerError) {
    let why = Failure::of_call(&name, error).to_string();
    inform(events, Event::CallFailed { name, talk, why, is_refusal: false }).await;
}

impl Session {
    async fn hear(&mut self, push: Push) -> anyhow::Result<()> {
        match push {
            Push::Changed { name, presence } => {
                inform(&self.events, Event::Presence { name, is_there: presence == Presence::There }).await;
            }
            Push::Incoming { call, name, talk } => {
                inform(&self.events, Event::Incoming { call, name, talk: u128::from_be_bytes(talk) }).await;
            }
            Push::Accepted { call, peer, token } => {
                if let Some((calling, name, talk)) = self.calling.remove(&call) {
                    self.meet(calling.accepted(peer, token), name, talk);
                }
            }
            Push::CallEnded { call, why } => match self.calling.remove(&call) {
                Some((_, name, talk)) => {
                    let is_refusal = why == EndOfCall::Refused;
                    let why = PeerError::Ended { name: name.clone(), why }.to_string();
                    inform(&self.events, Event::CallFailed { name, talk, why, is_refusal }).await;
                }
                None => inform(&self.events, Event::RingingEnded { call }).await,
            },
            Push::PeerSeen { call, address } => {
                if let Some(addresses) = self.joining.get(&call) {
                    addresses.learn(address);
                }
            }
            Push::SessionEnded { why } => anyhow::bail!("the server ended the session: {why:?}"),
        }
        Ok(())
    }

    async fn ask(&mut self, request: Request) -> anyhow::Result<()> {
        match request {
            Request::Watch(name) => taken(timeout(PATIENCE, self.client.watch(&name)).await),
            Request::Unwatch(name) => taken(timeout(PATIENCE, self.client.unwatch(&name)).await),
            Request::Who => {
                let names = in_time(self.client.who_is_there()).await?;
                inform(&self.events, Event::There(names)).await;
                Ok(())
            }
            Request::Call { name, talk } => self.call(name, talk).await,
            Request::Cancel { name } => {
                let calls: Vec<u64> = self
                    .calling
                    .iter()
                    .filter(|(_, (_, of, _))| *of == name)
                    .map(|(call, _)| *call)
                    .collect();
                for call in calls {
                    self.calling.remove(&call);
                    taken(timeout(PATIENCE, self.client.cancel(call)).await)?;
                }
                Ok(())
            }
            Request::Answer { call, name, talk } => self.answer(call, name, talk).await,
            Request::Refuse { call } => taken(timeout(PATIENCE, self.client.refuse(call)).await),
            Request::LogOut => Ok(()),
        }
    }

    async fn call(&mut self, name: String, talk: u128) -> anyhow::Result<()> {
        let at = local(&self.client);
        let begun =
            Calling::begin(&mut self.client, at, self.identity.clone(), &name, talk_id(talk), self.transport);
        match timeout(PATIENCE, begun).await? {
            Ok(calling) => drop(self.calling.insert(calling.number(), (calling, name, talk))),
            Err(PeerError::Client(error)) if error.blame().is_none() => return Err(worded(error)),
            Err(error) => failed(&self.events, name, talk, error).await,
        }
        Ok(())
    }

    async fn answer(&mut self, call: u64, name: String, talk: u128) -> anyhow::Result<()> {
        let at = local(&self.client);
        let accepted = accept(&mut self.client, at, self.identity.clone(), call);
        match timeout(PATIENCE, accepted).await? {
            Ok(joining) => self.meet(joining, name, talk),
            Err(PeerError::Client(error)) if error.blame().is_none() => return Err(worded(error)),
            Err(error) => failed(&self.events, name, talk, error).await,
        }
        Ok(())
    }

    /// Meets a peer in its own task.
    fn meet(&mut self, joining: Joining, name: String, talk: u128) {
        let call = joining.number();
        self.joining.insert(call, joining.addresses());
        let (events, done) = (self.events.clone(), self.met.clone());
        tokio::spawn(async move {
            let happened = match joining.meet().await {
                Ok(met) => Happened::Met { name, talk, met: Box::new(met) },
                Err(error) => {
                    let why = error.to_string();
                    Happened::Event(Event::CallFailed { name, talk, why, is_refusal: false })
                }
            };
            _ = events.send(happened).await;
            _ = done.send(call).await;
        });
    }
}
