//! The assignment of threads: the search of each worker, and the threads that help.
//!
//! A worker shows its search here while it works on it. Threads that no worker needs help with searches that take longer than
//! a chunk, so that a single request uses all processors and many requests share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_service::Interrupt;

use crate::search::{Progress, Search};

/// How long a helping thread works before it checks whether it is still needed there.
const HELP: Duration = Duration::from_millis(1);

/// The searches of the workers.
#[derive(Debug)]
pub(crate) struct Board {
    places: Box<[Mutex<WorkerSlot>]>,
    /// The most threads that may search at a time, including those of workers.
    threads: usize,
    crew: Mutex<Crew>,
    /// Signals that a worker wants help, or that the server ends.
    calls: Condvar,
}

/// The search of one worker.
#[derive(Debug, Default)]
struct WorkerSlot {
    search: Option<Arc<Search>>,
    wants_help: bool,
}

#[derive(Debug, Default)]
struct Crew {
    helping: usize,
    /// Workers that wait until other threads have done their parts.
    waiting: BTreeMap<usize, Interrupt>,
    closing: bool,
}

/// The threads besides the workers. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct Crews {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// One worker's turn at a search.
pub(crate) struct Shift<'a> {
    pub(crate) worker: usize,
    pub(crate) interrupt: &'a Interrupt,
    /// The turn's approximate duration.
    pub(crate) budget: Duration,
    /// The turn's deadline.
    pub(crate) until: Instant,
    pub(crate) help: Help,
}

/// How a worker's turn at a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShiftEnd {
    /// The search has more work.
    More,
    /// The search has found everything.
    Complete,
    /// A sentence took too many steps.
    Failed,
    /// The deadline has passed.
    Late,
}

impl Board {
    pub(crate) fn new(workers: usize, threads: usize) -> Self {
        Self {
            places: (0..workers).map(|_| Mutex::default()).collect(),
            threads,
            crew: Mutex::default(),
            calls: Condvar::new(),
        }
    }

    /// A worker's turn at a search.
    pub(crate) fn work(&self, search: &Arc<Search>, shift: &Shift<'_>) -> ShiftEnd {
        let wants_help = shift.help == Help::Wanted;
        *self.place(shift.worker) = WorkerSlot { search: Some(Arc::clone(search)), wants_help };
        if wants_help {
            self.call();
        }
        let stop = || shift.interrupt.is_abandoned() || Instant::now() >= shift.until;
        let progress = search.advance_unless(shift.budget, &stop);
        let mut crew = self.crew();
        // Equivalent requests share one search.
        crew.wake();
        if progress == Progress::AllTaken && !has_ended(search) {
            crew.waiting.insert(shift.worker, shift.interrupt.clone());
            drop(crew);
            self.await_others(search, shift);
            self.crew().waiting.remove(&shift.worker);
        } else {
            drop(crew);
        }
        *self.place(shift.worker) = WorkerSlot::default();
        if search.is_complete() {
            ShiftEnd::Complete
        } else if search.failure().is_some() {
            ShiftEnd::Failed
        } else if Instant::now() >= shift.until {
            ShiftEnd::Late
        } else {
            ShiftEnd::More
        }
    }

    /// Waits until the last parts, which other threads have taken, are done or given back.
    fn await_others(&self, search: &Search, shift: &Shift<'_>) {
        while !has_ended(search) && !search.has_parts() && !shift.interrupt.is_raised() {
            match shift.until.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => shift.interrupt.wait_timeout(left),
                _ => return,
            }
        }
    }

    fn call(&self) {
        if self.threads > 1 && self.has_room(&self.crew()) {
            self.calls.notify_one();
        }
    }

    /// Whether a thread may help without taking a processor from a worker.
    fn has_room(&self, crew: &Crew) -> bool {
        let is_busy = |place: &&Mutex<WorkerSlot>| place.lock().expect(NO_PANIC).search.is_some();
        self.places.iter().filter(is_busy).count() + crew.helping < self.threads
    }

    /// Helps the workers that want it, until the server ends.
    fn help(&self) {
        let mut crew = self.crew();
        while !crew.closing {
            let wanted = if self.has_room(&crew) { self.wanted() } else { None };
            let Some((worker, search)) = wanted else {
                crew = self.calls.wait(crew).expect(NO_PANIC);
                continue;
            };
            crew.helping += 1;
            drop(crew);
            if search.advance(HELP) == Progress::AllTaken {
                let mut place = self.place(worker);
                if place.search.as_ref().is_some_and(|other| Arc::ptr_eq(other, &search)) {
                    place.wants_help = false;
                }
            }
            drop(search);
            crew = self.crew();
            crew.helping -= 1;
            crew.wake();
        }
    }

    fn wanted(&self) -> Option<(usize, Arc<Search>)> {
        (0..self.places.len()).find_map(|worker| {
            let place = self.place(worker);
            let search = place.search.as_ref().filter(|_| place.wants_help)?;
            Some((worker, Arc::clone(search)))
        })
    }

    fn place(&self, worker: usize) -> MutexGuard<'_, WorkerSlot> {
        self.places[worker].lock().expect(NO_PANIC)
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().expect(NO_PANIC)
    }
}

impl Crew {
    /// Wakes the workers that wait for a part, after a thread has done it or given it back.
    fn wake(&self) {
        self.waiting.values().for_each(Interrupt::wake);
    }
}

const NO_PANIC: &str = "no thread panics while it holds this lock";

/// Whether a search wants help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// Help is wanted: the search takes longer than one chunk.
    Wanted,
    /// Help is not wanted yet: the search may be over before any thread has joined.
    NotYet,
}

fn has_ended(search: &Search) -> bool {
    search.is_complete() || search.is_cancelled() || search.failure().is_some()
}

impl Crews {
    /// Starts the threads that help.
    pub(crate) fn start(board: &Arc<Board>) -> std::io::Result<Self> {
        let mut crews = Self { board: Arc::clone(board), threads: Vec::new() };
        for index in 1..board.threads {
            let board = Arc::clone(board);
            let helper = thread::Builder::new().name(format!("helper-{index}"));
            crews.threads.push(helper.spawn(move || board.help())?);
        }
        Ok(crews)
    }
}

impl Drop for Crews {
    fn drop(&mut self) {
        self.board.crew().closing = true;
        self.board.calls.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}
