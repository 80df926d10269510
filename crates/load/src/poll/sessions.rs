//! Connections that are sessions of users: each carries any number of requests, whose answers may arrive on another.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use rustix::event::epoll::EventFlags;

use crate::connection::Stamps;
use crate::dialog::ConnectionKind;
use crate::ledger::{Failure, OutgoingRequest};
use crate::poll::reactor::{Lines, PendingRequest, Reactor};
use crate::poll::session_line::{LineEvent, Reading, SessionLine};
use crate::poll::slots::{Key, Slots};
use crate::poll::socket::Inbox;
use crate::session::{SessionRequest, Sessions};

/// The most sessions that are being opened at the same time before the run: fewer than a server's backlog of
/// connections.
const OPENING_AT_MOST: usize = 64;

/// The sessions of a run.
pub(crate) struct SessionLines<'a> {
    to: SocketAddr,
    kind: ConnectionKind,
    sessions: &'a dyn Sessions,
    slots: Slots<SessionLine>,
    /// The connection of each user, if there is one.
    of_user: Vec<Option<Key>>,
    /// The first user whose session is yet to be opened.
    next_user: usize,
    /// Requests in flight, by the keys of their answers.
    pending: HashMap<u64, SessionPending>,
    events: Vec<LineEvent>,
}

/// A request in flight, and its sender.
struct SessionPending {
    request: PendingRequest,
    user: u32,
    port: u16,
}

impl<'a> SessionLines<'a> {
    pub(crate) fn new(to: SocketAddr, kind: ConnectionKind, sessions: &'a dyn Sessions) -> Self {
        Self {
            to,
            kind,
            sessions,
            slots: Slots::default(),
            of_user: vec![None; sessions.users().max(1) as usize],
            next_user: 0,
            pending: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Opens the session of a user.
    fn connect(&mut self, reactor: &mut Reactor<'_, '_>, user: u32) -> io::Result<Key> {
        let session = self.sessions.session(user);
        let line = SessionLine::connect(&self.to, &self.kind, (user, session), reactor.stamped_by)?;
        let key = self.slots.insert(line);
        let line = self.slots.get(key).expect("it was just put there");
        if let Err(error) = reactor.watch(&*line, key) {
            self.slots.remove(key);
            return Err(error);
        }
        reactor.urgent += u32::from(line.is_urgent());
        reactor.ledger.opened();
        self.of_user[user as usize] = Some(key);
        Ok(key)
    }

    /// Calls a step of a connection, and handles its events. Returns its result if the connection is still open.
    fn step<T>(
        &mut self,
        reactor: &mut Reactor<'_, '_>,
        key: Key,
        act: impl FnOnce(&mut SessionLine, &mut Inbox, &mut Vec<LineEvent>) -> io::Result<T>,
    ) -> Option<T> {
        // None if a timer has fired, or the connection has been closed since.
        let line = self.slots.get(key)?;
        let was_urgent = line.is_urgent();
        let mut events = std::mem::take(&mut self.events);
        let done = act(line, &mut reactor.inbox, &mut events);
        reactor.urgent = reactor.urgent - u32::from(was_urgent) + u32::from(line.is_urgent());
        for event in events.drain(..) {
            self.take(reactor, event);
        }
        self.events = events;
        done.map_err(|error| self.close(reactor, key, &error)).ok()
    }

    fn take(&mut self, reactor: &mut Reactor<'_, '_>, event: LineEvent) {
        match event {
            LineEvent::Sent { key, at_ns, bytes } => {
                if let Some(pending) = self.pending.get_mut(&key) {
                    let stamps = &mut pending.request.stamps;
                    (stamps.sent, stamps.bytes_out) = (Some(at_ns), bytes);
                    reactor.ledger.sent(at_ns);
                }
            }
            LineEvent::Answer { key, outcome, first_byte_ns, completed_ns, bytes } => {
                // The answer to an abandoned request, or one before its request, answers nothing.
                let is_out =
                    self.pending.get(&key).is_some_and(|pending| pending.request.stamps.sent.is_some());
                let Some(mut pending) = is_out.then(|| self.pending.remove(&key)).flatten() else { return };
                let stamps = &mut pending.request.stamps;
                // The conversion between two clocks must not make an answer come before its request.
                let sent = stamps.sent;
                stamps.first_byte = sent.max(Some(first_byte_ns));
                stamps.completed = sent.max(Some(completed_ns));
                stamps.bytes_in = bytes;
                let SessionPending { request, port, .. } = pending;
                reactor.end(request, port, (outcome, Failure::NotOurs), None, now_ns());
            }
        }
    }

    /// Closes a session, which ends the requests that its user sent.
    fn close(&mut self, reactor: &mut Reactor<'_, '_>, key: Key, why: &io::Error) {
        let Some(line) = self.slots.remove(key) else { return };
        reactor.urgent -= u32::from(line.is_urgent());
        self.of_user[line.user as usize] = None;
        let failure = Failure::of(why);
        let now = now_ns();
        let lost = |pending: &SessionPending| pending.user == line.user;
        let keys: Vec<u64> = self.pending.iter().filter(|(_, one)| lost(one)).map(|(&key, _)| key).collect();
        if !keys.is_empty() || failure == Failure::Ours {
            reactor.ledger.refused(why);
        }
        for key in keys {
            if let Some(SessionPending { request, port, .. }) = self.pending.remove(&key) {
                reactor.end(request, port, (Outcome::Refused, failure), None, now);
            }
        }
    }
}

impl Lines for SessionLines<'_> {
    fn open(&mut self, reactor: &mut Reactor<'_, '_>) -> bool {
        let mut opening = self.slots.iter().filter(|(_, line)| !line.is_open()).count();
        while opening < OPENING_AT_MOST && self.next_user < self.of_user.len() {
            // A session that cannot be opened is retried for its user's first request, which then reports the
            // reason.
            if self.connect(reactor, self.next_user as u32).is_ok() {
                opening += 1;
            }
            self.next_user += 1;
        }
        opening > 0
    }

    fn begin(&mut self, reactor: &mut Reactor<'_, '_>, mut request: OutgoingRequest<Key>) {
        let now = now_ns();
        let deadline_ns = reactor.begun(&mut request, now);
        let OutgoingRequest { due, request, .. } = request;
        let users = self.of_user.len();
        let user = due.user.unwrap_or_else(|| self.sessions.sender(due.index) as usize) % users;
        let key = match self.of_user[user].map_or_else(|| self.connect(reactor, user as u32), Ok) {
            Ok(key) => key,
            Err(error) => return reactor.fail(due, &request, &error, now),
        };
        let user = user as u32;
        let SessionRequest { key: answer, bytes } = self.sessions.message(due.index, user);
        let port = self.slots.get(key).map_or(0, |line| line.port);
        let pending = PendingRequest { due, class: request.class, stamps: Stamps::default(), deadline_ns };
        let before = self.pending.insert(answer, SessionPending { request: pending, user, port });
        assert!(
            before.is_none(),
            "the requests of a workload have different keys, and {answer} is out already"
        );
        self.step(reactor, key, |line, _, events| {
            line.queue(answer, bytes)?;
            line.write(events)
        });
    }

    fn ready(&mut self, reactor: &mut Reactor<'_, '_>, key: Key, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.step(reactor, key, |line, _, events| line.write(events));
        }
        if flags.intersects(Reactor::ENDS | EventFlags::IN)
            && self.step(reactor, key, SessionLine::read) == Some(Reading::Paused)
            && let Some(line) = self.slots.get(key)
            && let Err(error) = reactor.watch_again(&*line, key)
        {
            self.close(reactor, key, &error);
        }
    }

    fn expire(&mut self, reactor: &mut Reactor<'_, '_>, now_ns: i64) {
        let is_late = |one: &SessionPending| one.request.deadline_ns <= now_ns;
        let late: Vec<u64> =
            self.pending.iter().filter(|(_, one)| is_late(one)).map(|(&key, _)| key).collect();
        for key in late {
            if let Some(SessionPending { request, port, .. }) = self.pending.remove(&key) {
                reactor.end(request, port, (Outcome::TimedOut, Failure::NotOurs), None, now_ns);
            }
        }
        let next = self.pending.values().map(|one| one.request.deadline_ns).min();
        reactor.expiry_ns = next.unwrap_or(i64::MAX);
    }

    fn abandon(&mut self, reactor: &mut Reactor<'_, '_>) {
        let now = now_ns();
        for (_, SessionPending { request, port, .. }) in self.pending.drain() {
            reactor.end(request, port, (Outcome::Unanswered, Failure::NotOurs), None, now);
        }
        let keys: Vec<Key> = self.slots.iter().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.slots.remove(key)).for_each(SessionLine::reset);
    }
}
