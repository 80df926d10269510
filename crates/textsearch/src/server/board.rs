//! Who works on what: which search each worker is at, and which threads help.
//!
//! A worker shows its search here while it works on it. Threads that no worker needs help with searches that take longer than
//! a chunk, so that one request has all processors and many share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_service::Interrupt;

use crate::search::{Progress, Search};

/// How long a thread that helps works before it asks whether it is still needed there.
const HELP: Duration = Duration::from_millis(1);

/// What the workers are at.
#[derive(Debug)]
pub(crate) struct Board {
    places: Box<[Mutex<Place>]>,
    /// How many threads may search at a time, those of workers included.
    threads: usize,
    crew: Mutex<Crew>,
    /// A worker wants help, or all is over.
    calls: Condvar,
}

/// What one worker is at.
#[derive(Debug, Default)]
struct Place {
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

/// The threads beside the workers. Dropped, they end.
#[derive(Debug)]
pub(crate) struct Crews {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// One worker's turn at a search.
pub(crate) struct Shift<'a> {
    pub(crate) worker: usize,
    pub(crate) interrupt: &'a Interrupt,
    /// For about how long.
    pub(crate) budget: Duration,
    /// Until when at the longest.
    pub(crate) until: Instant,
    pub(crate) help: Help,
}

/// How a worker's turn at a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// There is more to do.
    More,
    /// All is found.
    Complete,
    /// A sentence took too many steps.
    Failed,
    /// It took too long.
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
    pub(crate) fn work(&self, search: &Arc<Search>, shift: &Shift<'_>) -> Shown {
        let wants_help = shift.help == Help::Wanted;
        *self.place(shift.worker) = Place { search: Some(Arc::clone(search)), wants_help };
        if wants_help {
            self.call();
        }
        let stop = || shift.interrupt.is_abandoned() || Instant::now() >= shift.until;
        let progress = search.advance_unless(shift.budget, &stop);
        let mut crew = self.crew();
        // Requests that come to the same have one search.
        crew.wake();
        if progress == Progress::AllTaken && !has_ended(search) {
            crew.waiting.insert(shift.worker, shift.interrupt.clone());
            drop(crew);
            self.await_others(search, shift);
            self.crew().waiting.remove(&shift.worker);
        } else {
            drop(crew);
        }
        *self.place(shift.worker) = Place::default();
        if search.is_complete() {
            Shown::Complete
        } else if search.failure().is_some() {
            Shown::Failed
        } else if Instant::now() >= shift.until {
            Shown::Late
        } else {
            Shown::More
        }
    }

    /// Waits until the last parts, which are in the hands of other threads, are done or given back.
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
        let is_busy = |place: &&Mutex<Place>| place.lock().expect(NO_PANIC).search.is_some();
        self.places.iter().filter(is_busy).count() + crew.helping < self.threads
    }

    /// Helps the workers that want it, until all is over.
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

    fn place(&self, worker: usize) -> MutexGuard<'_, Place> {
        self.places[worker].lock().expect(NO_PANIC)
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().expect(NO_PANIC)
    }
}

impl Crew {
    /// A thread has done a part or given it back: the workers that wait for that check their searches.
    fn wake(&self) {
        self.waiting.values().for_each(Interrupt::wake);
    }
}

const NO_PANIC: &str = "no thread panics while it holds this lock";

/// Whether a search is to be helped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// It takes longer than one chunk.
    Wanted,
    /// It may be over before any thread has come.
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
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
