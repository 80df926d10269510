//! The station in virtual time, with scripted workers and clients: thousands of seeds of arrivals, preemption, flights,
//! withdrawals, full stations and shutdowns, under every discipline.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::{env, mem};

use kendall_station::Size;
use kendall_stats::random::{Purpose, Rng, stream};
use rand::RngExt as _;

use super::*;
use crate::metrics::Meters;
use crate::pool::Pool;

const SEEDS: u64 = 4000;

/// A recipient that counts how often an answer begins.
#[derive(Debug)]
struct Client {
    id: u64,
    begun: u64,
}

impl Recipient<u64> for Client {
    fn begun(&mut self, _: &u64) {
        self.begun += 1;
    }
}

/// The work of a flight.
#[derive(Debug)]
struct Work {
    total_ns: i64,
    done_ns: i64,
    begun: bool,
}

type Served = Entry<Pending<Work>>;

/// A scripted worker in the middle of a chunk.
struct Busy {
    entry: Served,
    chunk_from_ns: i64,
    /// Distinguishes the end of this chunk from that of an interrupted one.
    chunk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    ChunkEnds {
        worker: usize,
        chunk: u64,
    },
    /// A client disconnects.
    Leaves {
        id: u64,
    },
    Drain,
    RefuseRest,
}

/// A request at the station, by the test's own account.
struct Inside {
    handle: RequestHandle,
    arrived_ns: i64,
    key: Option<u8>,
}

#[derive(Debug, Default)]
struct Counts {
    arrived: u64,
    admitted: u64,
    answered: u64,
    refused: u64,
    withdrawn: u64,
    make_ways: u64,
    joined: u64,
}

struct World {
    rng: Rng,
    discipline: Discipline,
    capacity: usize,
    chunk_ns: i64,
    arrivals: u64,
    gap_ns: i64,
    /// How often in 100 a request has a key, withdraws early, begins its answer early.
    often: [u32; 3],
    station: StationState<Work, Client, u64>,
    workers: Vec<Option<Busy>>,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    now_ns: i64,
    serial: u64,
    inside: BTreeMap<u64, Inside>,
    counts: Counts,
    /// ∫ N(t) dt and the sum of all times at the station, in ns.
    area: i128,
    sojourns: i128,
    is_open: bool,
    /// The flights that were started, in order of arrival.
    last_first: i64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = stream(seed, Purpose::Request, 0);
        let discipline = Discipline::ALL[rng.random_range(0..Discipline::ALL.len())];
        let (workers, max_waiting) = (rng.random_range(1..5), rng.random_range(0..12));
        let mut world = Self {
            discipline,
            capacity: workers + max_waiting,
            chunk_ns: rng.random_range(5..400),
            arrivals: rng.random_range(1..120),
            gap_ns: rng.random_range(1..600),
            often: [0; 3].map(|_| rng.random_range(0..60)),
            station: StationState::new(discipline, workers, max_waiting),
            workers: (0..workers).map(|_| None).collect(),
            events: BinaryHeap::new(),
            now_ns: 0,
            serial: 0,
            inside: BTreeMap::new(),
            counts: Counts::default(),
            area: 0,
            sojourns: 0,
            is_open: true,
            last_first: 0,
            rng,
        };
        world.after(0, Event::Arrival);
        if world.chance(30) {
            let at_ns = world.rng.random_range(0..12_000);
            world.after(at_ns, Event::Drain);
            let grace_ns = world.rng.random_range(0..3_000);
            world.after(at_ns + grace_ns, Event::RefuseRest);
        }
        world
    }

    fn chance(&mut self, of_100: u32) -> bool {
        self.rng.random_range(0..100) < of_100
    }

    fn after(&mut self, time_ns: i64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((self.now_ns + time_ns, self.serial, event)));
    }

    fn run(mut self) -> Counts {
        while let Some(Reverse((at_ns, _, event))) = self.events.pop() {
            self.area += i128::from(at_ns - self.now_ns) * self.station.inside as i128;
            self.now_ns = at_ns;
            match event {
                Event::Arrival => self.arrive(),
                Event::ChunkEnds { worker, chunk } => self.end_chunk(worker, chunk),
                Event::Leaves { id } => self.leave(id),
                Event::Drain => {
                    self.station.drain();
                    self.is_open = false;
                }
                Event::RefuseRest => self.refuse_rest(),
            }
            self.start_idle_workers();
            self.check();
        }
        assert!(
            self.inside.is_empty() && self.workers.iter().all(Option::is_none),
            "all have left in the end"
        );
        assert_eq!(
            self.area, self.sojourns,
            "Little's law: the integral of N(t) is the sum of all times inside"
        );
        assert!(self.station.by_key.is_empty() && self.station.flights.is_empty());
        self.counts
    }

    fn arrive(&mut self) {
        let id = self.counts.arrived;
        self.counts.arrived += 1;
        if self.counts.arrived < self.arrivals {
            let gap_ns = self.rng.random_range(0..=self.gap_ns);
            self.after(gap_ns, Event::Arrival);
        }
        let total_ns = self.rng.random_range(0..1_000);
        let size = match self.rng.random_range(0..3) {
            0 => Size::Unknown,
            1 => Size::Exactly(total_ns as f64),
            _ => Size::UniformUpTo(1_000.0),
        };
        let job = Job { weight: f64::from(self.rng.random_range(1..5)), size, attained: 0.0 };
        let key = if self.chance(self.often[0]) { Some(self.rng.random_range(0..4)) } else { None };
        let task = Work { total_ns, done_ns: 0, begun: false };
        let client = Client { id, begun: 0 };
        let wanted = key.map(|key| vec![key]);
        let is_full = self.inside.len() == self.capacity;
        match self.station.admit(self.now_ns, job, task, wanted, client) {
            Ok(Admitted { handle, joined, look_up }) => {
                assert!(self.is_open && !is_full);
                let is_asked = key.is_some() && self.inside.values().any(|other| other.key == key);
                assert_eq!(joined, is_asked, "a request joins if and only if one with its key is there");
                self.inside.insert(id, Inside { handle, arrived_ns: self.now_ns, key });
                self.counts.admitted += 1;
                self.counts.joined += u64::from(joined);
                if self.chance(self.often[1]) {
                    let patience_ns = self.rng.random_range(0..2_000);
                    self.after(patience_ns, Event::Leaves { id });
                }
                if let Some(worker) = look_up {
                    assert!(self.discipline.preempts());
                    self.interrupt(worker);
                }
            }
            Err((denied, client)) => {
                assert_eq!(client.id, id, "the recipient is returned");
                assert_eq!(denied, if self.is_open { Denied::Full } else { Denied::Closing });
                assert!(!self.is_open || is_full);
            }
        }
    }

    /// The worker notices it now, a little later, or only after its chunk.
    fn interrupt(&mut self, worker: usize) {
        let delay_ns = self.rng.random_range(0..60);
        if self.chance(80)
            && let Some(Busy { chunk, .. }) = &self.workers[worker]
        {
            let chunk = *chunk;
            self.after(delay_ns, Event::ChunkEnds { worker, chunk });
        }
    }

    fn start_idle_workers(&mut self) {
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_none()
                && let Some(entry) = self.station.take(worker)
            {
                self.start(worker, entry);
            }
        }
    }

    fn start(&mut self, worker: usize, entry: Served) {
        if self.discipline != Discipline::ProcessorSharing {
            let weight: f64 =
                self.station.flights[&entry.item.flight].waiters.iter().map(|waiter| waiter.weight).sum();
            assert_eq!(entry.job.weight, weight, "a flight weighs as much as all its requests");
        }
        if self.discipline == Discipline::Fifo && entry.item.started_ns.is_none() {
            assert!(entry.item.queued_ns >= self.last_first, "first come, first served");
            self.last_first = entry.item.queued_ns;
        }
        self.begin_chunk(worker, entry);
    }

    fn begin_chunk(&mut self, worker: usize, mut entry: Served) {
        entry.item.started_ns.get_or_insert(self.now_ns);
        let left_ns = entry.item.task.total_ns - entry.item.task.done_ns;
        let chunk = self.serial;
        self.after(left_ns.min(self.chunk_ns), Event::ChunkEnds { worker, chunk });
        self.workers[worker] = Some(Busy { entry, chunk_from_ns: self.now_ns, chunk });
    }

    fn end_chunk(&mut self, worker: usize, ended: u64) {
        match &self.workers[worker] {
            Some(Busy { chunk, .. }) if *chunk == ended => {}
            _ => return,
        }
        let Busy { mut entry, chunk_from_ns, .. } = self.workers[worker].take().unwrap();
        let served_ns = self.now_ns - chunk_from_ns;
        entry.item.service_ns += served_ns;
        entry.item.task.done_ns += served_ns;
        if self.chance(5) {
            let key = self.rng.random_range(0..4);
            for waiter in self.station.take_waiting(&[key]) {
                assert_eq!(self.inside[&waiter.recipient.id].key, Some(key));
                self.answered(waiter);
            }
        }
        if entry.item.task.done_ns >= entry.item.task.total_ns {
            self.finish(worker, &entry, Self::answered);
            return;
        }
        if !mem::replace(&mut entry.item.task.begun, true) {
            if self.chance(self.often[2]) {
                self.station.begin(&entry.item, 7);
            } else {
                entry.item.task.begun = false;
            }
        }
        entry.job.attained += served_ns as f64;
        match self.station.after_chunk(worker, &mut entry) {
            Next::GoOn => self.begin_chunk(worker, entry),
            Next::MakeWay => {
                assert!(self.discipline.preempts() || self.discipline == Discipline::ProcessorSharing);
                let others = self.station.serving.iter().enumerate().filter(|&(other, _)| other != worker);
                let is_less_urgent = |other: &Serving| self.station.queue.less_urgent(&other.job, &entry.job);
                assert!(
                    !others.filter_map(|(_, other)| other.as_ref()).any(is_less_urgent),
                    "the least urgent one yields"
                );
                self.counts.make_ways += 1;
                let entry = self.station.exchange(worker, entry).expect("at least the one that was put back");
                self.start(worker, entry);
            }
            Next::Cancel => self.finish(worker, &entry, |_, _| panic!("no client waits for it")),
            Next::Refuse => self.finish(worker, &entry, Self::refused),
        }
    }

    fn finish(&mut self, worker: usize, entry: &Served, end: impl Fn(&mut Self, Waiter<Client>)) {
        let begun = u64::from(entry.item.task.begun);
        for waiter in self.station.finish(worker, &entry.item) {
            assert_eq!(waiter.recipient.begun, begun, "each client's answer begins once");
            end(self, waiter);
        }
    }

    fn answered(&mut self, waiter: Waiter<Client>) {
        self.counts.answered += 1;
        self.ended(&waiter);
    }

    fn refused(&mut self, waiter: Waiter<Client>) {
        self.counts.refused += 1;
        self.ended(&waiter);
    }

    fn ended(&mut self, waiter: &Waiter<Client>) {
        let inside = self.inside.remove(&waiter.recipient.id).expect("each request ends once");
        assert_eq!(inside.arrived_ns, waiter.queued_ns);
        self.sojourns += i128::from(self.now_ns - waiter.queued_ns);
    }

    fn leave(&mut self, id: u64) {
        let Some(inside) = self.inside.remove(&id) else { return };
        let Withdrawn { abandoned } = self.station.withdraw(inside.handle).expect("it is there");
        assert!(self.station.withdraw(inside.handle).is_none(), "it is withdrawn once");
        self.counts.withdrawn += 1;
        self.sojourns += i128::from(self.now_ns - inside.arrived_ns);
        if let Some(worker) = abandoned {
            self.interrupt(worker);
        }
    }

    fn refuse_rest(&mut self) {
        self.is_open = false;
        for waiter in self.station.refuse_rest() {
            self.refused(waiter);
        }
    }

    /// The invariants after every event.
    fn check(&self) {
        let Counts { admitted, answered, refused, withdrawn, .. } = self.counts;
        assert_eq!(self.station.inside, self.inside.len());
        assert_eq!(admitted, answered + refused + withdrawn + self.inside.len() as u64, "conservation");
        let levels = self.station.levels();
        assert_eq!(levels.busy, self.workers.iter().flatten().count());
        let is_idle = self.workers.iter().any(Option::is_none);
        assert!(!is_idle || self.station.queue.is_empty(), "no worker is idle while a flight waits");
        let keys: BTreeSet<u8> = self.inside.values().filter_map(|inside| inside.key).collect();
        assert_eq!(self.station.by_key.len(), keys.len());
    }
}

/// A failing seed prints the command that runs it alone.
#[test]
fn every_request_ends_once_and_littles_law_is_exact_whatever_happens() {
    let only: Option<u64> = env::var("KENDALL_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let mut sum = Counts::default();
    for seed in only.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let counts = catch_unwind(AssertUnwindSafe(|| World::new(seed).run())).unwrap_or_else(|panic| {
            eprintln!("run it alone: KENDALL_SEED={seed} cargo test -p kendall-service whatever_happens");
            resume_unwind(panic)
        });
        sum.answered += counts.answered;
        sum.refused += counts.refused;
        sum.withdrawn += counts.withdrawn;
        sum.make_ways += counts.make_ways;
        sum.joined += counts.joined;
    }
    if only.is_none() {
        let each = [sum.answered, sum.refused, sum.withdrawn, sum.make_ways, sum.joined];
        assert!(each.iter().all(|&count| count > SEEDS / 10), "every case occurs: {sum:?}");
    }
}

/// A worker puts a flight back in two steps, and another thread may act between them.
#[test]
fn a_flight_that_becomes_unwanted_while_it_is_put_back_is_abandoned() {
    let request = |pool: &Arc<Pool<(), Client, u64>>, weight| {
        let job = Job { weight, ..Job::new() };
        pool.admit(job, (), None, Client { id: 0, begun: 0 }).unwrap()
    };
    let contended = || {
        let meters = Arc::new(Meters::new(1, |_| {}));
        let pool = Arc::new(Pool::new(Discipline::PreemptivePriority, 1, 1, meters));
        let first = request(&pool, 1.0);
        let mut stay = pool.take(0).unwrap();
        let urgent = request(&pool, 2.0);
        assert_eq!(pool.after_chunk(0, &mut stay), Next::MakeWay);
        (pool, stay, first, urgent)
    };

    let (pool, stay, _first, _urgent) = contended();
    assert_eq!(pool.refuse_rest().len(), 1);
    let mut again = pool.exchange(0, stay.entry).unwrap();
    assert!(again.interrupt.is_abandoned(), "the server rejects the rest");
    assert_eq!(pool.after_chunk(0, &mut again), Next::Refuse);

    let (pool, stay, first, _urgent) = contended();
    drop(first);
    let urgent = pool.exchange(0, stay.entry).unwrap();
    assert!(!urgent.interrupt.is_abandoned());
    assert_eq!(pool.finish(0, &urgent.entry.item).len(), 1);
    let mut unwanted = pool.take(0).unwrap();
    assert!(unwanted.interrupt.is_abandoned(), "its last client has left");
    assert_eq!(pool.after_chunk(0, &mut unwanted), Next::Cancel);
}
