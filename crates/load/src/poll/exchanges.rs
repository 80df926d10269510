//! Connections that carry one request at a time.

use std::io;

use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use rustix::event::epoll::EventFlags;

use crate::dialog::{Dialogs, Wire};
use crate::ledger::{Failure, OutgoingRequest};
use crate::poll::carrier::{Carrier, Hangup, Step};
use crate::poll::reactor::{Lines, PendingRequest, Reactor};
use crate::poll::slots::{Key, Slots};
use crate::poll::socket::Inbox;
use crate::request::Reuse;

/// The connections of a run that carry one request at a time.
pub(crate) struct Exchanges<'a> {
    wire: &'a Wire,
    dialogs: &'a dyn Dialogs,
    slots: Slots<Carrier>,
}

impl Lines for Exchanges<'_> {
    fn open(&mut self, _: &mut Reactor<'_, '_>) -> bool {
        false
    }

    fn begin(&mut self, reactor: &mut Reactor<'_, '_>, mut request: OutgoingRequest<Key>) {
        // A request is passed to the kernel at once if its connection is open, so one reading of the clock does for
        // both.
        let now = now_ns();
        let deadline_ns = reactor.begun(&mut request, now);
        let key = match request.on.map_or_else(|| self.connect(reactor), Ok) {
            Ok(key) => key,
            Err(error) => return reactor.fail(request.due, &request.request, &error, now_ns()),
        };
        self.step(reactor, key, |carrier, _| {
            carrier.load(request, deadline_ns);
            Step::Wait
        });
        self.step(reactor, key, |carrier, _| carrier.write());
    }

    fn ready(&mut self, reactor: &mut Reactor<'_, '_>, key: Key, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            let write = |carrier: &mut Carrier, _: &mut Inbox| {
                if carrier.is_urgent() { carrier.write() } else { Step::Wait }
            };
            self.step(reactor, key, write);
        }
        let ended = flags.intersects(Reactor::ENDS);
        if ended || flags.contains(EventFlags::IN) {
            let hangup = if ended { Hangup::Yes } else { Hangup::No };
            self.step(reactor, key, |carrier, inbox| carrier.read(inbox, hangup));
        }
    }

    fn expire(&mut self, reactor: &mut Reactor<'_, '_>, now_ns: i64) {
        let deadlines = || self.slots.iter().filter_map(|(key, one)| Some((key, one.deadline_ns()?)));
        let late: Vec<Key> = deadlines().filter(|&(_, at_ns)| at_ns <= now_ns).map(|(key, _)| key).collect();
        let next = deadlines().map(|(_, at_ns)| at_ns).filter(|&at_ns| at_ns > now_ns).min();
        reactor.expiry_ns = next.unwrap_or(i64::MAX);
        for key in late {
            self.close(reactor, key, Outcome::TimedOut, Failure::NotOurs);
        }
    }

    fn abandon(&mut self, reactor: &mut Reactor<'_, '_>) {
        let keys: Vec<Key> = self.slots.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.close(reactor, key, Outcome::Unanswered, Failure::NotOurs);
        }
    }
}

impl<'a> Exchanges<'a> {
    pub(crate) fn new(wire: &'a Wire, dialogs: &'a dyn Dialogs) -> Self {
        Self { wire, dialogs, slots: Slots::default() }
    }

    /// Opens a connection.
    fn connect(&mut self, reactor: &mut Reactor<'_, '_>) -> io::Result<Key> {
        let carrier = Carrier::connect(self.wire, self.dialogs, reactor.stamped_by)?;
        let key = self.slots.insert(carrier);
        let carrier = self.slots.get(key).expect("it was just put there");
        match reactor.watch(&*carrier, key) {
            Ok(()) => {
                // Over TLS the client sends first.
                reactor.urgent += u32::from(carrier.is_urgent());
                Ok(key)
            }
            Err(error) => {
                self.slots.remove(key);
                Err(error)
            }
        }
    }

    /// Calls a step of a connection, and handles its result.
    fn step(
        &mut self,
        reactor: &mut Reactor<'_, '_>,
        key: Key,
        act: impl FnOnce(&mut Carrier, &mut Inbox) -> Step,
    ) {
        // None if a timer has fired, or the connection has been closed since.
        let Some(carrier) = self.slots.get(key) else { return };
        let was_urgent = carrier.is_urgent();
        let was_sent = carrier.sent_ns();
        let step = act(carrier, &mut reactor.inbox);
        reactor.urgent = reactor.urgent - u32::from(was_urgent) + u32::from(carrier.is_urgent());
        if let (None, Some(at_ns)) = (was_sent, carrier.sent_ns()) {
            reactor.ledger.sent(at_ns);
        }
        match step {
            Step::Wait => {}
            Step::Paused => {
                if let Err(error) = reactor.watch_again(&*carrier, key) {
                    reactor.ledger.refused(&error);
                    self.close(reactor, key, Outcome::Refused, Failure::of(&error));
                }
            }
            Step::Ended(outcome, Reuse::Keep) => {
                let (out, port) = (carrier.take_out(), carrier.port);
                end(reactor, out, port, (outcome, Failure::NotOurs), Some(key));
            }
            Step::Ended(outcome, Reuse::Close) => self.close(reactor, key, outcome, Failure::NotOurs),
            Step::Broken(outcome, error) => {
                let failure = error.as_ref().map_or(Failure::NotOurs, Failure::of);
                if let Some(error) = error.filter(|_| carrier.deadline_ns().is_some()) {
                    reactor.ledger.refused(&error);
                }
                self.close(reactor, key, outcome, failure);
            }
        }
    }

    /// Closes a connection, which ends the request that it carries.
    fn close(&mut self, reactor: &mut Reactor<'_, '_>, key: Key, outcome: Outcome, failure: Failure) {
        let Some(mut carrier) = self.slots.remove(key) else { return };
        reactor.urgent -= u32::from(carrier.is_urgent());
        let (out, port) = (carrier.take_out(), carrier.port);
        match (&out, outcome) {
            (None, _) => reactor.ledger.lost(|idle| *idle == key),
            (_, Outcome::TimedOut | Outcome::Unanswered) => carrier.reset(),
            _ => {}
        }
        end(reactor, out, port, (outcome, failure), None);
    }
}

fn end(
    reactor: &mut Reactor<'_, '_>,
    out: Option<PendingRequest>,
    port: u16,
    how: (Outcome, Failure),
    connection: Option<Key>,
) {
    if let Some(out) = out {
        reactor.end(out, port, how, connection, now_ns());
    }
}
