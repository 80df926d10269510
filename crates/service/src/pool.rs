//! The station itself: the requests that wait, and which worker serves what.
//!
//! Requests that ask the same while one of them is there make one *flight*: it waits and is served once, with the
//! weight of all, and all get its answer. One lock guards the station. It is held for the few steps of a queue
//! operation and never while a handler runs, bytes move or anybody waits. Workers without work sleep on a
//! condition variable.

use std::collections::HashMap;
use std::mem::replace;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kendall_record::clock::now_ns;
use kendall_station::{Discipline, Entry, Job, Queue, Ticket};
use tokio::sync::oneshot;

use crate::handler::Reply;
use crate::metrics::{Fate, Levels, Meters};

/// The work of a flight, which waits or is in the hands of a worker.
pub(crate) struct Pending<T> {
    pub(crate) task: T,
    /// When its first request was queued.
    pub(crate) queued_ns: i64,
    /// When a worker first took it up.
    pub(crate) started_ns: Option<i64>,
    /// Its time in service so far.
    pub(crate) service_ns: i64,
    flight: u64,
}

/// A request that awaits the answer of its flight.
pub(crate) struct Waiter {
    /// The client's port.
    pub(crate) port: u16,
    pub(crate) queued_ns: i64,
    /// Where its answer goes.
    pub(crate) verdict: oneshot::Sender<Word>,
    weight: f64,
    id: u64,
}

/// What the station says to a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The answer begins; another verdict says when the work is over.
    Begun(Reply),
    /// The work is over. Of an answer that has begun, all is there.
    Answered(Reply),
    Refused,
}

/// A verdict on its way, and where the next one will come, if there is to be one.
#[derive(Debug)]
pub(crate) struct Word {
    verdict: Verdict,
    next: Option<oneshot::Receiver<Self>>,
}

impl Word {
    pub(crate) fn last(verdict: Verdict) -> Self {
        Self { verdict, next: None }
    }
}

/// What a worker does after a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// Somebody more urgent waits.
    MakeWay,
    /// All clients went away.
    Cancel,
    /// The server shuts down, and its grace is over.
    Refuse,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Serves what it has, admits nobody.
    Draining,
    /// Refuses what it has.
    Refusing,
}

/// Requests that ask the same.
struct Flight {
    /// Empty only while a worker has not noticed yet that all have left.
    waiters: Vec<Waiter>,
    key: Option<Vec<u8>>,
    place: Place,
    /// Its answer, if that has begun.
    begun: Option<Reply>,
}

enum Place {
    Waiting(Ticket),
    Serving(usize),
}

struct State<T> {
    queue: Queue<Pending<T>>,
    flights: HashMap<u64, Flight>,
    /// The flights that others may join.
    by_key: HashMap<Vec<u8>, u64>,
    /// What each worker serves.
    serving: Vec<Option<Job>>,
    /// Requests at the station.
    admitted: usize,
    next_id: u64,
    phase: Phase,
}

/// The station itself.
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    work: Condvar,
    capacity: usize,
    meters: Arc<Meters>,
    /// Asks a worker to look up before its chunk is done.
    interrupt: Box<dyn Fn(usize) + Send + Sync>,
}

/// A client's claim on the answer to its request. Dropped before the answer came, it cancels the request.
pub(crate) struct Claim<T> {
    flight: u64,
    waiter: u64,
    word: oneshot::Receiver<Word>,
    pool: Arc<Pool<T>>,
}

impl<T> Pool<T> {
    pub(crate) fn new(
        discipline: Discipline,
        workers: usize,
        max_waiting: usize,
        meters: Arc<Meters>,
        interrupt: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            queue: Queue::new(discipline),
            flights: HashMap::new(),
            by_key: HashMap::new(),
            serving: vec![None; workers],
            admitted: 0,
            next_id: 0,
            phase: Phase::Open,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            capacity: workers.saturating_add(max_waiting),
            meters,
            interrupt: Box::new(interrupt),
        }
    }

    /// Admits a request, or says why not.
    pub(crate) fn admit(
        self: &Arc<Self>,
        job: Job,
        task: T,
        key: Option<Vec<u8>>,
        port: u16,
    ) -> Result<Claim<T>, Fate> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return Err(Fate::Shutdown);
        }
        if state.admitted >= self.capacity {
            return Err(Fate::QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        let id = state.take_id();
        let waiter = Waiter { port, queued_ns: now_ns(), verdict: sender, weight: job.weight, id };
        state.admitted += 1;
        let known = key.as_ref().and_then(|key| state.by_key.get(key)).copied();
        let flight = match known {
            Some(flight) => {
                state.join(flight, waiter);
                self.meters.joined.inc();
                flight
            }
            None => {
                state.open_flight(id, job, task, key, waiter);
                self.work.notify_one();
                id
            }
        };
        let outranked = state.outranked();
        drop(state);
        if let Some(worker) = outranked {
            (self.interrupt)(worker);
        }
        Ok(Claim { flight, waiter: id, word: receiver, pool: Arc::clone(self) })
    }

    /// The next flight for this worker, which has none. Sleeps until there is one; `None` once the server shuts
    /// down and nobody waits.
    pub(crate) fn take(&self, worker: usize) -> Option<Entry<Pending<T>>> {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.start_next(worker) {
                return Some(entry);
            }
            if state.phase != Phase::Open {
                return None;
            }
            state = self.work.wait(state).expect("nobody panics while holding the station");
        }
    }

    /// Frees the worker, whose flight has ended; returns those who await its end.
    pub(crate) fn leave(&self, worker: usize, pending: &Pending<T>) -> Vec<Waiter> {
        let mut state = self.lock();
        state.serving[worker] = None;
        state.close_flight(pending.flight)
    }

    /// Puts back what the worker serves, and gives it the most urgent flight instead.
    pub(crate) fn exchange(&self, worker: usize, entry: Entry<Pending<T>>) -> Option<Entry<Pending<T>>> {
        let mut state = self.lock();
        let flight = entry.item.flight;
        let ticket = state.queue.resume(entry);
        state.flight(flight).place = Place::Waiting(ticket);
        state.start_next(worker)
    }

    /// The answer of a flight has begun: tells those who await it, and those who will.
    pub(crate) fn begin(&self, pending: &Pending<T>, reply: &Reply) {
        let mut state = self.lock();
        let flight = state.flight(pending.flight);
        flight.begun = Some(reply.clone());
        let told: Vec<_> = flight.waiters.iter_mut().map(|waiter| waiter.renew(reply)).collect();
        drop(state);
        for (sender, word) in told {
            // Whoever went away in this very instant is no longer waiting.
            let _ = sender.send(word);
        }
    }

    /// What a worker is to do after a chunk. Updates the weight of what it serves.
    pub(crate) fn after_chunk(&self, worker: usize, entry: &mut Entry<Pending<T>>) -> Next {
        let mut state = self.lock();
        let job = state.serving[worker].as_mut().expect("the worker serves it");
        job.attained = entry.job.attained;
        entry.job.weight = job.weight;
        if state.phase == Phase::Refusing {
            Next::Refuse
        } else if state.flight(entry.item.flight).waiters.is_empty() {
            Next::Cancel
        } else if state.queue.outranks(&entry.job) && state.is_least_urgent(worker, &entry.job) {
            Next::MakeWay
        } else {
            Next::GoOn
        }
    }

    /// Takes those from the queue who ask what this key says. Empty if nobody does, or a worker has them.
    pub(crate) fn take_waiting(&self, key: &[u8]) -> Vec<Waiter> {
        let mut state = self.lock();
        let Some(&flight) = state.by_key.get(key) else { return Vec::new() };
        let Place::Waiting(ticket) = state.flight(flight).place else { return Vec::new() };
        state.queue.remove(ticket);
        state.close_flight(flight)
    }

    /// How many wait and how many are served.
    pub(crate) fn levels(&self) -> Levels {
        let state = self.lock();
        let is_served =
            |flight: &&Flight| matches!(flight.place, Place::Serving(_)) && !flight.waiters.is_empty();
        let served = state.flights.values().filter(is_served).count();
        Levels { waiting: state.admitted - served, busy: state.serving.iter().flatten().count() }
    }

    /// Admits nobody any more; workers stop when nobody waits.
    pub(crate) fn drain(&self) {
        self.lock().phase = Phase::Draining;
        self.work.notify_all();
    }

    /// Refuses all who wait, and those in service as soon as their workers look up.
    pub(crate) fn refuse_rest(&self) {
        let mut state = self.lock();
        state.phase = Phase::Refusing;
        let waiting: Vec<u64> = state.queue.drain().map(|entry| entry.item.flight).collect();
        let refused: Vec<Waiter> =
            waiting.into_iter().flat_map(|flight| state.close_flight(flight)).collect();
        let workers = state.serving.len();
        drop(state);
        for waiter in refused {
            self.meters.ended(Fate::Shutdown);
            let _ = waiter.verdict.send(Word::last(Verdict::Refused));
        }
        (0..workers).for_each(|worker| (self.interrupt)(worker));
    }

    /// Takes a request back whose client went away.
    fn forget(&self, flight: u64, waiter: u64) {
        let mut state = self.lock();
        let Some(left) = state.withdraw(flight, waiter) else { return };
        drop(state);
        self.meters.ended(Fate::Cancelled);
        if let Left::Nobody { served_by: Some(worker) } = left {
            (self.interrupt)(worker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("nobody panics while holding the station")
    }
}

/// Who awaits a flight after one has left.
enum Left {
    Somebody,
    Nobody { served_by: Option<usize> },
}

impl<T> State<T> {
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn flight(&mut self, flight: u64) -> &mut Flight {
        self.flights.get_mut(&flight).expect("a flight is known as long as it waits or is served")
    }

    fn open_flight(&mut self, id: u64, job: Job, task: T, key: Option<Vec<u8>>, waiter: Waiter) {
        let queued_ns = waiter.queued_ns;
        let pending = Pending { task, queued_ns, started_ns: None, service_ns: 0, flight: id };
        let ticket = self.queue.push(job, pending);
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), id);
        }
        self.flights
            .insert(id, Flight { waiters: vec![waiter], key, place: Place::Waiting(ticket), begun: None });
    }

    fn join(&mut self, flight: u64, mut waiter: Waiter) {
        let weight = waiter.weight;
        let known = self.flight(flight);
        if let Some(reply) = &known.begun {
            let (sender, word) = waiter.renew(reply);
            let _ = sender.send(word);
        }
        known.waiters.push(waiter);
        self.add_weight(flight, weight);
    }

    /// Forgets a flight, and returns those who awaited it.
    fn close_flight(&mut self, flight: u64) -> Vec<Waiter> {
        let Some(Flight { waiters, key, .. }) = self.flights.remove(&flight) else { return Vec::new() };
        self.admitted -= waiters.len();
        self.forget_key(flight, key.as_deref());
        waiters
    }

    /// A flight that all have left gives up its key at once, so the key may belong to another by now.
    fn forget_key(&mut self, flight: u64, key: Option<&[u8]>) {
        if let Some(key) = key
            && self.by_key.get(key) == Some(&flight)
        {
            self.by_key.remove(key);
        }
    }

    /// Takes one request out of its flight. `None` if it is no longer there.
    fn withdraw(&mut self, flight: u64, waiter: u64) -> Option<Left> {
        let waiters = &mut self.flights.get_mut(&flight)?.waiters;
        let index = waiters.iter().position(|other| other.id == waiter)?;
        let weight = waiters.remove(index).weight;
        let is_empty = waiters.is_empty();
        self.admitted -= 1;
        if !is_empty {
            self.add_weight(flight, -weight);
            return Some(Left::Somebody);
        }
        match self.flight(flight).place {
            Place::Waiting(ticket) => {
                self.queue.remove(ticket);
                self.close_flight(flight);
                Some(Left::Nobody { served_by: None })
            }
            Place::Serving(worker) => {
                let key = self.flight(flight).key.take();
                self.forget_key(flight, key.as_deref());
                Some(Left::Nobody { served_by: Some(worker) })
            }
        }
    }

    /// Changes the weight of a flight, and with it its place in the queue.
    fn add_weight(&mut self, flight: u64, weight: f64) {
        let ticket = match self.flight(flight).place {
            Place::Serving(worker) => {
                self.serving[worker].as_mut().expect("the worker serves it").weight += weight;
                return;
            }
            Place::Waiting(ticket) => ticket,
        };
        // There, whoever is put back goes to the end, and weights do not count.
        if self.queue.discipline() == Discipline::ProcessorSharing {
            return;
        }
        let mut entry = self.queue.remove(ticket).expect("it waits");
        entry.job.weight += weight;
        let ticket = self.queue.resume(entry);
        self.flight(flight).place = Place::Waiting(ticket);
    }

    fn start_next(&mut self, worker: usize) -> Option<Entry<Pending<T>>> {
        let entry = self.queue.pop()?;
        self.flight(entry.item.flight).place = Place::Serving(worker);
        self.serving[worker] = Some(entry.job.clone());
        Some(entry)
    }

    /// The worker that should look up now because somebody more urgent waits than it serves, as far as is known
    /// before its chunk is done. In processor sharing turns last whole chunks.
    fn outranked(&self) -> Option<usize> {
        if self.queue.discipline() == Discipline::ProcessorSharing {
            return None;
        }
        let mut least: Option<(usize, &Job)> = None;
        for (worker, job) in self.serving.iter().enumerate() {
            let job = job.as_ref()?; // A free worker will take it.
            if least.is_none_or(|(_, least)| self.queue.less_urgent(job, least)) {
                least = Some((worker, job));
            }
        }
        least.filter(|(_, job)| self.queue.outranks(job)).map(|(worker, _)| worker)
    }

    /// Whether no other worker serves a less urgent job. With several servers, only the least urgent makes way;
    /// its worker will ask within a chunk.
    fn is_least_urgent(&self, worker: usize, job: &Job) -> bool {
        let mut others = self.serving.iter().enumerate().filter(|&(other, _)| other != worker);
        !others.any(|(_, other)| other.as_ref().is_some_and(|other| self.queue.less_urgent(other, job)))
    }
}

impl Waiter {
    /// The word that its answer has begun, where that goes, and, from now on, a new place for the next one.
    fn renew(&mut self, reply: &Reply) -> (oneshot::Sender<Word>, Word) {
        let (sender, receiver) = oneshot::channel();
        let word = Word { verdict: Verdict::Begun(reply.clone()), next: Some(receiver) };
        (replace(&mut self.verdict, sender), word)
    }
}

impl<T> Claim<T> {
    /// Waits for the verdict; after [`Verdict::Begun`], for the next.
    pub(crate) async fn verdict(&mut self) -> Verdict {
        // A worker that ends without a word cannot be: it catches the handler's panics.
        let Ok(Word { verdict, next }) = (&mut self.word).await else { return Verdict::Refused };
        if let Some(next) = next {
            self.word = next;
        }
        verdict
    }
}

impl<T> Drop for Claim<T> {
    fn drop(&mut self) {
        self.pool.forget(self.flight, self.waiter);
    }
}
