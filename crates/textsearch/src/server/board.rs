//! Who works on what: which search each worker is at, who helps, and who has been at it for too long.
//!
//! A worker shows its search here while it works on it. Threads that no worker needs help with searches that take longer than
//! a chunk, so that one request has all processors and many share them. Another thread looks at the time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Progress, Search};

/// How long who helps works before looking up.
const HELP: Duration = Duration::from_millis(1);

/// What the workers are at.
#[derive(Debug)]
pub(crate) struct Board {
    places: Box<[Mutex<Place>]>,
    /// How many threads may search at a time, those of workers included.
    threads: usize,
    crew: Mutex<Crew>,
    /// Somebody wants help, or all is over.
    calls: Condvar,
    /// Somebody has stopped helping.
    helped: Condvar,
}

/// What one worker is at.
#[derive(Debug, Default)]
struct Place {
    search: Option<Arc<Search>>,
    until: Option<Instant>,
    wants_help: bool,
    /// Its time was over.
    is_late: bool,
}

#[derive(Debug, Default)]
struct Crew {
    helping: usize,
    /// Workers that wait until others have done their parts.
    waiting: usize,
    closing: bool,
}

/// The threads beside the workers. Dropped, they end.
#[derive(Debug)]
pub(crate) struct Crews {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// How a worker's turn at a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is more to do.
    More,
    /// All is found.
    Complete,
    /// A sentence took too many steps.
    Failed,
    /// It took too long.
    Late,
    /// It was interrupted, and must be begun again if it is wanted still.
    Interrupted,
}

impl Board {
    pub(crate) fn new(workers: usize, threads: usize) -> Self {
        Self {
            places: (0..workers).map(|_| Mutex::default()).collect(),
            threads,
            crew: Mutex::default(),
            calls: Condvar::new(),
            helped: Condvar::new(),
        }
    }

    /// A worker's turn at a search: for about so much time, and until `until` at the longest. With `help`, others come in.
    pub(crate) fn work(
        &self,
        worker: usize,
        search: &Arc<Search>,
        budget: Duration,
        until: Instant,
        help: Help,
    ) -> Turn {
        let wants_help = help == Help::Wanted;
        *self.place(worker) =
            Place { search: Some(Arc::clone(search)), until: Some(until), wants_help, is_late: false };
        if wants_help {
            self.call();
        }
        let progress = search.advance(budget);
        let mut crew = self.crew();
        // Requests that come to the same have one search.
        if crew.waiting > 0 {
            self.helped.notify_all();
        }
        if progress == Progress::AllTaken && !has_ended(search) {
            crew.waiting += 1;
            // Whoever is done with a part tells under this lock.
            crew = self.helped.wait_while(crew, |_| !has_ended(search)).expect(NO_PANIC);
            crew.waiting -= 1;
        }
        drop(crew);
        let is_late = std::mem::take(&mut *self.place(worker)).is_late;
        if search.is_complete() {
            Turn::Complete
        } else if search.failure().is_some() {
            Turn::Failed
        } else if is_late || Instant::now() >= until {
            search.cancel();
            Turn::Late
        } else if search.is_cancelled() {
            Turn::Interrupted
        } else {
            Turn::More
        }
    }

    /// Ends a worker's turn, if it is at one and nobody else is at the same search.
    pub(crate) fn interrupt(&self, worker: usize) {
        let Some(search) = self.place(worker).search.clone() else { return };
        let is_at_it = |place: &Mutex<Place>| {
            place.lock().expect(NO_PANIC).search.as_ref().is_some_and(|other| Arc::ptr_eq(other, &search))
        };
        if self.places.iter().filter(|place| is_at_it(place)).count() == 1 {
            search.cancel();
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

    /// Helps whoever wants it, until all is over.
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
            self.helped.notify_all();
        }
    }

    fn wanted(&self) -> Option<(usize, Arc<Search>)> {
        (0..self.places.len()).find_map(|worker| {
            let place = self.place(worker);
            let search = place.search.as_ref().filter(|_| place.wants_help)?;
            Some((worker, Arc::clone(search)))
        })
    }

    /// Cancels what takes too long, until all is over.
    fn watch(&self, every: Duration) {
        let mut crew = self.crew();
        while !crew.closing {
            (crew, _) = self.helped.wait_timeout(crew, every).expect(NO_PANIC);
            let now = Instant::now();
            for place in &self.places {
                let mut place = place.lock().expect(NO_PANIC);
                if place.until.is_some_and(|until| until <= now)
                    && let Some(search) = place.search.clone()
                {
                    place.is_late = true;
                    search.cancel();
                }
            }
        }
    }

    fn place(&self, worker: usize) -> MutexGuard<'_, Place> {
        self.places[worker].lock().expect(NO_PANIC)
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nobody panics while holding this lock";

/// Whether a search is to be helped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// It takes longer than one chunk.
    Wanted,
    /// It may be over before anybody has come.
    NotYet,
}

fn has_ended(search: &Search) -> bool {
    search.is_complete() || search.is_cancelled() || search.failure().is_some()
}

impl Crews {
    /// Starts the threads that help, and the one that looks at the time.
    pub(crate) fn start(board: &Arc<Board>, deadline: Duration) -> std::io::Result<Self> {
        let mut crews = Self { board: Arc::clone(board), threads: Vec::new() };
        let every = (deadline / 20).clamp(Duration::from_millis(2), Duration::from_millis(100));
        for index in 0..board.threads {
            let named = thread::Builder::new();
            let board = Arc::clone(board);
            let thread = match index {
                0 => named.name("deadline".into()).spawn(move || board.watch(every)),
                _ => named.name(format!("helper-{index}")).spawn(move || board.help()),
            };
            crews.threads.push(thread?);
        }
        Ok(crews)
    }
}

impl Drop for Crews {
    fn drop(&mut self) {
        self.board.crew().closing = true;
        self.board.calls.notify_all();
        self.board.helped.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
