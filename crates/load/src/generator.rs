//! The generator: one thread that begins each request when it is due and hands on what became of it.

use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use kendall_record::clock::now_ns;
use kendall_record::{Outcome, RequestRow};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::bridge;
use crate::plan::Plan;
use crate::schedule::{Due, Schedule, THINK_UNANSWERED_NS};
use crate::summary::{RunSummary, Span, Tally};
use crate::task::{Connection, Exchange, LocalFuture, Stamps};
use crate::timer::Timer;
use crate::workload::{Request, Reuse, Workload};

/// How often the generator looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The most requests that wait for a connection, at 32 bytes each. A server that is so far behind is overloaded by
/// any measure, and the generator must not run out of memory over it.
const WAITING_AT_MOST: usize = 1_000_000;

/// How far a run is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that were due so far.
    pub sent: AtomicU64,
    /// Requests that have ended so far.
    pub ended: AtomicU64,
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LoadError {
    #[error("the generator cannot set up its timer and sockets: {0}")]
    Setup(#[source] io::Error),
    #[error("at least one connection must be allowed")]
    NoConnection,
}

/// Runs a plan against a workload on the calling thread, which should have a core to itself.
///
/// Each request that was due becomes one row, handed to `sink` as it ends, with instants relative to the start.
/// Setting `cancel` stops at once: what is still out is then unanswered.
///
/// # Errors
/// Fails only where the generator cannot be set up. What servers do is a result, not an error.
pub fn run(
    plan: &Plan,
    workload: &dyn Workload,
    sink: &mut dyn FnMut(RequestRow),
    progress: &Progress,
    cancel: &AtomicBool,
) -> Result<RunSummary, LoadError> {
    if plan.connections == 0 {
        return Err(LoadError::NoConnection);
    }
    raise_open_files();
    let _first = GoneFirst::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Setup)?;
    runtime.block_on(async {
        let timer = Timer::new().map_err(LoadError::Setup)?;
        // Never has a permit; closed, it ends every attempt, those included that look only then.
        let give_up = Semaphore::new(0);
        Generator::new(plan, workload, progress, &give_up)
            .run(timer, sink, cancel)
            .await
            .map_err(LoadError::Setup)
    })
}

/// The default limit of 1,024 open files is less than the connections that a plan may allow.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, connections that do not fit are counted as this side's failures.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Puts this thread before others of this machine, where that is permitted, for as long as it is held. A server
/// that computes would else keep it waiting for whole slices of time, and what is sent late is measured wrong.
/// Held no longer, because what this thread starts afterwards would inherit it.
struct GoneFirst {
    nice_before: rustix::io::Result<i32>,
}

impl GoneFirst {
    fn new() -> Self {
        let nice_before = getpriority_process(None);
        if nice_before.is_ok() {
            // Refused without CAP_SYS_NICE; the lag that this leaves is measured and reported.
            let _ = setpriority_process(None, -20);
        }
        Self { nice_before }
    }
}

impl Drop for GoneFirst {
    fn drop(&mut self) {
        if let Ok(nice) = self.nice_before {
            // Needs no privilege: it only gives way, or changes nothing.
            let _ = setpriority_process(None, nice);
        }
    }
}

struct Generator<'a> {
    plan: &'a Plan,
    workload: &'a dyn Workload,
    progress: &'a Progress,
    give_up: &'a Semaphore,
    schedule: Schedule<'a>,
    start_ns: i64,
    last_due_ns: i64,
    /// The request with the schedule's next number, made before it is due.
    prepared: Option<Request>,
    out: FuturesUnordered<LocalFuture<'a, Attempt>>,
    /// Requests that are due and for which every allowed connection is taken.
    waiting: VecDeque<Due>,
    idle: Vec<Box<dyn Connection>>,
    /// Connections that are open or being opened, idle ones included.
    connections: u32,
    tally: Tally,
}

/// A request, as it ended.
struct Attempt {
    due: Due,
    class: u32,
    /// When it was begun, unless it had to wait for a connection.
    at_once_ns: Option<i64>,
    connection: Option<Box<dyn Connection>>,
    port: u16,
    stamps: Stamps,
    outcome: Outcome,
    reuse: Reuse,
    failure: Failure,
}

impl Attempt {
    /// One of which nothing is known yet.
    fn new(due: Due, class: u32) -> Self {
        Self {
            due,
            class,
            at_once_ns: None,
            connection: None,
            port: 0,
            stamps: Stamps::default(),
            outcome: Outcome::Unanswered,
            reuse: Reuse::Close,
            failure: Failure::NotOurs,
        }
    }
}

/// How a request sets out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// As soon as the generator comes to it.
    AtOnce,
    /// After waiting for a connection.
    AfterWaiting,
}

/// Whose fault a failed connection was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// None, or the server's.
    NotOurs,
    /// This side had no port or file left.
    Ours,
}

impl<'a> Generator<'a> {
    fn new(
        plan: &'a Plan,
        workload: &'a dyn Workload,
        progress: &'a Progress,
        give_up: &'a Semaphore,
    ) -> Self {
        Self {
            plan,
            workload,
            progress,
            give_up,
            schedule: Schedule::new(plan),
            start_ns: 0,
            last_due_ns: 0,
            prepared: Some(workload.request(0)),
            out: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            idle: Vec::new(),
            connections: 0,
            tally: Tally::new(),
        }
    }

    async fn run(
        mut self,
        mut timer: Timer,
        sink: &mut dyn FnMut(RequestRow),
        cancel: &AtomicBool,
    ) -> io::Result<RunSummary> {
        let cpu_before_s = thread_cpu_s();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.start_ns = now_ns();
        let mut drain_until_ns = i64::MAX;
        loop {
            let now = now_ns() - self.start_ns;
            let stop = cancel.load(Ordering::Relaxed) || now >= drain_until_ns;
            if stop || self.schedule.is_over(now) && self.out.is_empty() && self.waiting.is_empty() {
                break;
            }
            self.begin_due(now, sink);
            if self.schedule.is_over(now) && drain_until_ns == i64::MAX {
                let drain_ns = i64::try_from(self.plan.drain.as_nanos()).unwrap_or(i64::MAX);
                drain_until_ns = now.saturating_add(drain_ns);
            }
            let next_ns = self.schedule.next_ns().unwrap_or(drain_until_ns);
            tokio::select! {
                biased;
                Some(attempt) = self.out.next(), if !self.out.is_empty() => self.end(attempt, sink),
                fired = timer.until(self.start_ns.saturating_add(next_ns)) => fired?,
                // All that is due is on its way by now, so making a request keeps none of them.
                () = ready(()), if self.prepared.is_none() && self.has_room() => {
                    self.prepared = Some(self.workload.request(self.schedule.next_index()));
                }
                _ = look.tick() => {}
            }
        }
        self.abandon(sink).await;
        let span = Span {
            start_ns: self.start_ns,
            last_due_ns: self.last_due_ns,
            end_ns: now_ns() - self.start_ns,
            cpu_s: thread_cpu_s() - cpu_before_s,
        };
        Ok(self.tally.summary(&span))
    }

    /// Begins every request that is due by now, or lets it wait for a connection.
    fn begin_due(&mut self, now_ns: i64, sink: &mut dyn FnMut(RequestRow)) {
        while self.schedule.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let due = self.schedule.take().expect("one is due");
            let prepared = self.prepared.take();
            self.last_due_ns = due.at_ns;
            self.tally.sent += 1;
            self.progress.sent.store(self.tally.sent, Ordering::Relaxed);
            if self.has_room() {
                let request = prepared.unwrap_or_else(|| self.workload.request(due.index));
                self.begin(due, request, Start::AtOnce);
            } else if self.waiting.len() < WAITING_AT_MOST {
                self.tally.waited_for_connection += 1;
                self.waiting.push_back(due);
            } else {
                self.tally.turned_away += 1;
                self.forgo(due, sink);
            }
        }
    }

    /// Whether a request can have a connection now.
    fn has_room(&self) -> bool {
        !self.idle.is_empty() || self.connections < self.plan.connections
    }

    /// Begins one request on an idle connection or a new one, for which there must be room.
    fn begin(&mut self, due: Due, request: Request, start: Start) {
        let connection = self.idle.pop();
        self.connections += u32::from(connection.is_none());
        let (workload, limit, give_up) = (self.workload, self.plan.timeout, self.give_up);
        self.out.push(Box::pin(attempt(workload, due, request, start, connection, limit, give_up)));
        self.tally.max_in_flight = self.tally.max_in_flight.max(self.out.len() as u64);
    }

    /// Counts a request that has ended, and gives its connection to the next one that waits for one.
    fn end(&mut self, attempt: Attempt, sink: &mut dyn FnMut(RequestRow)) {
        self.settle(attempt, sink);
        while self.has_room()
            && let Some(due) = self.waiting.pop_front()
        {
            self.begin(due, self.workload.request(due.index), Start::AfterWaiting);
        }
    }

    /// Counts a request that has ended, and takes its connection back.
    fn settle(&mut self, mut attempt: Attempt, sink: &mut dyn FnMut(RequestRow)) {
        match attempt.connection.take() {
            Some(connection) if attempt.reuse == Reuse::Keep => self.idle.push(connection),
            _ => self.connections -= 1,
        }
        if attempt.failure == Failure::Ours {
            self.tally.own_failures += 1;
        }
        self.report(attempt, sink);
    }

    /// Ends everything that is still out or waiting, unanswered.
    async fn abandon(&mut self, sink: &mut dyn FnMut(RequestRow)) {
        self.give_up.close();
        while let Some(attempt) = self.out.next().await {
            self.settle(attempt, sink);
        }
        for due in std::mem::take(&mut self.waiting) {
            self.forgo(due, sink);
        }
    }

    /// Ends a request that was never begun.
    fn forgo(&mut self, due: Due, sink: &mut dyn FnMut(RequestRow)) {
        self.report(Attempt::new(due, self.workload.request(due.index).class), sink);
    }

    fn report(&mut self, attempt: Attempt, sink: &mut dyn FnMut(RequestRow)) {
        let relative = |instant: Option<i64>| instant.map(|instant| instant - self.start_ns);
        let Attempt { due, stamps, outcome, .. } = attempt;
        let row = RequestRow {
            index: due.index,
            class: attempt.class,
            port: attempt.port,
            scheduled: due.at_ns,
            sent: relative(stamps.sent),
            first_byte: relative(stamps.first_byte),
            completed: relative(stamps.completed),
            queued: None,
            started: None,
            finished: None,
            service: None,
            outcome,
            bytes_out: stamps.bytes_out,
            bytes_in: stamps.bytes_in,
        };
        if let Some(began_ns) = attempt.at_once_ns {
            self.tally.lag(began_ns - self.start_ns - due.at_ns);
        }
        let response_ns = row.response_ns();
        self.tally.end(outcome, response_ns);
        self.progress.ended.fetch_add(1, Ordering::Relaxed);
        if let Some(user) = due.user {
            let now = row.completed.unwrap_or_else(|| now_ns() - self.start_ns);
            let at_least_ns = if response_ns.is_some() { 0 } else { THINK_UNANSWERED_NS };
            self.schedule.think(user, now, at_least_ns);
        }
        sink(row);
    }
}

/// One request from its beginning to its end, whatever that is.
async fn attempt(
    workload: &dyn Workload,
    due: Due,
    request: Request,
    start: Start,
    connection: Option<Box<dyn Connection>>,
    limit: Duration,
    give_up: &Semaphore,
) -> Attempt {
    let mut attempt = Attempt::new(due, request.class);
    attempt.at_once_ns = (start == Start::AtOnce).then(now_ns);
    tokio::select! {
        biased;
        ended = timeout(limit, converse(workload, connection, &request, &mut attempt)) => if ended.is_err() {
            attempt.outcome = Outcome::TimedOut;
            attempt.stamps.completed = Some(now_ns());
        },
        _ = give_up.acquire() => {}
    }
    attempt
}

/// Connects if need be and exchanges, filling in the attempt.
async fn converse(
    workload: &dyn Workload,
    connection: Option<Box<dyn Connection>>,
    request: &Request,
    attempt: &mut Attempt,
) {
    let mut connection = match connection {
        Some(connection) => connection,
        None => match bridge::connect(workload.way()).await {
            Ok(connection) => connection,
            Err(error) => {
                attempt.outcome = Outcome::Refused;
                attempt.stamps.completed = Some(now_ns());
                attempt.failure = whose(&error);
                return;
            }
        },
    };
    attempt.port = connection.port();
    let Exchange { outcome, reuse } =
        connection.exchange(attempt.due.index, request, &mut attempt.stamps).await;
    (attempt.outcome, attempt.reuse, attempt.connection) = (outcome, reuse, Some(connection));
}

fn whose(error: &io::Error) -> Failure {
    use rustix::io::Errno;
    let ours = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::ADDRINUSE, Errno::NOBUFS];
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    if errno.is_some_and(|errno| ours.contains(&errno)) { Failure::Ours } else { Failure::NotOurs }
}

/// CPU time of this thread so far, in seconds.
fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
