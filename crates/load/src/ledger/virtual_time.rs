//! The ledger in virtual time, with a scripted peer: no socket, no sleep, and the same course for the same seed.
//!
//! Each seed draws a plan (arrivals, connections and timeouts) and the character of a peer, whose connections open late or
//! fail, whose answers come late, wrong or never, and that closes idle connections. The generator's thread stalls now and
//! then, and the run may be cancelled. In every case, the laws below hold exactly.

mod peer;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use kendall_record::{Outcome, RequestRow};

use kendall_station::Arrivals;
use kendall_stats::random::{Purpose, Rng, stream, unit};

use self::peer::{Numbers, Peer, drawn_plan};
use super::{EndedRequest, Failure, Ledger, OutgoingRequest, Part, Start, in_time};
use crate::connection::Stamps;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::rows;
use crate::schedule::{Budget, Due};
use crate::share::Share;
use crate::summary::{RunSummary, ThreadUse};

const MS: i64 = 1_000_000;

/// When a run starts.
const START_NS: i64 = 1_000 * MS;

/// A seed of the peer and the plan. A failure prints the command that runs its seed alone.
#[test]
fn the_laws_of_the_ledger_hold_for_every_course_of_a_run() {
    let only = std::env::var("KENDALL_SEED").ok().map(|seed| seed.parse::<u64>().expect("a number"));
    let seeds = only.map_or(0..3_000, |seed| seed..seed + 1);
    let mut met = [0u64; 5];
    for seed in seeds {
        let course = Course::run(seed);
        let broken = course.broken_laws();
        assert!(
            broken.is_empty(),
            "{broken}\nseed {seed}: {:?}\nKENDALL_SEED={seed} cargo test -p kendall-load laws_of_the_ledger",
            course.plan
        );
        met.iter_mut().zip(course.summary.ended).for_each(|(all, ended)| *all += ended);
    }
    assert!(only.is_some() || met.iter().all(|&count| count > 1_000), "every outcome occurs: {met:?}");
}

/// The same seed gives the same rows, to the nanosecond.
#[test]
fn a_course_repeats_itself() {
    for seed in 0..50 {
        assert_eq!(Course::run(seed).rows, Course::run(seed).rows, "seed {seed}");
    }
}

/// A peer that answers nothing from 1,000 ms to 2,000 ms, under 1,000 requests a second over 50 connections: by arithmetic
/// every request of that second waits for its end, most of them in the generator. A tool that counts from the send sees 50.
#[test]
fn a_stall_of_the_peer_is_seen_whole() {
    let plan = Plan {
        connections: 50,
        drain: Duration::from_secs(10),
        ..Plan::lasting(Arrivals::constant(1000.0), Duration::from_secs(3), 7)
    };
    let stall = 1_000 * MS..2_000 * MS;
    let answer = move |now_ns: i64| if stall.contains(&now_ns) { stall.end - now_ns } else { 0 };
    let course = Course::against(
        plan,
        1,
        Peer { answer_ns: Box::new(move |at_ns, _| Some(answer(at_ns))), ..Peer::good() },
    );
    assert_eq!(course.broken_laws(), "");
    assert_eq!(course.summary.count(Outcome::Answered), 2_999);
    for row in &course.rows {
        let waits_ns =
            if (1_000 * MS..2_000 * MS).contains(&row.scheduled) { 2_000 * MS - row.scheduled } else { 0 };
        assert_eq!(row.response_ns(), Some(waits_ns), "{row:?}");
    }
    // 50 of the 1,000 are in flight, and the one that is due as the stall ends finds the others before it.
    assert_eq!((course.summary.waited_for_connection, course.summary.max_in_flight), (951, 50));
}

/// Requests of an open stream are due when the seed says, whatever the peer does.
#[test]
fn the_schedule_depends_on_nothing_but_the_seed() {
    let plan =
        |seed| Plan { seed, ..Plan::lasting(Arrivals::poisson(1000.0), Duration::from_millis(300), seed) };
    let due = |seed, peer| {
        let mut rows = Course::against(plan(seed), 1, peer).rows;
        rows.sort_unstable_by_key(|row| row.index);
        rows.iter().map(|row| row.scheduled).collect::<Vec<i64>>()
    };
    let slow = Peer { answer_ns: Box::new(|_, _| Some(20 * MS)), stalls: 0.1, ..Peer::good() };
    assert_eq!(due(7, Peer::good()), due(7, slow));
    assert_ne!(due(7, Peer::good()), due(8, Peer::good()));
}

/// With all requests due at once and a peer that answers none, one is sent, a million wait, and the others end at once.
#[test]
fn the_number_of_requests_that_wait_for_a_connection_is_limited() {
    const BEYOND: u64 = 9;
    let arrivals = Arrivals::Trace { instants_s: vec![0.0; 1_000_001 + BEYOND as usize].into() };
    let plan = Plan {
        connections: 1,
        drain: Duration::from_millis(1),
        ..Plan::lasting(arrivals, Duration::from_secs(1), 7)
    };
    let course = Course::against(plan, 1, Peer { answer_ns: Box::new(|_, _| None), ..Peer::good() });
    assert_eq!(course.rows.len() as u64, course.summary.count(Outcome::Unanswered));
    assert_eq!((course.summary.waited_for_connection, course.summary.turned_away), (1_000_000, BEYOND));
}

/// A future event, with the number of its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request is passed to the kernel, over an open connection.
    Sent(u64),
    /// A connection could not be opened.
    Failed(u64),
    /// An answer comes.
    Answered(u64),
    /// A request is abandoned.
    Expired(u64),
    /// The peer closes this connection, if it is idle then.
    Dropped(u64),
}

/// A request in flight.
struct Attempt {
    due: Due,
    class: u32,
    connection: u64,
    stamps: Stamps,
    deadline_ns: i64,
}

/// One run in virtual time.
struct Course {
    plan: Plan,
    /// The instant at which the ledger was closed.
    end_ns: i64,
    summary: RunSummary,
    rows: Vec<RequestRow>,
    /// The instants from the ledger's clock at which requests were begun, in that order, with their numbers.
    begun: Vec<(u64, i64)>,
    /// The most connections that were open at once, by the peer's count.
    most_open: usize,
    progress: Progress,
}

impl Course {
    fn run(seed: u64) -> Self {
        let mut rng = stream(seed, Purpose::Trial, 0);
        let plan = drawn_plan(seed, &mut rng);
        let peer = Peer::drawn(&mut rng);
        Self::against(plan, seed, peer)
    }

    fn against(plan: Plan, seed: u64, peer: Peer) -> Self {
        let progress = Progress::default();
        let (mut sinks, batches, _) = rows::channel(1);
        let sink = sinks.pop().expect("there is one for the thread");
        drop(sinks);
        let collector = thread::spawn(|| batches.flatten().collect());
        let budget = Budget::of(&plan);
        let mut ledger = Ledger::new(Part {
            plan: &plan,
            share: Share::ALL,
            thread: 0,
            budget: &budget,
            workload: &Numbers,
            progress: &progress,
            sink,
        });
        let mut driver = Driver {
            ledger: &mut ledger,
            peer,
            rng: stream(seed, Purpose::Trial, 1),
            timeout_ns: plan.timeout.as_nanos() as i64,
            now_ns: START_NS,
            events: BinaryHeap::new(),
            out: BTreeMap::new(),
            attempts: 0,
            connections: 0,
            idle: BTreeSet::new(),
            open: 0,
            most_open: 0,
            begun: Vec::new(),
        };
        driver.drive();
        let (end_ns, begun, most_open) = (driver.now_ns, driver.begun, driver.most_open);
        let closed = ledger.close(end_ns, 0.0, ThreadUse::default());
        let summary = closed.part.summary(closed.sends.summary());
        let rows = collector.join().expect("it only collects");
        Self { end_ns, summary, rows, begun, most_open, progress, plan }
    }

    /// The violated laws, one per line.
    fn broken_laws(&self) -> String {
        let Self { summary, rows, plan, begun, .. } = self;
        let mut broken = String::new();
        let mut law = |holds: bool, words: &str| {
            if !holds {
                writeln!(broken, "{words}").unwrap();
            }
        };
        // Conservation: each request that was due ended once, and in one way.
        let mut numbers: Vec<u64> = rows.iter().map(|row| row.index).collect();
        numbers.sort_unstable();
        law(numbers.iter().copied().eq(0..summary.sent), "each number ends once");
        law(
            summary.ended.iter().sum::<u64>() == summary.sent,
            "the outcomes add up to the requests that were due",
        );
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            let count = rows.iter().filter(|row| row.outcome == outcome).count() as u64;
            law(summary.ended[place] == count, "the summary counts the rows");
            law(self.progress.count(outcome) == count, "the progress counts the rows");
        }
        let relaxed = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        law(
            relaxed(&self.progress.in_flight) == 0 && relaxed(&self.progress.waiting) == 0,
            "nothing is left out",
        );
        // Little's law, exactly: both sides are the same sum of nanoseconds.
        let ended_ns = |row: &RequestRow| row.completed.unwrap_or(self.end_ns - START_NS);
        let responses_ns: i128 = rows.iter().map(|row| i128::from(ended_ns(row) - row.scheduled)).sum();
        law(summary.little.responses_s == responses_ns as f64 / 1e9, "W is the sum over the rows");
        law(summary.little.in_system_s == summary.little.responses_s, "L = λW");
        // Order: none is begun before it is due, nor before one that was due earlier.
        law(
            begun.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "requests are begun in the order in which they are due",
        );
        let due: BTreeMap<u64, i64> = rows.iter().map(|row| (row.index, row.scheduled)).collect();
        law(begun.iter().all(|(index, at_ns)| *at_ns - START_NS >= due[index]), "none is begun too early");
        law(due.values().is_sorted(), "numbers are in the order of the schedule");
        for row in rows {
            let stamps = [Some(row.scheduled), row.sent, row.first_byte, row.completed];
            law(stamps.iter().flatten().is_sorted(), "the stamps of a row are in order");
            let is_stamped = row.outcome != Outcome::Unanswered;
            law(
                row.completed.is_some() == is_stamped,
                "an unanswered request has no end, and all others have one",
            );
            let in_time = row.response_ns().is_none_or(|_| row.sent.is_some());
            law(in_time, "an answer follows a request that was sent");
        }
        // Connections.
        law(self.most_open <= plan.connections as usize, "no more connections than are allowed");
        law(
            summary.max_in_flight <= u64::from(plan.connections),
            "a connection carries one request at a time",
        );
        if let Arrivals::Closed { population, .. } = plan.arrivals {
            law(summary.max_in_flight <= u64::from(population), "a user has one request out at a time");
        }
        law(plan.requests.is_none_or(|most| summary.sent <= most), "no more requests than are allowed");
        broken
    }
}

/// Drives a ledger as the drivers over sockets and futures do, with a clock that it sets itself.
struct Driver<'l, 'a> {
    ledger: &'l mut Ledger<'a, u64>,
    peer: Peer,
    rng: Rng,
    timeout_ns: i64,
    now_ns: i64,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    out: BTreeMap<u64, Attempt>,
    attempts: u64,
    connections: u64,
    /// Connections that are open and idle.
    idle: BTreeSet<u64>,
    open: usize,
    most_open: usize,
    begun: Vec<(u64, i64)>,
}

impl Driver<'_, '_> {
    fn drive(&mut self) {
        let cancelled_ns = self.peer.cancelled_ns.map_or(i64::MAX, |at_ns| START_NS + at_ns);
        self.ledger.start(START_NS);
        let mut drain_until_ns = i64::MAX;
        loop {
            while let Some(request) = self.ledger.next(self.now_ns) {
                self.begin(request);
            }
            self.ledger.prepare();
            if self.ledger.is_over(self.now_ns) {
                if drain_until_ns == i64::MAX || self.now_ns >= drain_until_ns {
                    drain_until_ns = self.ledger.drain_until_ns(self.now_ns);
                }
                if self.ledger.is_settled() || self.now_ns >= drain_until_ns {
                    break;
                }
            }
            if self.now_ns >= cancelled_ns {
                break;
            }
            let event_ns = self.events.peek().map_or(i64::MAX, |Reverse((at_ns, _))| *at_ns);
            let due_ns = self.ledger.next_ns().unwrap_or(i64::MAX);
            // Like the drivers, it checks now and then whether the run is over.
            let check_ns = self.now_ns + super::CHECK_EVERY.as_nanos() as i64;
            let wake_ns = event_ns.min(due_ns).min(drain_until_ns).min(cancelled_ns).min(check_ns);
            self.now_ns = self.now_ns.max(wake_ns);
            if unit(&mut self.rng) < self.peer.stalls {
                self.now_ns += (unit(&mut self.rng) * 30.0 * MS as f64) as i64;
            }
            while let Some(Reverse((at_ns, _))) = self.events.peek()
                && *at_ns <= self.now_ns
            {
                let Reverse((at_ns, event)) = self.events.pop().expect("it was just there");
                self.happen(at_ns, event);
            }
            self.ledger.publish(self.now_ns);
        }
        for (_, attempt) in std::mem::take(&mut self.out) {
            self.end(attempt, Outcome::Unanswered, Failure::NotOurs, false);
        }
    }

    fn chance(&mut self, chance: f64) -> bool {
        unit(&mut self.rng) < chance
    }

    fn begin(&mut self, mut request: OutgoingRequest<u64>) {
        self.ledger.begun(&mut request.due, request.start, self.now_ns);
        self.begun.push((request.due.index, self.now_ns));
        assert!(request.start == Start::AtOnce || request.due.at_ns < self.now_ns, "it has waited");
        let number = self.attempts;
        self.attempts += 1;
        let is_new = request.on.is_none();
        let connection = match request.on {
            Some(connection) => {
                assert!(self.idle.remove(&connection), "connection {connection} is open and carries nothing");
                connection
            }
            None => {
                self.connections += 1;
                self.open += 1;
                self.connections
            }
        };
        self.most_open = self.most_open.max(self.open);
        let deadline_ns = self.now_ns + self.timeout_ns;
        let (due, class, stamps) = (request.due, request.request.class, Stamps::default());
        self.out.insert(number, Attempt { due, class, connection, stamps, deadline_ns });
        let open_ns = self.now_ns + if is_new { self.peer.connect_ns } else { 0 };
        let fails = is_new && self.chance(self.peer.fails);
        let event = if fails { Event::Failed(number) } else { Event::Sent(number) };
        self.events.push(Reverse((open_ns, event)));
        self.events.push(Reverse((deadline_ns, Event::Expired(number))));
    }

    fn happen(&mut self, at_ns: i64, event: Event) {
        match event {
            Event::Sent(number) => {
                // The generator passes it on when it gets to it, which may be after a stall.
                let now_ns = self.now_ns;
                let Some(attempt) = self.out.get_mut(&number) else { return };
                attempt.stamps.sent = Some(now_ns);
                self.ledger.sent(now_ns);
                if let Some(takes_ns) = (self.peer.answer_ns)(now_ns - START_NS, &mut self.rng) {
                    self.events.push(Reverse((now_ns + takes_ns, Event::Answered(number))));
                }
            }
            Event::Failed(number) => {
                let Some(mut attempt) = self.out.remove(&number) else { return };
                attempt.stamps.completed = Some(self.now_ns);
                let ours = self.chance(self.peer.fails_here);
                let failure = if ours { Failure::Ours } else { Failure::NotOurs };
                self.end(attempt, Outcome::Refused, failure, false);
            }
            Event::Answered(number) => {
                let Some(mut attempt) = self.out.remove(&number) else { return };
                // The kernel's stamp, not the reading's.
                (attempt.stamps.first_byte, attempt.stamps.completed) = (Some(at_ns), Some(at_ns));
                let outcome = match unit(&mut self.rng) {
                    chance if chance < self.peer.wrong => Outcome::Wrong,
                    chance if chance < self.peer.wrong + self.peer.refuses => Outcome::Refused,
                    _ => Outcome::Answered,
                };
                let keeps = !self.chance(self.peer.closes);
                self.end(attempt, outcome, Failure::NotOurs, keeps);
            }
            Event::Expired(number) => {
                let Some(mut attempt) = self.out.remove(&number) else { return };
                attempt.stamps.completed = Some(self.now_ns);
                self.end(attempt, Outcome::TimedOut, Failure::NotOurs, false);
            }
            Event::Dropped(connection) => {
                if self.idle.remove(&connection) {
                    self.ledger.lost(|idle| *idle == connection);
                    self.open -= 1;
                }
            }
        }
    }

    fn end(&mut self, attempt: Attempt, outcome: Outcome, failure: Failure, keeps: bool) {
        let Attempt { due, class, connection, stamps, deadline_ns } = attempt;
        let outcome = in_time(outcome, &stamps, deadline_ns);
        let ended = EndedRequest { due, class, port: 0, stamps, outcome, failure };
        self.ledger.end(ended, keeps.then_some(connection), self.now_ns);
        if !keeps {
            self.open -= 1;
            return;
        }
        self.idle.insert(connection);
        if self.chance(self.peer.drops_idle) {
            let later_ns = self.now_ns + (unit(&mut self.rng) * 10.0 * MS as f64) as i64;
            self.events.push(Reverse((later_ns, Event::Dropped(connection))));
        }
    }
}
