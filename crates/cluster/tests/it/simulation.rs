//! The coordinator in virtual time: a thousand workers whose speeds differ by a factor of a hundred, some of which die, against
//! the bound total work ÷ total speed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kendall_cluster::{
    BeatMessage, ChunkOutcome, Coordinator, Effect, JobId, Opening, RangeSet, ReportMessage, SearchKind,
    SearchSpec, WorkerId, batch,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ACK_WAIT: Duration = Duration::from_secs(5);
const BEAT: Duration = Duration::from_secs(1);
/// From one process to another.
const MESSAGE: Duration = Duration::from_micros(300);
/// How long an idle worker waits before it asks the queue again.
const IDLE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
struct Conditions {
    workers: usize,
    /// The fastest worker is this many times as fast as the slowest; speeds between are uniform in the logarithm.
    skew: f64,
    /// The work, in seconds of all workers together.
    seconds: f64,
    /// The share of workers that die, each at a random instant of that time.
    dying: f64,
    /// Every this many messages, one is lost by the queue.
    lost_every: Option<usize>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Beat(usize),
    Fetch(usize),
    Done(usize, Vec<(u64, u64)>),
    Die(usize),
    Redeliver(usize),
    Tick,
    Audit,
}

struct Worker {
    speed: u64,
    is_alive: bool,
    /// Chunks that it has and has not reported.
    held: Vec<(Range<u64>, u64)>,
}

struct World {
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    order: u64,
    coordinator: Coordinator,
    queue: VecDeque<(Range<u64>, u64)>,
    unacknowledged: usize,
    workers: Vec<Worker>,
    rest: Range<u64>,
    returned: RangeSet,
    published: usize,
    conditions: Conditions,
    /// How often each candidate range was reported, in candidates.
    reported: u64,
}

/// The end of a simulated search, in seconds, the bound, and the candidates tested more than once per candidate.
struct Simulated {
    makespan_s: f64,
    bound_s: f64,
    repeated: f64,
}

const JOB: JobId = JobId::from_bytes([1; 16]);

impl World {
    fn new(conditions: Conditions, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let workers: Vec<Worker> = (0..conditions.workers)
            .map(|_| {
                let speed = 2e7 * conditions.skew.powf(random.random_range(0.0..1.0));
                Worker { speed: speed as u64, is_alive: true, held: Vec::new() }
            })
            .collect();
        let total: u64 = workers.iter().map(|worker| worker.speed).sum();
        let end = (total as f64 * conditions.seconds) as u64;
        let mut world = Self {
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            order: 0,
            coordinator: Coordinator::default(),
            queue: VecDeque::new(),
            unacknowledged: 0,
            workers,
            rest: 0..end,
            returned: RangeSet::default(),
            published: 0,
            conditions,
            reported: 0,
        };
        for worker in 0..conditions.workers {
            world.at(Duration::ZERO, Event::Beat(worker));
            world.at(IDLE.mul_f64(random.random_range(0.0..1.0)), Event::Fetch(worker));
            if random.random_bool(conditions.dying) {
                let at = random.random_range(0.0..conditions.seconds);
                world.at(Duration::from_secs_f64(at), Event::Die(worker));
            }
        }
        world.at(BEAT, Event::Tick);
        world.at(ACK_WAIT, Event::Audit);
        let spec = Arc::new(SearchSpec::Integer { digest: [0; 32] });
        let opening = Opening { spec, run: 1, whole: 0..end, urgency: 1.0, tested: RangeSet::default() };
        assert!(world.coordinator.open(JOB, opening));
        world
    }

    fn at(&mut self, due: Duration, event: Event) {
        self.order += 1;
        self.events.push(Reverse((due, self.order, event)));
    }

    fn run(mut self) -> Simulated {
        let end = self.rest.end;
        let mut tested = 0;
        // What living workers could have tested.
        let (mut able, mut last) = (0.0, Duration::ZERO);
        let alive = |workers: &[Worker]| -> u64 {
            workers.iter().filter(|worker| worker.is_alive).map(|worker| worker.speed).sum()
        };
        let mut speed = alive(&self.workers);
        let mut bound_s = None;
        while tested < end {
            let Reverse((now, _, event)) = self.events.pop().expect("beats go on");
            self.now = now;
            able += (now - last).as_secs_f64() * speed as f64;
            last = now;
            if able >= end as f64 && bound_s.is_none() {
                bound_s = Some(now.as_secs_f64());
            }
            let is_death = matches!(event, Event::Die(_));
            self.happen(event);
            if is_death {
                speed = alive(&self.workers);
            }
            self.hand_over();
            tested += self.effects();
            assert!(now < Duration::from_secs(10_000), "the search does not end");
        }
        let repeated = (self.reported - end) as f64 / end as f64;
        Simulated { makespan_s: self.now.as_secs_f64(), bound_s: bound_s.unwrap_or(0.0), repeated }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Beat(worker) if self.workers[worker].is_alive => {
                let speeds = [self.workers[worker].speed; SearchKind::ALL.len()];
                let beat =
                    BeatMessage { worker: WorkerId(worker as u64), is_leaving: false, tested: 0, speeds };
                self.coordinator.beat(&beat, self.now);
                self.at(self.now + BEAT, Event::Beat(worker));
            }
            Event::Fetch(worker) if self.workers[worker].is_alive => self.fetch(worker),
            Event::Done(worker, ranges) if self.workers[worker].is_alive => {
                let tested: Vec<_> = ranges.iter().map(|&(start, end)| start..end).collect();
                self.reported += tested.iter().map(|range| range.end - range.start).sum::<u64>();
                let report = ReportMessage {
                    worker: WorkerId(worker as u64),
                    job: JOB,
                    found: None,
                    tested,
                    returned: Vec::new(),
                };
                self.coordinator.report(&report, self.now);
                self.unacknowledged -= self.workers[worker].held.len();
                self.workers[worker].held.clear();
                self.at(self.now + MESSAGE, Event::Fetch(worker));
            }
            Event::Die(worker) => {
                self.workers[worker].is_alive = false;
                self.at(self.now + ACK_WAIT, Event::Redeliver(worker));
            }
            Event::Redeliver(worker) => {
                let held = std::mem::take(&mut self.workers[worker].held);
                self.unacknowledged -= held.len();
                self.queue.extend(held);
            }
            Event::Tick => {
                self.coordinator.tick(self.now);
                self.at(self.now + BEAT, Event::Tick);
            }
            Event::Audit => {
                let messages = self.queue.len() + self.unacknowledged;
                self.coordinator.audit(&HashMap::from([(JOB, messages)]), self.now);
                self.at(self.now + ACK_WAIT, Event::Audit);
            }
            _ => {}
        }
    }

    fn fetch(&mut self, worker: usize) {
        let Some(first) = self.queue.pop_front() else {
            return self.at(self.now + IDLE, Event::Fetch(worker));
        };
        let speed = self.workers[worker].speed;
        let more = (batch(speed, first.1) - 1).min(self.queue.len());
        let held: Vec<_> = [first].into_iter().chain(self.queue.drain(..more)).collect();
        let candidates: u64 = held.iter().map(|(range, _)| range.end - range.start).sum();
        let takes = Duration::from_secs_f64(candidates as f64 / speed as f64);
        let ranges = held.iter().map(|(range, _)| (range.start, range.end)).collect();
        self.unacknowledged += held.len();
        self.workers[worker].held = held;
        self.at(self.now + 3 * MESSAGE + takes, Event::Done(worker, ranges));
    }

    /// The source, which tests nothing itself.
    fn hand_over(&mut self) {
        while let Some(most) =
            self.coordinator.next_chunk(JOB, self.rest.end - self.rest.start + self.returned.candidates())
        {
            let from = match self.returned.iter().next() {
                Some(first) => first.start..first.end.min(first.start + most),
                None => self.rest.start..self.rest.end.min(self.rest.start + most),
            };
            self.returned.remove(&from);
            self.rest.start = self.rest.start.max(from.end);
            self.coordinator.hand(JOB, from, self.now);
        }
    }

    /// Carries out effects. Returns the candidates whose outcome is reported.
    fn effects(&mut self) -> u64 {
        let mut tested = 0;
        for effect in self.coordinator.take_effects() {
            match effect {
                Effect::Publish { range, unit, .. } => {
                    self.published += 1;
                    if self.conditions.lost_every.is_none_or(|every| !self.published.is_multiple_of(every)) {
                        self.queue.push_back((range, unit));
                    }
                }
                Effect::Purge(_) => self.queue.clear(),
                Effect::Outcome(_, ChunkOutcome::Absent(range)) => tested += range.end - range.start,
                Effect::Outcome(_, ChunkOutcome::Returned { range, missing }) => {
                    tested += range.end - range.start - missing.candidates();
                    for range in missing.iter() {
                        self.returned.insert(range);
                    }
                }
                _ => {}
            }
        }
        tested
    }
}

fn simulate(conditions: Conditions, seed: u64) -> Simulated {
    World::new(conditions, seed).run()
}

const CALM: Conditions =
    Conditions { workers: 1_000, skew: 100.0, seconds: 30.0, dying: 0.0, lost_every: None };

/// The table of docs/cluster.md: `cargo test -p kendall-cluster --test it simulation -- --nocapture`.
#[test]
fn a_thousand_workers_end_near_the_bound() {
    let cases = [
        ("equal speeds", Conditions { skew: 1.0, ..CALM }, 1.01, 1.0),
        ("speeds 1 to 100", CALM, 1.02, 1.5),
        ("speeds 1 to 1,000", Conditions { skew: 1_000.0, ..CALM }, 1.05, 10.0),
        ("a tenth die", Conditions { dying: 0.1, ..CALM }, 1.03, 8.0),
        ("a third die", Conditions { dying: 0.33, ..CALM }, 1.05, 10.0),
        ("a message in 1,000 is lost", Conditions { lost_every: Some(1_000), ..CALM }, 1.05, 20.0),
    ];
    for (name, conditions, factor, extra_s) in cases {
        let Simulated { makespan_s, bound_s, repeated } = simulate(conditions, 1);
        println!("| {name} | {bound_s:.1} | {makespan_s:.1} | {:.2} % |", 100.0 * repeated);
        assert!(makespan_s <= bound_s * factor + extra_s, "{name}: {makespan_s} s of {bound_s} s");
        assert!(makespan_s >= bound_s * 0.999, "{name}: faster than possible");
    }
}

#[test]
fn a_few_workers_end_near_the_bound() {
    for workers in [1, 2, 7] {
        let conditions = Conditions { workers, skew: 10.0, seconds: 30.0, ..CALM };
        let Simulated { makespan_s, bound_s, repeated } = simulate(conditions, 1);
        assert!(makespan_s <= bound_s * 1.03 + 1.0, "{workers}: {makespan_s} s of {bound_s} s");
        assert!(repeated == 0.0);
    }
}
