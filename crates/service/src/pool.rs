//! The workers' side of the station: the [`StationState`] under a lock, workers that sleep until there is work, and the
//! interrupt tokens of the tasks in service.
//!
//! The lock is held for the few steps of a queue operation and never while a handler runs, bytes move or a thread waits.
//! Workers without work sleep on a condition variable.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kendall_record::clock::now_ns;
use kendall_station::{Discipline, Entry, Job};

use crate::interrupt::Interrupt;
use crate::metrics::{Fate, Meters};
use crate::station::{Denied, Levels, Next, Pending, Recipient, RequestHandle, StationState, Waiter};

/// The station that all threads of a server share: `T` is the work, `R` the recipient of an answer, `A` an answer.
pub(crate) struct Pool<T, R, A> {
    state: Mutex<State<T, R, A>>,
    work: Condvar,
    meters: Arc<Meters>,
}

struct State<T, R, A> {
    station: StationState<T, R, A>,
    /// The token of each worker's task.
    interrupts: Vec<Option<Interrupt>>,
}

/// A task's stay at a worker.
pub(crate) struct Stay<T> {
    pub(crate) entry: Entry<Pending<T>>,
    pub(crate) interrupt: Interrupt,
}

/// A client's claim on the answer to its request. Dropped before the answer, it cancels the request.
pub(crate) struct Claim<T, R: Recipient<A>, A: Clone> {
    handle: RequestHandle,
    pool: Arc<Pool<T, R, A>>,
}

impl<T, R: Recipient<A>, A: Clone> Pool<T, R, A> {
    /// An empty station of this many workers, with a capacity of `max_waiting` more requests.
    pub(crate) fn new(
        discipline: Discipline,
        workers: usize,
        max_waiting: usize,
        meters: Arc<Meters>,
    ) -> Self {
        let station = StationState::new(discipline, workers, max_waiting);
        let state = State { station, interrupts: vec![None; workers] };
        Self { state: Mutex::new(state), work: Condvar::new(), meters }
    }

    /// Admits a request, or returns the reason why not, and its recipient.
    pub(crate) fn admit(
        self: &Arc<Self>,
        job: Job,
        task: T,
        key: Option<Vec<u8>>,
        recipient: R,
    ) -> Result<Claim<T, R, A>, (Denied, R)> {
        let mut state = self.lock();
        let admitted = state.station.admit(now_ns(), job, task, key, recipient)?;
        let interrupt = admitted.look_up.and_then(|worker| state.interrupts[worker].clone());
        drop(state);
        if admitted.joined {
            self.meters.joined.inc();
        } else {
            self.work.notify_one();
        }
        if let Some(interrupt) = interrupt {
            interrupt.raise();
        }
        Ok(Claim { handle: admitted.handle, pool: Arc::clone(self) })
    }

    /// The next flight for the calling worker, which has none. Sleeps until there is one; `None` once the server shuts
    /// down and no request waits.
    pub(crate) fn take(&self, worker: usize) -> Option<Stay<T>> {
        let interrupt = Interrupt::new();
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.station.take(worker) {
                return Some(state.stay(worker, entry, interrupt));
            }
            if !state.station.is_open() {
                return None;
            }
            state = self.work.wait(state).expect(NO_PANIC);
        }
    }

    /// Frees the worker, whose flight has ended; returns the requests that wait for its end.
    pub(crate) fn finish(&self, worker: usize, pending: &Pending<T>) -> Vec<Waiter<R>> {
        let mut state = self.lock();
        state.interrupts[worker] = None;
        state.station.finish(worker, pending)
    }

    /// Puts back the flight that the calling worker serves, and gives it the most urgent one instead.
    pub(crate) fn exchange(&self, worker: usize, entry: Entry<Pending<T>>) -> Option<Stay<T>> {
        let interrupt = Interrupt::new();
        let mut state = self.lock();
        let entry = state.station.exchange(worker, entry)?;
        Some(state.stay(worker, entry, interrupt))
    }

    /// Begins the answer of a flight: passes it to the recipients that wait for it, now and later.
    pub(crate) fn begin(&self, pending: &Pending<T>, answer: A) {
        self.lock().station.begin(pending, answer);
    }

    /// The next step of a worker after a chunk. Updates the weight of its flight.
    pub(crate) fn after_chunk(&self, worker: usize, stay: &mut Stay<T>) -> Next {
        // Lowered before the station is read: a thread that changes the station raises it afterwards.
        stay.interrupt.lower();
        self.lock().station.after_chunk(worker, &mut stay.entry)
    }

    /// Takes the requests of this key from the queue. Empty if none has it, or a worker serves them.
    pub(crate) fn take_waiting(&self, key: &[u8]) -> Vec<Waiter<R>> {
        self.lock().station.take_waiting(key)
    }

    /// The number of waiting requests and of busy workers.
    pub(crate) fn levels(&self) -> Levels {
        self.lock().station.levels()
    }

    /// Stops admitting requests; workers stop when none waits.
    pub(crate) fn drain(&self) {
        self.lock().station.drain();
        self.work.notify_all();
    }

    /// Removes all waiting requests, and has those in service rejected as soon as their workers check.
    pub(crate) fn refuse_rest(&self) -> Vec<Waiter<R>> {
        let mut state = self.lock();
        let refused = state.station.refuse_rest();
        let serving: Vec<Interrupt> = state.interrupts.iter().flatten().cloned().collect();
        drop(state);
        serving.iter().for_each(Interrupt::abandon);
        refused
    }

    /// Withdraws a request whose client disconnected.
    fn forget(&self, handle: RequestHandle) {
        let mut state = self.lock();
        let Some(withdrawn) = state.station.withdraw(handle) else { return };
        let interrupt = withdrawn.abandoned.and_then(|worker| state.interrupts[worker].clone());
        drop(state);
        self.meters.ended(Fate::Cancelled);
        if let Some(interrupt) = interrupt {
            interrupt.abandon();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, R, A>> {
        self.state.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "no thread panics while it holds the station";

impl<T, R: Recipient<A>, A: Clone> State<T, R, A> {
    fn stay(&mut self, worker: usize, entry: Entry<Pending<T>>, interrupt: Interrupt) -> Stay<T> {
        // A flight can become unwanted after its worker left it and before this stay: its last token had no effect.
        if self.station.is_unwanted(&entry.item) {
            interrupt.abandon();
        }
        self.interrupts[worker] = Some(interrupt.clone());
        Stay { entry, interrupt }
    }
}

impl<T, R: Recipient<A>, A: Clone> Drop for Claim<T, R, A> {
    fn drop(&mut self) {
        self.pool.forget(self.handle);
    }
}
