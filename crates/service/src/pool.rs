//! The station itself: the requests that wait, and which worker serves what.
//!
//! One lock guards it. It is held for the few steps of a queue operation and never while a handler runs, bytes
//! move or anybody waits. Workers without work sleep on a condition variable.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kendall_record::clock::now_ns;
use kendall_station::{Discipline, Entry, Job, Queue, Ticket};
use tokio::sync::oneshot;

use crate::handler::Reply;
use crate::metrics::{Fate, Levels, Meters};

/// A request at the station.
pub(crate) struct Pending<T> {
    pub(crate) task: T,
    /// The client's port.
    pub(crate) port: u16,
    pub(crate) queued_ns: i64,
    /// When a worker first took it up.
    pub(crate) started_ns: Option<i64>,
    /// Its time in service so far.
    pub(crate) service_ns: i64,
    /// Where its answer goes. Closed once the client is gone.
    pub(crate) verdict: oneshot::Sender<Verdict>,
    id: u64,
}

/// What the station says to a request in the end.
#[derive(Debug)]
pub(crate) enum Verdict {
    Answered(Reply),
    Refused,
}

/// What a worker does after a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// Somebody more urgent waits.
    MakeWay,
    /// The client went away.
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

struct State<T> {
    queue: Queue<Pending<T>>,
    /// The tickets of those who wait, by which they can be taken back.
    tickets: HashMap<u64, Ticket>,
    /// What each worker serves.
    serving: Vec<Option<Job>>,
    next_id: u64,
    phase: Phase,
}

/// The station itself.
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    work: Condvar,
    capacity: usize,
    meters: Arc<Meters>,
}

/// A client's claim on the answer to its request. Dropped before the answer came, it cancels the request.
pub(crate) struct Claim<T> {
    id: u64,
    verdict: oneshot::Receiver<Verdict>,
    pool: Arc<Pool<T>>,
}

impl<T> Pool<T> {
    pub(crate) fn new(
        discipline: Discipline,
        workers: usize,
        max_waiting: usize,
        meters: Arc<Meters>,
    ) -> Self {
        let state = State {
            queue: Queue::new(discipline),
            tickets: HashMap::new(),
            serving: vec![None; workers],
            next_id: 0,
            phase: Phase::Open,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            capacity: workers.saturating_add(max_waiting),
            meters,
        }
    }

    /// Admits a request, or says why not.
    pub(crate) fn admit(self: &Arc<Self>, job: Job, task: T, port: u16) -> Result<Claim<T>, Fate> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return Err(Fate::Shutdown);
        }
        if state.queue.len() + state.busy() >= self.capacity {
            return Err(Fate::QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        let id = state.next_id;
        state.next_id += 1;
        let queued_ns = now_ns();
        let pending = Pending { task, port, queued_ns, started_ns: None, service_ns: 0, verdict: sender, id };
        let ticket = state.queue.push(job, pending);
        state.tickets.insert(id, ticket);
        drop(state);
        self.work.notify_one();
        Ok(Claim { id, verdict: receiver, pool: Arc::clone(self) })
    }

    /// The next request for this worker, which has none. Sleeps until there is one; `None` once the server shuts
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

    /// Frees the worker, whose request has ended.
    pub(crate) fn leave(&self, worker: usize) {
        self.lock().serving[worker] = None;
    }

    /// Puts back what the worker serves, and gives it the most urgent request instead.
    pub(crate) fn exchange(&self, worker: usize, entry: Entry<Pending<T>>) -> Option<Entry<Pending<T>>> {
        let mut state = self.lock();
        let id = entry.item.id;
        let ticket = state.queue.resume(entry);
        state.tickets.insert(id, ticket);
        state.start_next(worker)
    }

    /// What a worker is to do after a chunk.
    pub(crate) fn after_chunk(&self, worker: usize, entry: &Entry<Pending<T>>) -> Next {
        let mut state = self.lock();
        state.serving[worker] = Some(entry.job.clone());
        if state.phase == Phase::Refusing {
            Next::Refuse
        } else if entry.item.verdict.is_closed() {
            Next::Cancel
        } else if state.queue.outranks(&entry.job) && state.is_least_urgent(worker, &entry.job) {
            Next::MakeWay
        } else {
            Next::GoOn
        }
    }

    /// How many wait and how many are served.
    pub(crate) fn levels(&self) -> Levels {
        let state = self.lock();
        Levels { waiting: state.queue.len(), busy: state.busy() }
    }

    /// Admits nobody any more; workers stop when nobody waits.
    pub(crate) fn drain(&self) {
        self.lock().phase = Phase::Draining;
        self.work.notify_all();
    }

    /// Refuses all who wait, and those in service at their next chunk.
    pub(crate) fn refuse_rest(&self) {
        let mut state = self.lock();
        state.phase = Phase::Refusing;
        state.tickets.clear();
        let waiting = state.queue.drain();
        drop(state);
        for Entry { item, .. } in waiting {
            self.meters.ended(if item.verdict.is_closed() { Fate::Cancelled } else { Fate::Shutdown });
            let _ = item.verdict.send(Verdict::Refused);
        }
    }

    /// Takes a request back, if it waits. One in service is noticed by its worker after the chunk.
    fn forget(&self, id: u64) {
        let mut state = self.lock();
        let entry = state.tickets.remove(&id).and_then(|ticket| state.queue.remove(ticket));
        drop(state);
        if entry.is_some() {
            self.meters.ended(Fate::Cancelled);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("nobody panics while holding the station")
    }
}

impl<T> State<T> {
    fn start_next(&mut self, worker: usize) -> Option<Entry<Pending<T>>> {
        let entry = self.queue.pop()?;
        self.tickets.remove(&entry.item.id);
        self.serving[worker] = Some(entry.job.clone());
        Some(entry)
    }

    fn busy(&self) -> usize {
        self.serving.iter().flatten().count()
    }

    /// Whether no other worker serves a less urgent job. With several servers, only the least urgent makes way;
    /// its worker will ask within a chunk.
    fn is_least_urgent(&self, worker: usize, job: &Job) -> bool {
        let mut others = self.serving.iter().enumerate().filter(|&(other, _)| other != worker);
        !others.any(|(_, other)| other.as_ref().is_some_and(|other| self.queue.less_urgent(other, job)))
    }
}

impl<T> Claim<T> {
    /// Waits for the verdict.
    pub(crate) async fn verdict(&mut self) -> Verdict {
        // A worker that ends without a word cannot be: it catches the handler's panics.
        (&mut self.verdict).await.unwrap_or(Verdict::Refused)
    }
}

impl<T> Drop for Claim<T> {
    fn drop(&mut self) {
        // In this order: a worker that puts the request back afterwards sees that it is closed, and one that put
        // it back before left a ticket.
        self.verdict.close();
        self.pool.forget(self.id);
    }
}
