//! The station as plain data: which requests wait, which worker serves what, and who awaits each answer.
//!
//! It reads no clock, starts no thread, takes no lock and sends nothing but through the [`Recipient`]s it is given, so it
//! runs in virtual time as well as under the [`Pool`](crate::pool::Pool), which adds the lock and the sleeping workers.
//!
//! Requests that ask the same while one of them is there make one *flight*: it waits and is served once, with the
//! weight of all, and all get its answer.
//!
//! At any time admitted = finished + withdrawn + refused + inside, where each request counts once.

use std::collections::HashMap;

use kendall_station::{Discipline, Entry, Job, Queue, Ticket};

use crate::turn::Reported;

/// Where the answer to one request goes.
pub trait Recipient<A>: Send + 'static {
    /// The answer has begun; the work goes on.
    fn begun(&mut self, answer: &A);
}

/// The work of a flight, which waits or is in the hands of a worker.
pub(crate) struct Pending<T> {
    pub(crate) task: T,
    /// When its first request was queued.
    pub(crate) queued_ns: i64,
    /// When a worker first took it up.
    pub(crate) started_ns: Option<i64>,
    /// Its time in service so far.
    pub(crate) service_ns: i64,
    /// What the handler reported of that.
    pub(crate) reported: Reported,
    flight: u64,
}

/// A request that awaits the answer of its flight.
pub(crate) struct Waiter<R> {
    pub(crate) queued_ns: i64,
    pub(crate) recipient: R,
    weight: f64,
    id: u64,
}

/// A request's place at the station, by which it can be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    flight: u64,
    waiter: u64,
}

/// What admitting a request came to.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) place: Place,
    /// Whether it joined others that ask the same.
    pub(crate) joined: bool,
    /// The worker that should look up, for it serves something less urgent.
    pub(crate) look_up: Option<usize>,
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    Full,
    Closing,
}

/// A request was taken back.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    /// The worker that serves its flight, if no other request awaits that any more.
    pub(crate) abandoned: Option<usize>,
}

/// What a worker does after a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// A more urgent flight waits.
    MakeWay,
    /// All clients went away.
    Cancel,
    /// The server shuts down, and its grace is over.
    Refuse,
}

/// How many requests wait, and how many workers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) waiting: usize,
    pub(crate) busy: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Serves what it has, admits no more.
    Draining,
    /// Refuses what it has.
    Refusing,
}

/// Requests that ask the same.
struct Flight<R, A> {
    /// Empty only while a worker has not noticed yet that all have left.
    waiters: Vec<Waiter<R>>,
    key: Option<Vec<u8>>,
    whereabouts: Whereabouts,
    /// Its answer, if that has begun.
    begun: Option<A>,
}

enum Whereabouts {
    Waiting(Ticket),
    Serving(usize),
}

/// What a worker serves.
struct Serving {
    job: Job,
    flight: u64,
}

/// The station: `T` is the work, `R` where an answer goes, `A` an answer.
pub(crate) struct Floor<T, R, A> {
    queue: Queue<Pending<T>>,
    flights: HashMap<u64, Flight<R, A>>,
    /// The flights that others may join.
    by_key: HashMap<Vec<u8>, u64>,
    serving: Vec<Option<Serving>>,
    /// Requests at the station.
    inside: usize,
    capacity: usize,
    next_id: u64,
    phase: Phase,
}

impl<T, R: Recipient<A>, A: Clone> Floor<T, R, A> {
    /// An empty station of this many workers, with room for `max_waiting` requests more.
    pub(crate) fn new(discipline: Discipline, workers: usize, max_waiting: usize) -> Self {
        Self {
            queue: Queue::new(discipline),
            flights: HashMap::new(),
            by_key: HashMap::new(),
            serving: (0..workers).map(|_| None).collect(),
            inside: 0,
            capacity: workers.saturating_add(max_waiting),
            next_id: 0,
            phase: Phase::Open,
        }
    }

    /// Admits a request at an instant, or says why not and gives its recipient back.
    pub(crate) fn admit(
        &mut self,
        now_ns: i64,
        job: Job,
        task: T,
        key: Option<Vec<u8>>,
        recipient: R,
    ) -> Result<Admitted, (Denied, R)> {
        if self.phase != Phase::Open {
            return Err((Denied::Closing, recipient));
        }
        if self.inside >= self.capacity {
            return Err((Denied::Full, recipient));
        }
        self.next_id += 1;
        let id = self.next_id;
        let waiter = Waiter { queued_ns: now_ns, recipient, weight: job.weight, id };
        self.inside += 1;
        let known = key.as_ref().and_then(|key| self.by_key.get(key)).copied();
        match known {
            Some(flight) => self.join(flight, waiter),
            None => self.open_flight(id, job, task, key, waiter),
        }
        let place = Place { flight: known.unwrap_or(id), waiter: id };
        Ok(Admitted { place, joined: known.is_some(), look_up: self.outranked() })
    }

    /// The next flight for this worker, which has none.
    pub(crate) fn take(&mut self, worker: usize) -> Option<Entry<Pending<T>>> {
        let entry = self.queue.pop()?;
        self.flight(entry.item.flight).whereabouts = Whereabouts::Serving(worker);
        self.serving[worker] = Some(Serving { job: entry.job.clone(), flight: entry.item.flight });
        Some(entry)
    }

    /// Frees the worker, whose flight has ended; returns those who await its end.
    pub(crate) fn finish(&mut self, worker: usize, pending: &Pending<T>) -> Vec<Waiter<R>> {
        self.serving[worker] = None;
        self.close_flight(pending.flight)
    }

    /// Puts back what the worker serves, and gives it the most urgent flight instead.
    pub(crate) fn exchange(
        &mut self,
        worker: usize,
        mut entry: Entry<Pending<T>>,
    ) -> Option<Entry<Pending<T>>> {
        let flight = entry.item.flight;
        // Requests may have joined or left since the worker asked.
        let served = self.serving[worker].take().expect("the worker serves it");
        entry.job.weight = served.job.weight;
        let ticket = self.queue.resume(entry);
        self.flight(flight).whereabouts = Whereabouts::Waiting(ticket);
        self.take(worker)
    }

    /// The answer of a flight has begun: tells those who await it, and those who will.
    pub(crate) fn begin(&mut self, pending: &Pending<T>, answer: A) {
        let flight = self.flight(pending.flight);
        flight.waiters.iter_mut().for_each(|waiter| waiter.recipient.begun(&answer));
        flight.begun = Some(answer);
    }

    /// What a worker is to do after a chunk. Updates the weight of what it serves.
    pub(crate) fn after_chunk(&mut self, worker: usize, entry: &mut Entry<Pending<T>>) -> Next {
        let job = &mut self.serving[worker].as_mut().expect("the worker serves it").job;
        job.attained = entry.job.attained;
        entry.job.weight = job.weight;
        if self.phase == Phase::Refusing {
            Next::Refuse
        } else if self.flight(entry.item.flight).waiters.is_empty() {
            Next::Cancel
        } else if self.queue.outranks(&entry.job) && self.is_least_urgent(worker, &entry.job) {
            Next::MakeWay
        } else {
            Next::GoOn
        }
    }

    /// Takes the requests of this key from the queue. Empty if none has it, or a worker serves them.
    pub(crate) fn take_waiting(&mut self, key: &[u8]) -> Vec<Waiter<R>> {
        let Some(&flight) = self.by_key.get(key) else { return Vec::new() };
        let Whereabouts::Waiting(ticket) = self.flight(flight).whereabouts else { return Vec::new() };
        self.queue.remove(ticket);
        self.close_flight(flight)
    }

    /// Takes one request back, whose client went away. `None` if it is no longer there.
    pub(crate) fn withdraw(&mut self, place: Place) -> Option<Withdrawn> {
        let Place { flight, waiter } = place;
        let waiters = &mut self.flights.get_mut(&flight)?.waiters;
        let index = waiters.iter().position(|other| other.id == waiter)?;
        let weight = waiters.remove(index).weight;
        let is_empty = waiters.is_empty();
        self.inside -= 1;
        if !is_empty {
            self.add_weight(flight, -weight);
            return Some(Withdrawn { abandoned: None });
        }
        match self.flight(flight).whereabouts {
            Whereabouts::Waiting(ticket) => {
                self.queue.remove(ticket);
                self.close_flight(flight);
                Some(Withdrawn { abandoned: None })
            }
            Whereabouts::Serving(worker) => {
                let key = self.flight(flight).key.take();
                self.forget_key(flight, key.as_deref());
                Some(Withdrawn { abandoned: Some(worker) })
            }
        }
    }

    /// Admits no request any more.
    pub(crate) fn drain(&mut self) {
        self.phase = Phase::Draining;
    }

    /// Gives up all who wait; those in service are refused when their workers look up.
    pub(crate) fn refuse_rest(&mut self) -> Vec<Waiter<R>> {
        self.phase = Phase::Refusing;
        let waiting: Vec<u64> = self.queue.drain().map(|entry| entry.item.flight).collect();
        waiting.into_iter().flat_map(|flight| self.close_flight(flight)).collect()
    }

    /// Whether requests are still admitted.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// How many requests wait and how many workers serve.
    pub(crate) fn levels(&self) -> Levels {
        let serving = || self.serving.iter().flatten();
        let is_awaited = |serving: &&Serving| !self.flights[&serving.flight].waiters.is_empty();
        Levels { waiting: self.inside - serving().filter(is_awaited).count(), busy: serving().count() }
    }

    fn flight(&mut self, flight: u64) -> &mut Flight<R, A> {
        self.flights.get_mut(&flight).expect("a flight is known as long as it waits or is served")
    }

    fn open_flight(&mut self, id: u64, job: Job, task: T, key: Option<Vec<u8>>, waiter: Waiter<R>) {
        let queued_ns = waiter.queued_ns;
        let pending = Pending {
            task,
            queued_ns,
            started_ns: None,
            service_ns: 0,
            reported: Reported::default(),
            flight: id,
        };
        let whereabouts = Whereabouts::Waiting(self.queue.push(job, pending));
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), id);
        }
        self.flights.insert(id, Flight { waiters: vec![waiter], key, whereabouts, begun: None });
    }

    fn join(&mut self, flight: u64, mut waiter: Waiter<R>) {
        let weight = waiter.weight;
        let known = self.flight(flight);
        if let Some(answer) = &known.begun {
            waiter.recipient.begun(answer);
        }
        known.waiters.push(waiter);
        self.add_weight(flight, weight);
    }

    /// Forgets a flight, and returns those who awaited it.
    fn close_flight(&mut self, flight: u64) -> Vec<Waiter<R>> {
        let Some(Flight { waiters, key, .. }) = self.flights.remove(&flight) else { return Vec::new() };
        self.inside -= waiters.len();
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

    /// Changes the weight of a flight, and with it its place in the queue.
    fn add_weight(&mut self, flight: u64, weight: f64) {
        let ticket = match self.flight(flight).whereabouts {
            Whereabouts::Serving(worker) => {
                self.serving[worker].as_mut().expect("the worker serves it").job.weight += weight;
                return;
            }
            Whereabouts::Waiting(ticket) => ticket,
        };
        // There, a job that is put back goes to the end, and weights do not count.
        if self.queue.discipline().shares() {
            return;
        }
        let mut entry = self.queue.remove(ticket).expect("it waits");
        entry.job.weight += weight;
        let ticket = self.queue.resume(entry);
        self.flight(flight).whereabouts = Whereabouts::Waiting(ticket);
    }

    /// The worker that should look up now because a more urgent flight waits than it serves, as far as is known
    /// before its chunk is done. In processor sharing turns last whole chunks.
    fn outranked(&self) -> Option<usize> {
        if self.queue.discipline().shares() {
            return None;
        }
        let mut least: Option<(usize, &Job)> = None;
        for (worker, serving) in self.serving.iter().enumerate() {
            let job = &serving.as_ref()?.job; // A free worker will take it.
            if least.is_none_or(|(_, least)| self.queue.less_urgent(job, least)) {
                least = Some((worker, job));
            }
        }
        least.filter(|(_, job)| self.queue.outranks(job)).map(|(worker, _)| worker)
    }

    /// Whether no other worker serves a less urgent job. With several workers, only the least urgent makes way;
    /// its worker will ask within a chunk.
    fn is_least_urgent(&self, worker: usize, job: &Job) -> bool {
        let mut others = self.serving.iter().enumerate().filter(|&(other, _)| other != worker);
        !others.any(|(_, other)| other.as_ref().is_some_and(|other| self.queue.less_urgent(&other.job, job)))
    }
}

#[cfg(test)]
mod tests;
