//! The ledger in virtual time, against a scripted peer: no socket, no sleep, and the same course for the same seed.
//!
//! Each seed draws a plan (how requests arrive, how many connections and how much patience there is) and the character of a
//! peer, whose connections open late or fail, whose answers come late, wrong or never, and that closes idle connections. The
//! generator's thread stalls now and then, and the run may be cancelled. Whatever happens, the laws below hold exactly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use kendall_record::{Outcome, RequestRow};

use kendall_station::{Arrivals, Attendance, Batch, Between, Law, Profile, Sessions};
use kendall_stats::random::{Purpose, Rng, stream, unit};

use super::{EndedRequest, Failure, Ledger, OutgoingRequest, Start, in_time};
use crate::connection::Stamps;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::request::{Request, RequestClass};
use crate::rows;
use crate::schedule::Due;
use crate::summary::{RunSummary, ThreadUse};
use crate::workload::{Route, Workload};

const MS: i64 = 1_000_000;

/// When a run starts.
const START_NS: i64 = 1_000 * MS;

/// A seed of the peer and the plan. One that fails is run alone by the command that the failure prints.
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
    assert!(only.is_some() || met.iter().all(|&count| count > 1_000), "every way to end is met: {met:?}");
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
    // 50 of the 1,000 are out, and the one that is due as the stall ends finds the others before it.
    assert_eq!((course.summary.waited_for_connection, course.summary.max_in_flight), (951, 50));
}

/// No requests of the workload differ but by their number.
struct Numbers;

impl Workload for Numbers {
    fn request(&self, index: u64) -> Request {
        Request::new((index % 3) as u32, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0); 3]
    }

    fn route(&self) -> Route<'_> {
        unreachable!("the peer is scripted")
    }
}

/// How long an answer takes, from the instant since the start and the peer's random numbers.
type Draw = Box<dyn Fn(i64, &mut Rng) -> Option<i64>>;

/// The character of a peer. Chances are from 0 to 1.
struct Peer {
    /// How long a connection takes to open.
    connect_ns: i64,
    /// The chance that it does not.
    fails: f64,
    /// The chance that it does not because this side has no port left.
    fails_here: f64,
    /// How long an answer takes; `None` for one that never comes.
    answer_ns: Draw,
    /// The chance that an answer is wrong, and that it is a refusal.
    wrong: f64,
    refuses: f64,
    /// The chance that a connection is spent by its answer.
    closes: f64,
    /// The chance that the peer closes a connection that has been idle for a while.
    drops_idle: f64,
    /// The chance that the generator's thread stalls at an event.
    stalls: f64,
    /// When the run is cancelled.
    cancelled_ns: Option<i64>,
}

impl Peer {
    /// One that answers everything rightly, and keeps every connection.
    fn good() -> Self {
        Self {
            connect_ns: 0,
            fails: 0.0,
            fails_here: 0.0,
            answer_ns: Box::new(|_, _| Some(0)),
            wrong: 0.0,
            refuses: 0.0,
            closes: 0.0,
            drops_idle: 0.0,
            stalls: 0.0,
            cancelled_ns: None,
        }
    }

    fn drawn(rng: &mut Rng) -> Self {
        let mut sometimes = |most: f64| if unit(rng) < 0.5 { 0.0 } else { most * unit(rng) };
        let (fails, fails_here, wrong, refuses) =
            (sometimes(0.3), sometimes(0.1), sometimes(0.2), sometimes(0.2));
        let (closes, drops_idle, stalls, never) =
            (sometimes(0.5), sometimes(0.5), sometimes(0.02), sometimes(0.1));
        let (mean_ns, connect_ns) = (unit(rng) * 20.0 * MS as f64, (unit(rng) * 3.0 * MS as f64) as i64);
        let cancelled_ns = (unit(rng) < 0.1).then(|| (unit(rng) * 200.0 * MS as f64) as i64);
        let answer_ns = move |_, rng: &mut Rng| {
            (unit(rng) >= never).then(|| (-unit(rng).max(1e-9).ln() * mean_ns) as i64)
        };
        let answer_ns: Draw = Box::new(answer_ns);
        Self {
            connect_ns,
            fails,
            fails_here,
            answer_ns,
            wrong,
            refuses,
            closes,
            drops_idle,
            stalls,
            cancelled_ns,
        }
    }
}

/// A plan of some hundred requests.
fn drawn_plan(seed: u64, rng: &mut Rng) -> Plan {
    let think = Law::Exponential { mean_s: 0.01 * unit(rng) };
    let points = vec![(0.0, 20.0 + 500.0 * unit(rng)), (0.1, 1000.0 * unit(rng)), (0.2, 100.0)];
    let arrivals = match (unit(rng) * 7.0) as u32 {
        0 => Arrivals::poisson(50.0 + 2000.0 * unit(rng)),
        1 => Arrivals::constant(50.0 + 2000.0 * unit(rng)),
        2 => Arrivals::Closed { population: 1 + (unit(rng) * 20.0) as u32, think },
        3 => {
            let mut at_s = 0.0;
            // A third of the requests are due together with the one before.
            let instants = (0..200).map(|_| {
                at_s += (unit(rng) - 1.0 / 3.0).max(0.0) * 0.002;
                at_s
            });
            Arrivals::Trace { instants_s: instants.collect::<Vec<f64>>().into() }
        }
        4 => Arrivals::Varying(Profile { points, between: Between::Lines, ..Profile::default() }),
        5 => {
            let points = vec![(0.0, 2.0), (0.05, 12.0), (0.1, 12.0), (0.15, 3.0), (0.2, 1.0)];
            Arrivals::Attended(Attendance { points, think })
        }
        _ => {
            let gap = Law::Exponential { mean_s: 0.002 + 0.01 * unit(rng) };
            Arrivals::Sessions(Sessions { gap, requests: Batch::Geometric { mean: 3.0 }, think })
        }
    };
    let ms = |least: f64, most: f64, rng: &mut Rng| Duration::from_secs_f64((least + most * unit(rng)) / 1e3);
    Plan {
        connections: 1 + (unit(rng) * 30.0) as u32,
        timeout: ms(1.0, 100.0, rng),
        drain: ms(0.0, 300.0, rng),
        requests: (unit(rng) < 0.3).then(|| (unit(rng) * 100.0) as u64),
        ..Plan::lasting(arrivals, Duration::from_millis(200), seed)
    }
}

/// What is to happen, with the number of the attempt that it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request is handed to the kernel, over a connection that is open.
    Sent(u64),
    /// A connection could not be opened.
    Failed(u64),
    /// An answer comes.
    Answered(u64),
    /// A request is given up.
    Expired(u64),
    /// The peer closes this connection, if it is idle then.
    Dropped(u64),
}

/// A request that is out.
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
    /// When the books were closed.
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
        let (sink, batches) = rows::channel();
        let mut ledger = Ledger::new(&plan, &Numbers, sink, &progress);
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
        let summary = ledger.close(end_ns, 0.0, ThreadUse::default());
        let rows = batches.flatten().collect();
        Self { end_ns, summary, rows, begun, most_open, progress, plan }
    }

    /// The laws that do not hold, a line for each.
    fn broken_laws(&self) -> String {
        let Self { summary, rows, plan, begun, .. } = self;
        let mut broken = String::new();
        let mut law = |holds: bool, words: &str| {
            if !holds {
                writeln!(broken, "{words}").unwrap();
            }
        };
        // Conservation: what was due ended once, and in one way.
        let mut numbers: Vec<u64> = rows.iter().map(|row| row.index).collect();
        numbers.sort_unstable();
        law(numbers.iter().copied().eq(0..summary.sent), "each number ends once");
        law(summary.ended.iter().sum::<u64>() == summary.sent, "the outcomes add up to what was due");
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
            law(row.completed.is_some() == is_stamped, "what is unanswered has no end, and all else has one");
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
    /// Connections that are open and carry nothing.
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
            // As the drivers do, it looks now and then whether the run is over.
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
                // The generator hands it over when it comes to it, which may be after a stall.
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
