//! The driver over futures: for connections that bring their own, within a tokio runtime of this single
//! thread.

use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::connection::{Connect, Connection, Exchange, LocalFuture, Stamps};
use crate::gate::Pass;
use crate::ledger::{CHECK_EVERY, EndedRequest, Failure, Ledger, OutgoingRequest, Start, in_time};
use crate::plan::Plan;
use crate::request::{Request, Reuse};
use crate::timer::Timer;

/// Runs the requests of a ledger until the last has ended, or it is cancelled. No request is in flight then.
///
/// # Errors
/// Fails only if it cannot be set up.
pub(crate) fn drive<'a>(
    ledger: &mut Ledger<'a, Box<dyn Connection>>,
    connect: &'a dyn Connect,
    plan: &Plan,
    pass: Pass<'_>,
    cancel: &AtomicBool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Never has a permit; closing it ends every attempt, including those that only check later.
    let give_up = Semaphore::new(0);
    runtime.block_on(async {
        let out = FuturesUnordered::new();
        let mut driver = Driver { ledger, connect, limit: plan.timeout, give_up: &give_up, out };
        driver.run(Timer::new()?, pass, cancel).await
    })
}

struct Driver<'l, 'a, 'g> {
    ledger: &'l mut Ledger<'a, Box<dyn Connection>>,
    connect: &'a dyn Connect,
    limit: Duration,
    give_up: &'g Semaphore,
    out: FuturesUnordered<LocalFuture<'g, Attempt>>,
}

/// A request with its outcome.
struct Attempt {
    begin_ns: i64,
    start: Start,
    ended: EndedRequest,
    reuse: Reuse,
    connection: Option<Box<dyn Connection>>,
    /// The reason why it has no connection.
    why: Option<io::Error>,
}

impl<'g, 'a: 'g> Driver<'_, 'a, 'g> {
    async fn run(&mut self, mut timer: Timer, pass: Pass<'_>, cancel: &AtomicBool) -> io::Result<()> {
        let mut check = interval(CHECK_EVERY);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Some(start_ns) = pass.start_ns() else { return Ok(()) };
        self.ledger.start(start_ns);
        let mut drain_until_ns = i64::MAX;
        loop {
            let now = now_ns();
            let is_over = self.ledger.is_over(now);
            if is_over && (now >= drain_until_ns || drain_until_ns == i64::MAX) {
                // Not a silence if this thread was stalled.
                yield_now().await;
                while let Some(Some(attempt)) = self.out.next().now_or_never() {
                    self.settle(attempt);
                }
                drain_until_ns = self.ledger.drain_until_ns(now);
            }
            let stop = cancel.load(Ordering::Relaxed) || now >= drain_until_ns;
            if stop || is_over && self.ledger.is_settled() {
                break;
            }
            self.begin_due(now);
            let next_ns = self.ledger.next_ns().unwrap_or(drain_until_ns);
            tokio::select! {
                biased;
                Some(attempt) = self.out.next(), if !self.out.is_empty() => self.settle(attempt),
                fired = timer.until(next_ns) => fired?,
                // All requests that are due were begun, so creating a request delays none of them.
                () = ready(()), if self.ledger.wants_next() => self.ledger.prepare(),
                _ = check.tick() => self.ledger.publish(now_ns()),
            }
        }
        self.give_up.close();
        while let Some(attempt) = self.out.next().await {
            self.settle(attempt);
        }
        Ok(())
    }

    fn begin_due(&mut self, now: i64) {
        while let Some(mut begin) = self.ledger.next(now) {
            self.ledger.replace_closed(&mut begin.on, |connection| connection.is_open());
            self.ledger.sent(now_ns());
            self.out.push(Box::pin(attempt(self.connect, begin, self.limit, self.give_up)));
        }
    }

    /// Counts a request that has ended, and takes its connection back.
    fn settle(&mut self, attempt: Attempt) {
        let Attempt { begin_ns, start, mut ended, reuse, connection, why } = attempt;
        if let Some(why) = why {
            self.ledger.refused(&why);
        }
        self.ledger.begun(&mut ended.due, start, begin_ns);
        self.ledger.end(ended, connection.filter(|_| reuse == Reuse::Keep), now_ns());
    }
}

/// One request from its beginning to its end.
async fn attempt(
    connect: &dyn Connect,
    begin: OutgoingRequest<Box<dyn Connection>>,
    limit: Duration,
    give_up: &Semaphore,
) -> Attempt {
    let OutgoingRequest { due, request, start, on } = begin;
    let class = request.class;
    let (outcome, failure) = (Outcome::Unanswered, Failure::NotOurs);
    let ended = EndedRequest { due, class, port: 0, stamps: Stamps::default(), outcome, failure };
    let mut attempt =
        Attempt { begin_ns: now_ns(), start, ended, reuse: Reuse::Close, connection: None, why: None };
    tokio::select! {
        biased;
        in_time = timeout(limit, converse(connect, on, &request, &mut attempt)) => if in_time.is_err() {
            attempt.ended.outcome = Outcome::TimedOut;
            attempt.ended.stamps.completed = Some(now_ns());
        },
        _ = give_up.acquire() => {}
    }
    let deadline_ns = attempt.begin_ns.saturating_add(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX));
    attempt.ended.outcome = in_time(attempt.ended.outcome, &attempt.ended.stamps, deadline_ns);
    attempt
}

/// Connects if necessary and exchanges, filling in the attempt.
async fn converse(
    connect: &dyn Connect,
    on: Option<Box<dyn Connection>>,
    request: &Request,
    attempt: &mut Attempt,
) {
    let ended = &mut attempt.ended;
    let mut connection = match on {
        Some(connection) => connection,
        None => match connect.connect().await {
            Ok(connection) => connection,
            Err(error) => {
                ended.outcome = Outcome::Refused;
                ended.stamps.completed = Some(now_ns());
                ended.failure = Failure::of(&error);
                attempt.why = Some(error);
                return;
            }
        },
    };
    ended.port = connection.port();
    let Exchange { outcome, reuse } = connection.exchange(ended.due.index, request, &mut ended.stamps).await;
    ended.outcome = outcome;
    (attempt.reuse, attempt.connection) = (reuse, Some(connection));
}
