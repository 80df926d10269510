//! How two clients meet: a call rings at all clients of a user that wait for calls, and the first to accept gets the caller's
//! address and key as the caller gets its.

use std::net::SocketAddr;
use std::time::Duration;

use kendall_talk::relay::{PairId, Token};

use super::calls::Call;
use super::{ConnectionId, Directory, Refusal, SessionId, too_many};
use crate::name::Name;
use crate::protocol::{Answer, Blame, Contact, EndOfCall, Push, Reachable};

/// How the two sides of an accepted call announce themselves at the meeting point.
#[derive(Clone, Copy, Debug)]
pub struct Introduction {
    /// The number of the pair at the meeting point.
    pub pair: PairId,
    /// The caller's token and that of the called side.
    pub tokens: [Token; 2],
}

impl Directory {
    pub(super) fn call(
        &mut self,
        now: Duration,
        caller: SessionId,
        name: &str,
        talk: [u8; 16],
        contact: Contact,
    ) -> Result<Answer, Refusal> {
        let name = Name::new(name).map_err(|_| Blame::InvalidName)?;
        if self.calls.count(caller) >= self.limits.calls {
            return Err(Blame::TooMuch.into());
        }
        let from = self.sessions.get(caller).ok_or(Blame::NoSession)?.name.clone();
        // Those to which it was called do not count: strangers could use them up.
        if let Some(attempts) = self.limits.attempts
            && let Some(until) = self.meetings.full_until(from.key(), attempts.meetings)
        {
            return Err(too_many(until.saturating_sub(now)));
        }
        let may_ring = |&session: &SessionId| {
            let waits = self.sessions.get(session).is_some_and(|session| session.waits);
            waits && session != caller && self.calls.count(session) < self.limits.calls
        };
        let ringing: Vec<SessionId> =
            self.sessions.of_account(name.key()).iter().copied().filter(may_ring).collect();
        if ringing.is_empty() {
            return Err(Blame::Unreachable.into());
        }
        let call = self.calls.begin(caller, contact, ringing.clone(), now + self.limits.ring);
        for session in ringing {
            self.push(session, Push::Incoming { call, name: from.shown().to_owned(), talk });
        }
        Ok(Answer::Ringing { call })
    }

    /// Accepts a call for a client. Both sides must meet as this introduction says.
    ///
    /// # Errors
    /// Says why it is not done; the introduction is then good for nothing.
    pub fn accept(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        call: u64,
        contact: Contact,
        introduction: Introduction,
    ) -> Result<Answer, Refusal> {
        let session = self.session(now, connection)?;
        if self.meetings.len() >= self.limits.meetings {
            return Err(Blame::Busy.into());
        }
        let call = self.calls.end_rung(call, session).ok_or(Blame::NoSuchCall)?;
        // A caller without a connection has no call; see `leave`.
        let caller = self.sessions.get(call.caller).ok_or(Blame::NoSuchCall)?;
        let caller_connection = caller.connection.ok_or(Blame::NoSuchCall)?;
        let caller_key = caller.name.key().clone();
        let reachable = |session: SessionId, connection: ConnectionId, contact: Contact| {
            Some(Reachable {
                name: self.sessions.get(session)?.name.shown().to_owned(),
                contact,
                seen_from: self.connections.get(&connection)?.peer,
            })
        };
        let peer =
            reachable(call.caller, caller_connection, call.contact.clone()).ok_or(Blame::NoSuchCall)?;
        let called = reachable(session, connection, contact).ok_or(Blame::NoSession)?;
        let Introduction { pair, tokens: [for_caller, for_called] } = introduction;
        let connections = [caller_connection, connection];
        self.meetings.begin(pair, call.id, caller_key, connections, now + self.limits.meeting);
        self.push(call.caller, Push::Accepted { call: call.id, peer: called, token: for_caller });
        self.elsewhere(&call, session);
        Ok(Answer::Joined { peer, token: for_called })
    }

    /// Notes that one side of a pair, 0 for the caller's, has announced itself at the meeting point from this address. The
    /// other side is informed.
    pub fn seen(&mut self, pair: PairId, side: usize, address: SocketAddr) {
        if let Some((call, other)) = self.meetings.seen(pair, side, address) {
            self.pushes.push((other, Push::PeerSeen { call, address }));
        }
    }

    pub(super) fn refuse(&mut self, session: SessionId, call: u64) -> Result<Answer, Refusal> {
        let call = self.calls.end_rung(call, session).ok_or(Blame::NoSuchCall)?;
        self.push(call.caller, Push::CallEnded { call: call.id, why: EndOfCall::Refused });
        self.elsewhere(&call, session);
        Ok(Answer::Done)
    }

    pub(super) fn cancel(&mut self, session: SessionId, call: u64) -> Result<Answer, Refusal> {
        let call = self.calls.end_begun(call, session).ok_or(Blame::NoSuchCall)?;
        for rung in &call.ringing {
            self.push(*rung, Push::CallEnded { call: call.id, why: EndOfCall::Cancelled });
        }
        Ok(Answer::Done)
    }

    /// Informs the caller of a call and the clients at which it rang that it is over.
    pub(super) fn call_ended(&mut self, call: &Call, for_caller: EndOfCall, for_called: EndOfCall) {
        self.push(call.caller, Push::CallEnded { call: call.id, why: for_caller });
        for rung in &call.ringing {
            self.push(*rung, Push::CallEnded { call: call.id, why: for_called });
        }
    }

    /// Informs the clients at which a call rang, but for the one that decided, that it is over.
    fn elsewhere(&mut self, call: &Call, decided: SessionId) {
        for rung in call.ringing.iter().filter(|rung| **rung != decided) {
            self.push(*rung, Push::CallEnded { call: call.id, why: EndOfCall::Elsewhere });
        }
    }

    /// A message for the client of a session, if it has a connection.
    fn push(&mut self, session: SessionId, push: Push) {
        if let Some(connection) = self.sessions.get(session).and_then(|session| session.connection) {
            self.pushes.push((connection, push));
        }
    }
}

#[cfg(test)]
mod tests {
    use kendall_talk::relay::Pairs;

    use super::*;
    use crate::directory::{AttemptLimits, Limits};
    use crate::protocol::{Request, Secret};

    const CALLERS: [(ConnectionId, &str); 3] =
        [(ConnectionId(0), "ann"), (ConnectionId(1), "ann"), (ConnectionId(2), "bob")];

    /// A directory in which ann waits for calls at connection 1.
    fn directory() -> Directory {
        let mut directory = Directory::new(Limits::default());
        for (connection, name) in CALLERS {
            let (name, token) = (Name::new(name).unwrap(), Secret([connection.0 as u8; 32]));
            directory.connect(connection, ([127, 0, 0, 1], 1).into());
            directory.begin_log_in(Duration::ZERO, connection, name.key()).unwrap();
            directory.finish_log_in(Duration::ZERO, connection, name, [0; 32], token).unwrap();
        }
        directory.perform(Duration::ZERO, CALLERS[1].0, Request::WaitForCalls).unwrap();
        directory
    }

    #[test]
    fn an_account_has_a_bounded_number_of_meetings_and_keeps_no_other_from_its_own() {
        let (mut directory, mut pairs) = (directory(), Pairs::new(Default::default()));
        let contact = || Contact::unlisted([1; 32]);
        let mut meet = |now: Duration, (caller, _): (ConnectionId, &str)| {
            directory.advance(now);
            let request = Request::Call { name: "ann".to_owned(), talk: [0; 16], contact: contact() };
            let Answer::Ringing { call } = directory.perform(now, caller, request)? else { panic!() };
            let tokens = [[0; 16], [1; 16]];
            let introduction = Introduction { pair: pairs.open(now, tokens).unwrap(), tokens };
            directory.accept(now, CALLERS[1].0, call, contact(), introduction)
        };
        let second = Duration::from_secs(1);
        for _ in 0..AttemptLimits::default().meetings {
            meet(second, CALLERS[0]).unwrap();
        }
        let refused = meet(2 * second, CALLERS[0]).unwrap_err();
        assert_eq!(refused, too_many(Limits::default().meeting - second));
        meet(2 * second, CALLERS[2]).unwrap();
        meet(2 * second + refused.retry, CALLERS[0]).unwrap();
    }
}
