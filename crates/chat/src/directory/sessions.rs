//! The sessions and their tokens: which there are, whose they are, and which connection carries each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{ConnectionId, SessionId};
use crate::name::{Name, NameKey};
use crate::protocol::Secret;

/// The hash of a token. The token itself is not kept: a copy of the server's memory takes up no session.
type TokenHash = [u8; 32];

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) name: Name,
    pub(super) connection: Option<ConnectionId>,
    pub(super) born: Duration,
    /// The last proof of the password, and the digest of the record that it was for.
    pub(super) proved: (Duration, [u8; 32]),
    /// Whether calls ring here.
    pub(super) waits: bool,
    token: TokenHash,
    /// The instant at which the session ends, unless the client is heard of before.
    until: Duration,
    /// The session's entry in the order of ends; at most `until`, which requests move without touching the
    /// order.
    listed: Duration,
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: HashMap<SessionId, Session>,
    tokens: HashMap<TokenHash, SessionId>,
    /// The sessions of each account, the oldest first.
    of_account: HashMap<NameKey, Vec<SessionId>>,
    /// The names of the accounts that have sessions, in their order.
    names: BTreeMap<Arc<str>, NameKey>,
    ends: BTreeSet<(Duration, SessionId)>,
    /// Sessions without a connection, by the end of each.
    detached: BTreeSet<(Duration, SessionId)>,
    last: u64,
}

impl Sessions {
    /// A new session on a connection. Returns whether it is the first of its account.
    pub(super) fn begin(
        &mut self,
        name: Name,
        connection: ConnectionId,
        token: &Secret,
        now: Duration,
        until: Duration,
        digest: [u8; 32],
    ) -> (SessionId, bool) {
        self.last += 1;
        let id = SessionId(self.last);
        let token = hash(token);
        self.tokens.insert(token, id);
        self.ends.insert((until, id));
        let of_account = self.of_account.entry(name.key().clone()).or_default();
        of_account.push(id);
        let is_first = of_account.len() == 1;
        if is_first {
            self.names.insert(name.shown().into(), name.key().clone());
        }
        let session = Session {
            name,
            connection: Some(connection),
            born: now,
            proved: (now, digest),
            waits: false,
            token,
            until,
            listed: until,
        };
        self.sessions.insert(id, session);
        (id, is_first)
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// The session of a token.
    pub(super) fn of_token(&self, token: &Secret) -> Option<SessionId> {
        self.tokens.get(&hash(token)).copied()
    }

    /// The sessions of an account, the oldest first.
    pub(super) fn of_account(&self, key: &NameKey) -> &[SessionId] {
        self.of_account.get(key).map_or(&[], Vec::as_slice)
    }

    /// A session has a new token; the old one is worthless.
    pub(super) fn replace_token(&mut self, id: SessionId, token: &Secret) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.tokens.remove(&session.token);
        session.token = hash(token);
        self.tokens.insert(session.token, id);
    }

    /// A session now ends at this instant, or is heard of again before.
    pub(super) fn extend(&mut self, id: SessionId, until: Duration) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.until = until;
        if until < session.listed {
            self.ends.remove(&(session.listed, id));
            session.listed = until;
            self.ends.insert((until, id));
        }
    }

    /// A connection carries a session, which ends at this instant.
    pub(super) fn attach(&mut self, id: SessionId, connection: ConnectionId, until: Duration) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.detached.remove(&(session.until, id));
        session.connection = Some(connection);
        self.extend(id, until);
    }

    /// No connection carries a session any more, which ends at this instant or before.
    pub(super) fn detach(&mut self, id: SessionId, until: Duration) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let until = until.min(session.until);
        (session.connection, session.waits) = (None, false);
        self.detached.insert((until, id));
        self.extend(id, until);
    }

    /// Ends a session. Returns it, and whether it was the last of its account.
    pub(super) fn end(&mut self, id: SessionId) -> Option<(Session, bool)> {
        let session = self.sessions.remove(&id)?;
        self.tokens.remove(&session.token);
        self.ends.remove(&(session.listed, id));
        self.detached.remove(&(session.until, id));
        let key = session.name.key();
        let of_account = self.of_account.get_mut(key).expect("each session is listed under its account");
        of_account.retain(|one| *one != id);
        let is_last = of_account.is_empty();
        if is_last {
            self.of_account.remove(key);
            self.names.remove(session.name.shown());
        }
        Some((session, is_last))
    }

    /// The first session whose end has come.
    pub(super) fn late(&mut self, now: Duration) -> Option<SessionId> {
        loop {
            let &(listed, id) = self.ends.first()?;
            if listed > now {
                return None;
            }
            let session = self.sessions.get_mut(&id).expect("each end is of a session");
            if session.until <= now {
                return Some(id);
            }
            self.ends.remove(&(listed, id));
            session.listed = session.until;
            self.ends.insert((session.until, id));
        }
    }

    /// The session without a connection that ends first.
    pub(super) fn first_detached(&self) -> Option<SessionId> {
        self.detached.first().map(|&(_, id)| id)
    }

    /// The names of accounts that have sessions, behind a name, and whether there are more than this number.
    pub(super) fn names(&self, after: &str, most: usize) -> (Vec<String>, bool) {
        let mut behind = self.names.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let names = behind.by_ref().take(most).map(|(name, _)| name.to_string()).collect();
        (names, behind.next().is_some())
    }

    /// The number of sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// An instant at or before the next end.
    pub(super) fn next(&self) -> Option<Duration> {
        self.ends.first().map(|&(listed, _)| listed)
    }
}

fn hash(token: &Secret) -> TokenHash {
    Sha256::digest(token.0).into()
}
