//! The directory as a state machine: which users are online, which accounts each user watches, which calls ring, and the number of attempts.
//!
//! It has no socket, no clock, no store and no randomness: the time is a duration since the start of the server, tokens are
//! arguments, and messages to other clients wait in [`take_pushes`](Directory::take_pushes). Of passwords it learns
//! only that one was proved.
//!
//! A user is there as long as the account has a session. A session lasts as long as its client makes requests, and a moment
//! longer than its connection, so that a client can take it up on another one.

mod attempts;
mod calls;
mod known_networks;
mod limits;
mod log_ins;
mod meetings;
mod network;
mod rendezvous;
mod sessions;
mod watches;

use std::collections::HashMap;
use std::mem::take;
use std::net::SocketAddr;
use std::time::Duration;

pub use limits::{AttemptLimits, BackOff, Limits};
pub use network::Network;
pub use rendezvous::Introduction;

use crate::name::{Name, NameKey};
use crate::protocol::{Answer, Blame, EndOfCall, EndOfSession, Names, Presence, Push, Request, Secret};
use attempts::Attempts;
use calls::{Calls, Loss};
use log_ins::LogIns;
use meetings::Meetings;
use sessions::Sessions;
use watches::Watches;

/// A connection, by a number that the server gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A session, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(u64);

/// The reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The fault of the request.
    pub why: Blame,
    /// The time after which another attempt may succeed; zero where waiting changes nothing.
    pub retry: Duration,
}

/// The directory.
#[derive(Debug)]
pub struct Directory {
    limits: Limits,
    connections: HashMap<ConnectionId, Connection>,
    sessions: Sessions,
    attempts: Attempts,
    log_ins: LogIns,
    watches: Watches,
    calls: Calls,
    meetings: Meetings,
    pushes: Vec<(ConnectionId, Push)>,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    peer: SocketAddr,
    session: Option<SessionId>,
}

/// How many entries the tables of a directory have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Connections.
    pub connections: usize,
    /// Sessions.
    pub sessions: usize,
    /// Log-ins that wait for their proof.
    pub log_ins: usize,
    /// Watches.
    pub watches: usize,
    /// Calls that ring.
    pub calls: usize,
    /// Accepted calls whose sides are about to meet.
    pub meetings: usize,
    /// Counts of attempts.
    pub counts: usize,
}

impl From<Blame> for Refusal {
    fn from(why: Blame) -> Self {
        Self { why, retry: Duration::ZERO }
    }
}

impl Directory {
    /// An empty directory within these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            connections: HashMap::new(),
            sessions: Sessions::default(),
            attempts: Attempts::new(limits.attempts),
            log_ins: LogIns::default(),
            watches: Watches::default(),
            calls: Calls::default(),
            meetings: Meetings::default(),
            pushes: Vec::new(),
        }
    }

    /// A client has connected.
    pub fn connect(&mut self, connection: ConnectionId, peer: SocketAddr) {
        self.connections.insert(connection, Connection { peer, session: None });
    }

    /// A connection is gone. Its session lasts a moment longer.
    pub fn disconnect(&mut self, now: Duration, connection: ConnectionId) {
        self.log_ins.end(connection);
        if let Some(Connection { session: Some(session), .. }) = self.connections.remove(&connection) {
            self.leave(session);
            self.sessions.detach(session, now + self.limits.linger);
        }
    }

    /// Counts a registration that begins.
    ///
    /// # Errors
    /// Fails where the client's network has begun too many of late.
    pub fn begin_registration(&mut self, now: Duration, connection: ConnectionId) -> Result<(), Refusal> {
        let network = self.network(connection)?;
        self.attempts.begin_registration(now, network).map_err(too_many)
    }

    /// Counts a log-in that begins, and waits for its proof.
    ///
    /// # Errors
    /// Fails where there were too many attempts of late, and where the connection carries a session of another account.
    pub fn begin_log_in(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        key: &NameKey,
    ) -> Result<(), Refusal> {
        let network = self.network(connection)?;
        self.fits(connection, key)?;
        self.attempts.begin_log_in(now, key, network).map_err(too_many)?;
        if self.log_ins.len() >= self.limits.log_ins {
            self.log_ins.withdraw_oldest();
        }
        self.log_ins.begin(connection, key, now + self.limits.log_in);
        Ok(())
    }

    /// The client of a log-in has no proof. The attempt stays counted.
    pub fn abandon_log_in(&mut self, connection: ConnectionId) {
        self.log_ins.end(connection);
    }

    /// The client of a log-in has proved the password of the account's record with this digest: it gets a session with
    /// this token. If the connection carries a session already, that one gets the token and the proof.
    ///
    /// # Errors
    /// Fails where the log-in took too long or the account was changed meanwhile, and where there is no place for a session.
    pub fn finish_log_in(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        name: Name,
        digest: [u8; 32],
        token: Secret,
    ) -> Result<Answer, Refusal> {
        let network = self.network(connection)?;
        if self.log_ins.end(connection).as_ref() != Some(name.key()) {
            return Err(Blame::AccountChanged.into());
        }
        self.attempts.succeed(now, name.key(), network);
        self.fits(connection, name.key())?;
        if let Some(session) = self.session_of(connection) {
            self.sessions.replace_token(session, &token);
            let session = self.sessions.get_mut(session).expect("the connection carries it");
            session.proved = (now, digest);
            let shown = session.name.shown().to_owned();
            return Ok(self.in_session(shown, token));
        }
        self.make_place(now, name.key())?;
        let until = now + self.limits.lease.min(self.limits.max_age);
        let shown = name.shown().to_owned();
        let key = name.key().clone();
        let (session, is_first) = self.sessions.begin(name, connection, &token, now, until, digest);
        self.carry(connection, session);
        if is_first {
            self.announce(&key, Presence::There);
        }
        Ok(self.in_session(shown, token))
    }

    /// Takes up a session on a connection. The connection that carried it before is informed.
    ///
    /// # Errors
    /// Fails where the token is of no session, and where the connection carries another session.
    pub fn resume(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        token: Secret,
    ) -> Result<Answer, Refusal> {
        let session = self.sessions.of_token(&token).ok_or(Blame::NoSession)?;
        let carried = self.session_of(connection);
        if carried.is_some_and(|carried| carried != session) {
            return Err(Blame::OtherSession.into());
        }
        if carried.is_none() {
            let old = self.sessions.get(session).and_then(|session| session.connection);
            if let Some(old) = old {
                self.leave(session);
                self.carry_none(old);
                self.pushes.push((old, Push::SessionEnded { why: EndOfSession::TakenUp }));
            }
            self.sessions.attach(session, connection, now);
            self.carry(connection, session);
        }
        self.heard_of(now, session);
        let shown = self.sessions.get(session).map(|session| session.name.shown().to_owned());
        Ok(self.in_session(shown.ok_or(Blame::NoSession)?, token))
    }

    /// The account that a session may change, and the digest of the record that its password was proved for.
    ///
    /// # Errors
    /// Fails without a session, and where the password was not proved of late.
    pub fn to_change(
        &mut self,
        now: Duration,
        connection: ConnectionId,
    ) -> Result<(Name, [u8; 32]), Refusal> {
        let id = self.session(now, connection)?;
        let session = self.sessions.get(id).ok_or(Blame::NoSession)?;
        let (at, digest) = session.proved;
        if now.saturating_sub(at) > self.limits.proof {
            return Err(Blame::ProofNeeded.into());
        }
        Ok((session.name.clone(), digest))
    }

    /// The store has a new record for an account, by a request of this connection: all other sessions of the account end,
    /// and log-ins with the old password fail.
    pub fn password_changed(&mut self, key: &NameKey, by: ConnectionId, digest: [u8; 32]) {
        self.log_ins.withdraw(key);
        for id in self.sessions.of_account(key).to_vec() {
            match self.sessions.get_mut(id) {
                Some(session) if session.connection == Some(by) => session.proved.1 = digest,
                _ => self.end_session(id, Some(EndOfSession::PasswordChanged)),
            }
        }
    }

    /// The store has no record for an account any more, by a request of this connection: all its sessions end.
    pub fn account_deleted(&mut self, key: &NameKey, by: ConnectionId) {
        self.log_ins.withdraw(key);
        for id in self.sessions.of_account(key).to_vec() {
            let is_own = self.sessions.get(id).is_some_and(|session| session.connection == Some(by));
            self.end_session(id, (!is_own).then_some(EndOfSession::AccountDeleted));
        }
    }

    /// Does a request that needs nothing but the directory.
    ///
    /// # Errors
    /// Says why it is not done. A request that needs more than the directory is out of order here.
    pub fn perform(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        request: Request,
    ) -> Result<Answer, Refusal> {
        if let Request::Resume { token } = request {
            return self.resume(now, connection, token);
        }
        let session = self.session(now, connection)?;
        match request {
            Request::StayAlive => Ok(Answer::Done),
            Request::WhoIsThere { after } => {
                let (names, more) = self.sessions.names(&after, Names::MOST);
                Ok(Answer::Users { names: Names::new(names), more: more.into() })
            }
            Request::Watch { name } => self.watch(connection, session, name),
            Request::Unwatch { name } => {
                let name = Name::new(&name).map_err(|_| Blame::InvalidName)?;
                self.watches.unwatch(session, name.key());
                Ok(Answer::Done)
            }
            Request::WaitForCalls => {
                self.waits(session, true);
                Ok(Answer::Done)
            }
            Request::StopWaiting => {
                self.waits(session, false);
                Ok(Answer::Done)
            }
            Request::Call { name, talk, contact } => self.call(now, session, &name, talk, contact),
            Request::Refuse { call } => self.refuse(session, call),
            Request::Cancel { call } => self.cancel(session, call),
            Request::LogOut => {
                self.end_session(session, None);
                Ok(Answer::Done)
            }
            Request::RegisterStart { .. }
            | Request::RegisterFinish { .. }
            | Request::LogInStart { .. }
            | Request::LogInFinish { .. }
            | Request::Resume { .. }
            | Request::Accept { .. }
            | Request::ChangePasswordStart { .. }
            | Request::ChangePasswordFinish { .. }
            | Request::DeleteAccount
            | Request::RegisterPassword { .. }
            | Request::LogInPassword { .. }
            | Request::RegisterScram { .. }
            | Request::ScramStart { .. }
            | Request::ScramFinish { .. } => Err(Blame::OutOfOrder.into()),
        }
    }

    /// Ends expired sessions, log-ins and calls.
    pub fn advance(&mut self, now: Duration) {
        while let Some(id) = self.sessions.late(now) {
            self.end_session(id, Some(EndOfSession::Expired));
        }
        while let Some(call) = self.calls.end_late(now) {
            self.call_ended(&call, EndOfCall::Unanswered, EndOfCall::Unanswered);
        }
        self.log_ins.advance(now);
        self.meetings.advance(now);
        self.attempts.advance(now);
    }

    /// The instant at which [`advance`](Self::advance) is needed, or one before it. Counts of attempts need none.
    pub fn next_deadline(&self) -> Option<Duration> {
        [self.sessions.next(), self.calls.next(), self.log_ins.next(), self.meetings.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The messages for clients since the last call, in their order.
    pub fn take_pushes(&mut self) -> Vec<(ConnectionId, Push)> {
        take(&mut self.pushes)
    }

    /// Whether a user is there.
    pub fn is_there(&self, key: &NameKey) -> bool {
        !self.sessions.of_account(key).is_empty()
    }

    /// How many entries the tables have.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            connections: self.connections.len(),
            sessions: self.sessions.len(),
            log_ins: self.log_ins.len(),
            watches: self.watches.len(),
            calls: self.calls.len(),
            meetings: self.meetings.len(),
            counts: self.attempts.len(),
        }
    }

    fn in_session(&self, name: String, token: Secret) -> Answer {
        let lease_ms = u32::try_from(self.limits.lease.as_millis()).unwrap_or(u32::MAX);
        Answer::InSession { token, name, lease_ms }
    }

    fn network(&self, connection: ConnectionId) -> Result<Network, Refusal> {
        let connection = self.connections.get(&connection).ok_or(Blame::NoSession)?;
        Ok(Network::of(connection.peer.ip()))
    }

    fn session_of(&self, connection: ConnectionId) -> Option<SessionId> {
        self.connections.get(&connection)?.session
    }

    /// The session of a connection that makes a request.
    fn session(&mut self, now: Duration, connection: ConnectionId) -> Result<SessionId, Refusal> {
        let session = self.session_of(connection).ok_or(Blame::NoSession)?;
        self.heard_of(now, session);
        Ok(session)
    }

    fn heard_of(&mut self, now: Duration, id: SessionId) {
        if let Some(session) = self.sessions.get(id) {
            let until = (now + self.limits.lease).min(session.born + self.limits.max_age);
            self.sessions.extend(id, until);
        }
    }

    /// Whether a connection may log in to an account: it carries no session of another.
    fn fits(&self, connection: ConnectionId, key: &NameKey) -> Result<(), Refusal> {
        let session = self.session_of(connection).and_then(|session| self.sessions.get(session));
        match session {
            Some(session) if session.name.key() != key => Err(Blame::OtherSession.into()),
            Some(_) | None => Ok(()),
        }
    }

    /// The status goes out as a push, like every change that follows: answers and pushes of different threads could overtake
    /// each other, pushes cannot.
    fn watch(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
        asked: String,
    ) -> Result<Answer, Refusal> {
        let name = Name::new(&asked).map_err(|_| Blame::InvalidName)?;
        if !self.watches.watch(session, name.key(), asked.clone(), self.limits.watches) {
            return Err(Blame::TooMuch.into());
        }
        let presence = if self.is_there(name.key()) { Presence::There } else { Presence::Away };
        self.pushes.push((connection, Push::Changed { name: asked, presence }));
        Ok(Answer::Done)
    }

    /// Makes a place for a session of an account.
    fn make_place(&mut self, now: Duration, key: &NameKey) -> Result<(), Refusal> {
        self.advance(now);
        let of_account = self.sessions.of_account(key);
        if of_account.len() >= self.limits.sessions_of_account.max(1) {
            self.end_session(of_account[0], Some(EndOfSession::Displaced));
        }
        if self.sessions.len() >= self.limits.sessions {
            let detached = self.sessions.first_detached().ok_or(Blame::Busy)?;
            self.end_session(detached, None);
        }
        Ok(())
    }

    fn carry(&mut self, connection: ConnectionId, session: SessionId) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.session = Some(session);
        }
    }

    fn carry_none(&mut self, connection: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.session = None;
        }
    }

    fn waits(&mut self, session: SessionId, waits: bool) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.waits = waits;
        }
    }

    /// Ends a session, and informs its client if there is a reason that the client did not give.
    fn end_session(&mut self, id: SessionId, why: Option<EndOfSession>) {
        self.leave(id);
        let Some((session, is_last)) = self.sessions.end(id) else { return };
        if let Some(connection) = session.connection {
            self.carry_none(connection);
            self.pushes.extend(why.map(|why| (connection, Push::SessionEnded { why })));
        }
        if is_last {
            self.announce(session.name.key(), Presence::Away);
        }
    }

    /// The client of a session can no longer be reached by messages: it watches no user, and its calls end.
    fn leave(&mut self, session: SessionId) {
        self.watches.end(session);
        for loss in self.calls.leave(session) {
            match loss {
                Loss::OfCaller(call) => self.call_ended(&call, EndOfCall::Cancelled, EndOfCall::Cancelled),
                Loss::OfCalled(call) => self.call_ended(&call, EndOfCall::Gone, EndOfCall::Gone),
            }
        }
    }

    /// Informs those who watch an account.
    fn announce(&mut self, key: &NameKey, presence: Presence) {
        for (watcher, name) in self.watches.of(key) {
            if let Some(connection) = self.sessions.get(*watcher).and_then(|session| session.connection) {
                self.pushes.push((connection, Push::Changed { name: name.clone(), presence }));
            }
        }
    }
}

fn too_many(retry: Duration) -> Refusal {
    Refusal { why: Blame::TooManyAttempts, retry }
}
