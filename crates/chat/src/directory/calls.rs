//! Calls, from the first ring to their end. What two clients say to each other after that, the directory does not see.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::SessionId;
use crate::protocol::Contact;

/// A call that rings.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) caller: SessionId,
    /// How the caller can be reached.
    pub(super) contact: Contact,
    /// The sessions at which it rings, at least one.
    pub(super) ringing: Vec<SessionId>,
    until: Duration,
}

/// What the end of a session does to a call.
#[derive(Debug)]
pub(super) enum Loss {
    /// The caller is gone, and the call is over.
    OfCaller(Call),
    /// The last client at which it rang is gone, and it is over.
    OfCalled(Call),
}

/// The calls that ring.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: HashMap<u64, Call>,
    /// The calls of each session, as caller and called.
    of_session: HashMap<SessionId, Vec<u64>>,
    order: BTreeSet<(Duration, u64)>,
    last: u64,
}

impl Calls {
    /// A call begins to ring. The sessions at which it rings are not empty.
    pub(super) fn begin(
        &mut self,
        caller: SessionId,
        contact: Contact,
        ringing: Vec<SessionId>,
        until: Duration,
    ) -> u64 {
        self.last += 1;
        let id = self.last;
        for session in ringing.iter().chain([&caller]) {
            self.of_session.entry(*session).or_default().push(id);
        }
        self.order.insert((until, id));
        self.calls.insert(id, Call { id, caller, contact, ringing, until });
        id
    }

    /// Ends a call that rings at a session.
    pub(super) fn end_rung(&mut self, id: u64, at: SessionId) -> Option<Call> {
        if self.calls.get(&id)?.ringing.contains(&at) { self.end(id) } else { None }
    }

    /// Ends a call that a session has begun.
    pub(super) fn end_begun(&mut self, id: u64, by: SessionId) -> Option<Call> {
        if self.calls.get(&id)?.caller == by { self.end(id) } else { None }
    }

    /// Ends the first call whose time is over.
    pub(super) fn end_late(&mut self, now: Duration) -> Option<Call> {
        let &(until, id) = self.order.first()?;
        if until <= now { self.end(id) } else { None }
    }

    /// A session takes part in no call any more. Returns the calls that are over by this.
    pub(super) fn leave(&mut self, session: SessionId) -> Vec<Loss> {
        let mut losses = Vec::new();
        for id in self.of_session.get(&session).cloned().unwrap_or_default() {
            let Some(call) = self.calls.get_mut(&id) else { continue };
            if call.caller == session {
                losses.extend(self.end(id).map(Loss::OfCaller));
            } else if call.ringing.len() == 1 {
                losses.extend(self.end(id).map(Loss::OfCalled));
            } else {
                call.ringing.retain(|one| *one != session);
                self.forget(session, id);
            }
        }
        losses
    }

    /// How many calls a session has begun, or ring at it.
    pub(super) fn count(&self, session: SessionId) -> usize {
        self.of_session.get(&session).map_or(0, Vec::len)
    }

    /// How many ring.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// When the next one has rung for too long.
    pub(super) fn next(&self) -> Option<Duration> {
        self.order.first().map(|&(until, _)| until)
    }

    fn end(&mut self, id: u64) -> Option<Call> {
        let call = self.calls.remove(&id)?;
        self.order.remove(&(call.until, id));
        for session in call.ringing.iter().chain([&call.caller]) {
            self.forget(*session, id);
        }
        Some(call)
    }

    fn forget(&mut self, session: SessionId, id: u64) {
        if let Some(calls) = self.of_session.get_mut(&session) {
            calls.retain(|call| *call != id);
            if calls.is_empty() {
                self.of_session.remove(&session);
            }
        }
    }
}
