//! The common part of the loop over sockets for all kinds of connections: the ledger, the epoll instance, and when the loop
//! must not be late.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kendall_record::Outcome;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::connection::Stamps;
use crate::ledger::{EndedRequest, Failure, Ledger, OutgoingRequest, in_time};
use crate::plan::Plan;
use crate::poll::slots::Key;
use crate::poll::socket::Inbox;
use crate::request::Request;
use crate::schedule::Due;
use crate::summary::StampedBy;

/// The most reads of one connection in a row. A server that sends without end, or faster than the generator reads, must hold
/// up neither the next send nor a timeout.
pub(crate) const READS_AT_MOST: u32 = 16;

/// The state that the loop and its connections share.
pub(crate) struct Reactor<'l, 'a> {
    pub(crate) ledger: &'l mut Ledger<'a, Key>,
    pub(crate) plan: &'a Plan,
    pub(crate) stamped_by: StampedBy,
    pub(crate) epoll: OwnedFd,
    pub(crate) inbox: Inbox,
    /// Connections with bytes still to be written.
    pub(crate) urgent: u32,
    /// No request must be abandoned before this instant.
    pub(crate) expiry_ns: i64,
    /// Sends since the sockets were last polled.
    pub(crate) unheard: u32,
}

/// The connections of a run, of one kind.
pub(crate) trait Lines {
    /// Opens a part of the connections that must be open before the first request is due. Returns whether more are to be
    /// opened or answered.
    fn open(&mut self, reactor: &mut Reactor<'_, '_>) -> bool;

    /// Sends a request, now that it is due.
    fn begin(&mut self, reactor: &mut Reactor<'_, '_>, request: OutgoingRequest<Key>);

    /// Handles a socket that can be read or written, or has failed.
    fn ready(&mut self, reactor: &mut Reactor<'_, '_>, key: Key, flags: EventFlags);

    /// Abandons requests that have exceeded their timeout.
    fn expire(&mut self, reactor: &mut Reactor<'_, '_>, now_ns: i64);

    /// Ends every request in flight as unanswered.
    fn abandon(&mut self, reactor: &mut Reactor<'_, '_>);
}

/// A request in flight.
pub(crate) struct PendingRequest {
    pub(crate) due: Due,
    pub(crate) class: u32,
    pub(crate) stamps: Stamps,
    pub(crate) deadline_ns: i64,
}

impl Reactor<'_, '_> {
    /// Whether an event reports that the server has closed its side, or that the connection is broken.
    pub(crate) const ENDS: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

    /// The watched events. Edges, so that one registration serves for connecting, writing and reading.
    const WATCHED: EventFlags =
        EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

    /// Watches a socket.
    pub(crate) fn watch(&self, socket: impl AsFd, key: Key) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key.to_bits()), Self::WATCHED)?)
    }

    /// Has the kernel report a watched socket once more if it is still readable: it reports an edge only once, and reading
    /// was paused.
    pub(crate) fn watch_again(&self, socket: impl AsFd, key: Key) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(key.to_bits()), Self::WATCHED)?)
    }

    /// Begins a request now; returns its deadline.
    pub(crate) fn begun(&mut self, request: &mut OutgoingRequest<Key>, now_ns: i64) -> i64 {
        self.unheard += 1;
        self.ledger.begun(&mut request.due, request.start, now_ns);
        let timeout_ns = i64::try_from(self.plan.timeout.as_nanos()).unwrap_or(i64::MAX);
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        self.expiry_ns = self.expiry_ns.min(deadline_ns);
        deadline_ns
    }

    /// Ends a request for which no connection could be begun.
    pub(crate) fn fail(&mut self, due: Due, request: &Request, error: &io::Error, now_ns: i64) {
        let stamps = Stamps { completed: Some(now_ns), ..Stamps::default() };
        let (class, failure) = (request.class, Failure::of(error));
        self.ledger.refused(error);
        let outcome = Outcome::Refused;
        self.ledger.end(EndedRequest { due, class, port: 0, stamps, outcome, failure }, None, now_ns);
    }

    /// Ends a request, and takes back its connection for the next, if it left one.
    pub(crate) fn end(
        &mut self,
        request: PendingRequest,
        port: u16,
        (outcome, failure): (Outcome, Failure),
        connection: Option<Key>,
        now_ns: i64,
    ) {
        let PendingRequest { due, class, mut stamps, deadline_ns } = request;
        stamps.completed = match outcome {
            Outcome::Answered | Outcome::Wrong | Outcome::Refused => stamps.completed.or(Some(now_ns)),
            Outcome::TimedOut => Some(now_ns),
            Outcome::Unanswered => None,
        };
        let outcome = in_time(outcome, &stamps, deadline_ns);
        self.ledger.end(EndedRequest { due, class, port, stamps, outcome, failure }, connection, now_ns);
    }
}
