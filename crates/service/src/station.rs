//! The station as plain data: the waiting requests, the request that each worker serves, and the recipients of each
//! answer.
//!
//! It reads no clock, starts no thread, takes no lock and only sends through the [`Recipient`]s that it gets, so it runs
//! in virtual time as well as under the [`Pool`](crate::pool::Pool), which adds the lock and the sleeping workers.
//!
//! Equal requests at the same time make one *flight*: it waits and is served once, with the weight of all, and all get
//! its answer.
//!
//! At any time admitted = finished + withdrawn + rejected + inside, where each request counts once.

use std::collections::HashMap;

use kendall_station::{Discipline, Entry, Job, Queue, Ticket};

use crate::turn::Reported;

/// The recipient of the answer to one request.
pub trait Recipient<A>: Send + 'static {
    /// The answer has begun; the work continues.
    fn begun(&mut self, answer: &A);
}

/// The work of a flight, which waits or is in service.
pub(crate) struct Pending<T> {
    pub(crate) task: T,
    /// The instant at which the first request was queued.
    pub(crate) queued_ns: i64,
    /// The instant at which a worker first started the request.
    pub(crate) started_ns: Option<i64>,
    /// The request's time in service up to now.
    pub(crate) service_ns: i64,
    /// The part of that which the handler reported.
    pub(crate) reported: Reported,
    flight: u64,
}

/// A request that waits for the answer of its flight.
pub(crate) struct Waiter<R> {
    pub(crate) queued_ns: i64,
    pub(crate) recipient: R,
    weight: f64,
    id: u64,
}

/// A handle of a request at the station, by which it can be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHandle {
    flight: u64,
    waiter: u64,
}

/// The result of admitting a request.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) handle: RequestHandle,
    /// Whether the request joined equal requests.
    pub(crate) joined: bool,
    /// The worker that should check the queue, because it serves a less urgent request.
    pub(crate) look_up: Option<usize>,
}

/// The reason why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    Full,
    Closing,
}

/// The result of withdrawing a request.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    /// The worker that serves its flight, if no other request waits for that.
    pub(crate) abandoned: Option<usize>,
}

/// The next step of a worker after a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// A more urgent flight waits.
    MakeWay,
    /// All clients disconnected.
    Cancel,
    /// The server shuts down, and its grace period is over.
    Refuse,
}

/// The number of waiting requests and of busy workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) waiting: usize,
    pub(crate) busy: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Serves the requests it has, admits no more.
    Draining,
    /// Rejects the requests it has.
    Refusing,
}

/// Equal requests.
struct Flight<R, A> {
    /// Empty only until a worker notices that all have left.
    waiters: Vec<Waiter<R>>,
    key: Option<Vec<u8>>,
    whereabouts: Whereabouts,
    /// The flight's answer, if that has begun.
    begun: Option<A>,
}

enum Whereabouts {
    Waiting(Ticket),
    Serving(usize),
}

/// The flight that a worker serves.
struct Serving {
    job: Job,
    flight: u64,
}

/// The station: `T` is the work, `R` the recipient of an answer, `A` an answer.
pub(crate) struct StationState<T, R, A> {
    queue: Queue<Pending<T>>,
    flights: HashMap<u64, Flight<R, A>>,
    /// The flights that other requests can join.
    by_key: HashMap<Vec<u8>, u64>,
    serving: Vec<Option<Serving>>,
    /// Requests at the station.
    inside: usize,
    capacity: usize,
    next_id: u64,
    phase: Phase,
}

impl<T, R: Recipient<A>, A: Clone> StationState<T, R, A> {
    /// An empty station of this many workers, with a capacity of `max_waiting` more requests.
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

    /// Admits a request at an instant, or returns the reason why not, and its recipient.
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
        let handle = RequestHandle { flight: known.unwrap_or(id), waiter: id };
        Ok(Admitted { handle, joined: known.is_some(), look_up: self.outranked() })
    }

    /// The next flight for this worker, which has none.
    pub(crate) fn take(&mut self, worker: usize) -> Option<Entry<Pending<T>>> {
        let entry = self.queue.pop()?;
        self.flight(entry.item.flight).whereabouts = Whereabouts::Serving(worker);
        self.serving[worker] = Some(Serving { job: entry.job.clone(), flight: entry.item.flight });
        Some(entry)
    }

    /// Frees the worker, whose flight has ended; returns the requests that wait for its end.
    pub(crate) fn finish(&mut self, worker: usize, pending: &Pending<T>) -> Vec<Waiter<R>> {
        self.serving[worker] = None;
        self.close_flight(pending.flight)
    }

    /// Puts back the flight that the worker serves, and gives it the most urgent one instead.
    pub(crate) fn exchange(
        &mut self,
        worker: usize,
        mut entry: Entry<Pending<T>>,
    ) -> Option<Entry<Pending<T>>> {
        let flight = entry.item.flight;
        // Requests may have joined or left since the worker checked.
        let served = self.serving[worker].take().expect("the worker serves it");
        entry.job.weight = served.job.weight;
        let ticket = self.queue.resume(entry);
        self.flight(flight).whereabouts = Whereabouts::Waiting(ticket);
        self.take(worker)
    }

    /// Begins the answer of a flight: passes it to the recipients that wait for it, now and later.
    pub(crate) fn begin(&mut self, pending: &Pending<T>, answer: A) {
        let flight = self.flight(pending.flight);
        flight.waiters.iter_mut().for_each(|waiter| waiter.recipient.begun(&answer));
        flight.begun = Some(answer);
    }

    /// The next step of a worker after a chunk. Updates the weight of its flight.
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

    /// Whether this flight, which a worker serves, should end at once: no client waits for it, or the rest is rejected.
    pub(crate) fn is_unwanted(&self, pending: &Pending<T>) -> bool {
        self.phase == Phase::Refusing || self.flights[&pending.flight].waiters.is_empty()
    }

    /// Takes the requests of this key from the queue. Empty if none has it, or a worker serves them.
    pub(crate) fn take_waiting(&mut self, key: &[u8]) -> Vec<Waiter<R>> {
        let Some(&flight) = self.by_key.get(key) else { return Vec::new() };
        let Whereabouts::Waiting(ticket) = self.flight(flight).whereabouts else { return Vec::new() };
        self.queue.remove(ticket);
        self.close_flight(flight)
    }

    /// Withdraws one request, whose client disconnected. `None` if it is no longer there.
    pub(crate) fn withdraw(&mut self, handle: RequestHandle) -> Option<Withdrawn> {
        let RequestHandle { flight, waiter } = handle;
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

    /// Stops admitting requests.
    pub(crate) fn drain(&mut self) {
        self.phase = Phase::Draining;
    }

    /// Removes all waiting requests; those in service are rejected when their workers check.
    pub(crate) fn refuse_rest(&mut self) -> Vec<Waiter<R>> {
        self.phase = Phase::Refusing;
        let waiting: Vec<u64> = self.queue.drain().map(|entry| entry.item.flight).collect();
        waiting.into_iter().flat_map(|flight| self.close_flight(flight)).collect()
    }

    /// Whether the station admits requests.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The number of waiting requests and of busy workers.
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

    /// Removes a flight, and returns the requests that waited for it.
    fn close_flight(&mut self, flight: u64) -> Vec<Waiter<R>> {
        let Some(Flight { waiters, key, .. }) = self.flights.remove(&flight) else { return Vec::new() };
        self.inside -= waiters.len();
        self.forget_key(flight, key.as_deref());
        waiters
    }

    /// A flight that all have left releases its key at once, so the key may belong to another by now.
    fn forget_key(&mut self, flight: u64, key: Option<&[u8]>) {
        if let Some(key) = key
            && self.by_key.get(key) == Some(&flight)
        {
            self.by_key.remove(key);
        }
    }

    /// Changes the weight of a flight, and with it its position in the queue.
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

    /// The worker that should check now because it serves a less urgent flight than one that waits, as far as is known
    /// before its chunk is done. Under processor sharing turns last whole chunks.
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

    /// Whether no other worker serves a less urgent job. With several workers, only the least urgent yields; its worker
    /// checks within a chunk.
    fn is_least_urgent(&self, worker: usize, job: &Job) -> bool {
        let mut others = self.serving.iter().enumerate().filter(|&(other, _)| other != worker);
        !others.any(|(_, other)| other.as_ref().is_some_and(|other| self.queue.less_urgent(&other.job, job)))
    }
}

#[cfg(test)]
mod tests;
