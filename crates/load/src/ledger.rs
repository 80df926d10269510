//! The ledger of a run: which request is due, which waits for a connection, which has one, and how each ended.
//!
//! No I/O and no clock: instants are arguments, by [`kendall_record::clock::now_ns`]. Two drivers move the bytes, one
//! over its own sockets ([`crate::poll`]) and one over futures ([`crate::task`]); `C` is their type of a connection.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kendall_record::{Outcome, RequestRow};

use crate::connection::Stamps;
use crate::plan::Plan;
use crate::progress::{Counts, Progress, Recent};
use crate::request::Request;
use crate::rows::RowSink;
use crate::schedule::{Budget, Due, Schedule, THINK_UNANSWERED_NS};
use crate::share::Share;
use crate::summary::ThreadUse;
use crate::tally::{ClosedLedger, Span, Tally};
use crate::workload::Workload;

/// The most requests that wait for a connection, at 32 bytes each. A server that is that far behind is overloaded in
/// any case, and the generator must not run out of memory.
const WAITING_AT_MOST: usize = 1_000_000;

/// The least silence after which a run that is over abandons the requests in flight.
const DRAIN_AT_LEAST_NS: i64 = 2_000_000_000;

/// The interval at which a driver checks whether to stop.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The part of a run that one thread makes, and where it reports.
pub(crate) struct Part<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) share: Share,
    /// The number of the thread in this process.
    pub(crate) thread: u32,
    pub(crate) budget: &'a Budget,
    pub(crate) workload: &'a dyn Workload,
    pub(crate) progress: &'a Progress,
    pub(crate) sink: RowSink,
}

pub(crate) struct Ledger<'a, C> {
    plan: &'a Plan,
    share: Share,
    /// The most connections of the thread.
    most_connections: u32,
    workload: &'a dyn Workload,
    progress: &'a Progress,
    sink: RowSink,
    schedule: Schedule<'a>,
    start_ns: i64,
    /// The request with the schedule's next number, created before it is due.
    prepared: Option<Request>,
    /// Requests that are due while every allowed connection is busy.
    waiting: VecDeque<Due>,
    connections: Connections<C>,
    in_flight: u64,
    /// When the run first waited for the requests in flight.
    over_ns: Option<i64>,
    /// The instant at which a request last ended.
    ended_ns: i64,
    tally: Tally,
    recent: Recent,
}

/// The connections of a run.
enum Connections<C> {
    /// Connections that carry one request at a time; further requests wait for one.
    Exclusive {
        idle: Vec<C>,
        /// Connections that are open or being opened, idle ones included.
        open: u32,
    },
    /// Users' sessions, which carry any number of requests and belong to the driver.
    Sessions,
}

/// A request to begin.
pub(crate) struct OutgoingRequest<C> {
    pub(crate) due: Due,
    pub(crate) request: Request,
    pub(crate) start: Start,
    /// The connection to send it on; `None` to open a new one.
    pub(crate) on: Option<C>,
}

/// How a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The request may be sent as soon as the generator reaches it.
    AtOnce,
    /// After waiting for a connection.
    AfterWaiting,
}

/// A request that was begun, with its outcome.
pub(crate) struct EndedRequest {
    pub(crate) due: Due,
    pub(crate) class: u32,
    pub(crate) port: u16,
    pub(crate) stamps: Stamps,
    pub(crate) outcome: Outcome,
    pub(crate) failure: Failure,
}

/// The side that caused a failed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The request has not failed, or its failure is the server's.
    NotOurs,
    /// This side had no port or file left.
    Ours,
}

impl Failure {
    pub(crate) fn of(error: &io::Error) -> Self {
        use rustix::io::Errno;
        let ours = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::ADDRINUSE, Errno::NOBUFS];
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        if errno.is_some_and(|errno| ours.contains(&errno)) { Self::Ours } else { Self::NotOurs }
    }
}

/// The outcome of a request with a deadline: a later answer does not count, even if the deadline passed while this
/// thread was stalled.
pub(crate) fn in_time(outcome: Outcome, stamps: &Stamps, deadline_ns: i64) -> Outcome {
    if stamps.completed.is_some_and(|at_ns| at_ns > deadline_ns) { Outcome::TimedOut } else { outcome }
}

impl<'a, C> Ledger<'a, C> {
    pub(crate) fn new(part: Part<'a>) -> Self {
        let Part { plan, share, thread, budget, workload, progress, sink } = part;
        let schedule = Schedule::new(plan, share, budget);
        Self {
            plan,
            share,
            most_connections: share.count(plan.connections.into()) as u32,
            workload,
            progress,
            sink,
            start_ns: 0,
            prepared: Some(workload.request(schedule.next_index())),
            schedule,
            waiting: VecDeque::new(),
            connections: Connections::Exclusive { idle: Vec::new(), open: 0 },
            in_flight: 0,
            over_ns: None,
            ended_ns: 0,
            tally: Tally::new(plan.seed),
            recent: Recent::new(thread),
        }
    }

    /// The ledger of a run over users' sessions.
    pub(crate) fn over_sessions(part: Part<'a>) -> Self {
        Self { connections: Connections::Sessions, ..Self::new(part) }
    }

    /// The part of the load that the thread makes.
    pub(crate) fn share(&self) -> Share {
        self.share
    }

    /// Starts the run: every instant of the schedule counts from here.
    pub(crate) fn start(&mut self, now_ns: i64) {
        self.start_ns = now_ns;
    }

    /// When the next request is due, if one comes without an answer to another.
    pub(crate) fn next_ns(&self) -> Option<i64> {
        self.schedule.next_ns().map(|at_ns| self.start_ns.saturating_add(at_ns))
    }

    /// Whether no further request can become due.
    pub(crate) fn is_over(&self, now_ns: i64) -> bool {
        self.schedule.is_over(now_ns - self.start_ns)
    }

    /// Whether requests wait for a connection.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether every request that was due has ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty()
    }

    /// The deadline for the requests in flight, now that no further request can become due. Each answer moves it on, as
    /// far as the plan allows.
    pub(crate) fn drain_until_ns(&mut self, now_ns: i64) -> i64 {
        let over_ns = *self.over_ns.get_or_insert(now_ns);
        let allowed = i64::try_from(self.plan.drain.as_nanos()).unwrap_or(i64::MAX);
        let usual = i64::try_from(self.tally.response_p99_ns()).unwrap_or(i64::MAX);
        let silence = usual.saturating_mul(3).max(DRAIN_AT_LEAST_NS);
        over_ns.saturating_add(allowed).min(self.ended_ns.max(over_ns).saturating_add(silence))
    }

    /// The next request that is due by now and can have a connection. The others are queued.
    pub(crate) fn next(&mut self, now_ns: i64) -> Option<OutgoingRequest<C>> {
        if !self.waiting.is_empty() && self.has_room() {
            let due = self.waiting.pop_front().expect("one waits");
            let request = self.workload.request(due.index);
            return Some(self.begin(due, request, Start::AfterWaiting));
        }
        while self.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let Some(due) = self.schedule.take() else { break };
            let prepared = self.prepared.take();
            self.tally.due(due.at_ns);
            if self.has_room() {
                let request = prepared.unwrap_or_else(|| self.workload.request(due.index));
                return Some(self.begin(due, request, Start::AtOnce));
            }
            self.keep_waiting(due, now_ns);
        }
        None
    }

    fn keep_waiting(&mut self, due: Due, now_ns: i64) {
        if self.waiting.len() < WAITING_AT_MOST {
            self.tally.waited_for_connection += 1;
            self.waiting.push_back(due);
        } else {
            self.tally.turned_away += 1;
            self.forgo(due, now_ns);
        }
    }

    /// Whether a request can have a connection now.
    fn has_room(&self) -> bool {
        match &self.connections {
            Connections::Exclusive { idle, open } => !idle.is_empty() || *open < self.most_connections,
            Connections::Sessions => self.in_flight < WAITING_AT_MOST as u64,
        }
    }

    fn begin(&mut self, due: Due, request: Request, start: Start) -> OutgoingRequest<C> {
        let mut on = None;
        if let Connections::Exclusive { idle, open } = &mut self.connections {
            on = idle.pop();
            if on.is_none() {
                *open += 1;
                self.tally.connections_opened += 1;
            }
        }
        self.change_in_flight(1);
        OutgoingRequest { due, request, start, on }
    }

    fn change_in_flight(&mut self, by: i64) {
        self.in_flight = self.in_flight.checked_add_signed(by).expect("only a begun request ends");
        self.tally.max_in_flight = self.tally.max_in_flight.max(self.in_flight);
    }

    /// Begins a request from [`next`](Self::next) at this instant.
    pub(crate) fn begun(&mut self, due: &mut Due, start: Start, at_ns: i64) {
        let late_ns = at_ns - self.start_ns - due.at_ns;
        match start {
            Start::AtOnce => {
                due.lag_ns = late_ns;
                self.tally.lag(late_ns);
            }
            Start::AfterWaiting => self.tally.wait(late_ns),
        }
    }

    /// Records that a request was sent at this instant, and not before the previous one.
    pub(crate) fn sent(&mut self, at_ns: i64) {
        let at_ns = at_ns - self.start_ns;
        if !self.sink.keep_sent(at_ns) {
            self.tally.sends.sent(at_ns);
        }
    }

    /// Whether the next request is yet to be created, and could be sent if it were due.
    pub(crate) fn wants_next(&self) -> bool {
        self.prepared.is_none() && self.has_room()
    }

    /// Creates the next request before it is due, in an idle moment.
    pub(crate) fn prepare(&mut self) {
        if self.wants_next() {
            self.prepared = Some(self.workload.request(self.schedule.next_index()));
        }
    }

    /// Ends a request that was begun, and takes back its connection for the next, if it left one.
    pub(crate) fn end(&mut self, ended: EndedRequest, connection: Option<C>, now_ns: i64) {
        self.change_in_flight(-1);
        self.ended_ns = now_ns;
        if let Connections::Exclusive { idle, open } = &mut self.connections {
            match connection {
                Some(connection) => idle.push(connection),
                None => *open -= 1,
            }
        }
        if ended.failure == Failure::Ours {
            self.tally.own_failures += 1;
        }
        self.report(ended, now_ns);
    }

    /// Records the reason of a refused request. The first one is kept for the report.
    pub(crate) fn refused(&mut self, error: &io::Error) {
        self.tally.refused_because.get_or_insert_with(|| error.to_string());
    }

    /// Records that the session of a user is being opened.
    pub(crate) fn opened(&mut self) {
        self.tally.connections_opened += 1;
    }

    /// Removes an idle connection that the server closed.
    pub(crate) fn lost(&mut self, is_it: impl Fn(&C) -> bool) {
        if let Connections::Exclusive { idle, open } = &mut self.connections
            && let Some(place) = idle.iter().position(is_it)
        {
            idle.swap_remove(place);
            *open -= 1;
        }
    }

    /// Takes other idle connections in place of one that the server closed. Without any, a new one is to be opened.
    pub(crate) fn replace_closed(&mut self, on: &mut Option<C>, is_open: impl Fn(&mut C) -> bool) {
        while on.as_mut().is_some_and(|connection| !is_open(connection)) {
            let Connections::Exclusive { idle, open } = &mut self.connections else { return };
            *on = idle.pop();
            match on {
                Some(_) => *open -= 1,
                None => self.tally.connections_opened += 1,
            }
        }
    }

    /// The counts to publish.
    fn counts(&self) -> Counts {
        Counts {
            sent: self.tally.sent,
            outcomes: self.tally.ended,
            in_flight: self.in_flight,
            waiting: self.waiting.len() as u64,
        }
    }

    /// Publishes the requests that ended since the last time, and stops the schedule if a watcher asked for it.
    pub(crate) fn publish(&mut self, now_ns: i64) {
        self.recent.publish(self.counts(), self.progress);
        self.sink.send_if_old(now_ns, now_ns - self.start_ns);
        if self.progress.enough.load(Relaxed) {
            self.schedule.stop();
        }
    }

    /// Ends the requests that still wait, and closes the ledger. None may be in flight any more.
    pub(crate) fn close(mut self, now_ns: i64, cpu_s: f64, thread: ThreadUse) -> ClosedLedger {
        for due in std::mem::take(&mut self.waiting) {
            self.forgo(due, now_ns);
        }
        self.recent.publish_last(self.counts(), self.progress);
        let end_ns = now_ns - self.start_ns;
        self.tally.end_at(end_ns);
        self.tally.close(Span { start_ns: self.start_ns, end_ns, cpu_s, thread })
    }

    /// Ends a request that was never begun.
    fn forgo(&mut self, due: Due, now_ns: i64) {
        let class = self.workload.request(due.index).class;
        let stamps = Stamps::default();
        let (outcome, failure) = (Outcome::Unanswered, Failure::NotOurs);
        self.report(EndedRequest { due, class, port: 0, stamps, outcome, failure }, now_ns);
    }

    fn report(&mut self, ended: EndedRequest, now_ns: i64) {
        let relative = |instant: Option<i64>| instant.map(|instant| instant - self.start_ns);
        let EndedRequest { due, class, port, stamps, outcome, .. } = ended;
        let row = RequestRow {
            index: due.index,
            class,
            port,
            scheduled: due.at_ns,
            sent: relative(stamps.sent),
            first_byte: relative(stamps.first_byte),
            completed: relative(stamps.completed),
            queued: None,
            started: None,
            finished: None,
            service: None,
            fixed: None,
            outcome,
            bytes_out: stamps.bytes_out,
            bytes_in: stamps.bytes_in,
        };
        let response_ns = row.response_ns();
        let at_ns = row.completed.unwrap_or(now_ns - self.start_ns);
        if let Some(lag_ns) = row.send_lag_ns() {
            self.tally.send_lag(lag_ns);
        }
        self.tally.end(outcome, &due, at_ns, response_ns);
        if let (Some(status), Outcome::Answered | Outcome::Wrong | Outcome::Refused) =
            (stamps.status, outcome)
        {
            self.tally.status(status);
        }
        if let Some(response_ns) = response_ns {
            self.recent.add(response_ns);
        }
        if let Some(user) = due.user {
            let at_least_ns = if response_ns.is_some() { 0 } else { THINK_UNANSWERED_NS };
            self.schedule.think(user, at_ns, at_least_ns);
        }
        self.sink.push(row);
    }
}

#[cfg(test)]
mod virtual_time;
