//! A running search.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::error::SearchError;
use crate::lines::BlockAnswer;
use crate::plan::{Plan, SearchMethod};
use crate::query::{Query, Stopped};
use crate::work::Work;

/// A query against a database, executed in parts.
///
/// Any number of threads may call [`advance`](Self::advance) at once: each takes the next part that no other thread has taken.
/// Parts follow each other in the file, and matches are kept as numbers of lines, at most two bytes per row and mostly far fewer.
/// Meanwhile [`Rows`](crate::Rows) returns the rows.
#[derive(Debug)]
pub struct Search {
    database: Arc<Database>,
    query: Arc<Query>,
    plan: Plan,
    parts: Box<[OnceLock<BlockAnswer>]>,
    /// The next part to take.
    next: AtomicUsize,
    /// Parts that were taken and not done, and whether there are any.
    given_back: Mutex<Vec<usize>>,
    has_given_back: AtomicBool,
    /// Signalled, under the lock of the parts, whenever a part is done or given back and when the search ends early.
    changed: Condvar,
    finished: AtomicUsize,
    rows: AtomicU64,
    /// The number of requests that want it; [`CLOSED`] once the last has left.
    wanted: AtomicUsize,
    cancelled: AtomicBool,
    failure: OnceLock<SearchError>,
}

/// No request wants the search any more, and none can join it.
const CLOSED: usize = usize::MAX;

/// A request's interest in a search. When the last one is dropped before the search is complete, the search is cancelled.
#[derive(Debug)]
pub(crate) struct Interest(Arc<Search>);

impl Deref for Interest {
    type Target = Arc<Search>;

    fn deref(&self) -> &Arc<Search> {
        &self.0
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let left = |wanted| Some(if wanted == 1 && !self.0.is_complete() { CLOSED } else { wanted - 1 });
        if self.0.wanted.fetch_update(Ordering::AcqRel, Ordering::Acquire, left) == Ok(1)
            && !self.0.is_complete()
        {
            self.0.cancel();
        }
    }
}

impl Database {
    /// Plans a search. Nothing is searched before [`Search::advance`] is called.
    pub fn search(self: &Arc<Self>, query: &Arc<Query>) -> Search {
        self.search_unless(query, &|| false).expect("it was not stopped")
    }

    /// As [`search`](Self::search), unless `stop` ends the construction of an automaton for the plan.
    pub(crate) fn search_unless(
        self: &Arc<Self>,
        query: &Arc<Query>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Search, Stopped> {
        let plan = Plan::choose(self, query, stop)?;
        Ok(Search::new(Arc::clone(self), Arc::clone(query), plan))
    }

    /// The time that a search is expected to take on one core, by the plan's costs; does not read the text.
    pub fn expected(&self, query: &Query) -> Duration {
        Plan::expected(self, query)
    }

    /// Plans a search by this method, at any cost; `None` where that is not possible. For comparing methods.
    pub fn search_by(self: &Arc<Self>, query: &Arc<Query>, method: SearchMethod) -> Option<Search> {
        let plan = Plan::by(self, query, method)?;
        Some(Search::new(Arc::clone(self), Arc::clone(query), plan))
    }
}

/// Whether work is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There are more parts to take.
    More,
    /// All parts are taken. Other threads may still be working on theirs.
    AllTaken,
}

/// Ends a search when it is dropped.
struct CancelledOnDrop<'a>(&'a Search);

impl Drop for CancelledOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Search {
    pub(crate) fn new(database: Arc<Database>, query: Arc<Query>, plan: Plan) -> Self {
        let parts = database.blocks.iter().map(|_| OnceLock::new()).collect();
        Self {
            database,
            query,
            plan,
            parts,
            next: AtomicUsize::new(0),
            given_back: Mutex::default(),
            has_given_back: AtomicBool::new(false),
            changed: Condvar::new(),
            finished: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            wanted: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Works on parts until this time is over, on at least one. A part takes about a millisecond; where a pattern backtracks it can
    /// take far longer, but a [`cancel`](Self::cancel) takes effect every few sentences.
    pub fn advance(&self, budget: Duration) -> Progress {
        self.advance_unless(budget, &|| false)
    }

    /// As [`advance`](Self::advance), and gives a part that takes long back to others once `stop` returns true.
    pub(crate) fn advance_unless(&self, budget: Duration, stop: &dyn Fn() -> bool) -> Progress {
        let begun = Instant::now();
        let stop = || self.is_cancelled() || stop();
        let mut work = Work::new(&self.database, &self.query, &self.plan, &stop);
        loop {
            let Some(part) = self.take_part() else { return Progress::AllTaken };
            let (block, slot) = (&self.database.blocks[part], &self.parts[part]);
            match work.part(part) {
                Ok(Some(found)) => {
                    self.rows.fetch_add(found.rows(block, self.query.kinds()), Ordering::Relaxed);
                    let _ = slot.set(found);
                    self.finished.fetch_add(1, Ordering::Release);
                    self.signal(&self.lock());
                }
                Ok(None) => {
                    self.give_back(part);
                    return if self.is_cancelled() { Progress::AllTaken } else { Progress::More };
                }
                Err(reason) => {
                    let _ = self.failure.set(reason);
                    self.stop();
                    return Progress::AllTaken;
                }
            }
            if begun.elapsed() >= budget {
                return Progress::More;
            }
        }
    }

    /// Registers a request's interest; `None` if the last one that had any has left.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Interest> {
        let joined = |wanted| (wanted != CLOSED).then(|| wanted + 1);
        self.wanted.fetch_update(Ordering::AcqRel, Ordering::Acquire, joined).ok()?;
        Some(Interest(Arc::clone(self)))
    }

    /// Whether there are parts that no thread has taken.
    pub(crate) fn has_parts(&self) -> bool {
        self.has_given_back.load(Ordering::Acquire) || self.next.load(Ordering::Relaxed) < self.parts.len()
    }

    fn take_part(&self) -> Option<usize> {
        if self.has_given_back.load(Ordering::Acquire) {
            let mut given_back = self.lock();
            if let Some(part) = given_back.pop() {
                self.has_given_back.store(!given_back.is_empty(), Ordering::Release);
                return Some(part);
            }
        }
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        if part < self.parts.len() {
            return Some(part);
        }
        // However often it is called, the counter stays near the end.
        self.next.store(self.parts.len(), Ordering::Relaxed);
        None
    }

    fn give_back(&self, part: usize) {
        let mut given_back = self.lock();
        if !self.is_cancelled() {
            given_back.push(part);
            self.has_given_back.store(true, Ordering::Release);
            self.signal(&given_back);
        }
    }

    /// Wakes the threads that wait for a part. They check under the lock, so that none misses the change.
    fn signal(&self, _locked: &MutexGuard<'_, Vec<usize>>) {
        self.changed.notify_all();
    }

    /// Blocks until a part is done, the search ended early, or a part was given back and no other thread may take it.
    pub(crate) fn wait_for_part(&self, part: usize) {
        let waits = |given_back: &mut Vec<usize>| {
            let ended = self.failure().is_some() || self.is_cancelled();
            !ended && given_back.is_empty() && self.part_done(part).is_none()
        };
        let parts = self.changed.wait_while(self.lock(), waits);
        drop(parts.expect("no thread panics while it holds the parts"));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.given_back.lock().expect("no thread panics while it holds the parts")
    }

    /// Runs until all is done, on this thread alone.
    ///
    /// # Errors
    /// Returns the error of [`failure`](Self::failure).
    pub fn run(&self) -> Result<(), &SearchError> {
        while self.advance(Duration::MAX) == Progress::More {}
        self.failure().map_or(Ok(()), Err)
    }

    /// Runs a task, such as returning the rows, while this number of further threads search; the parts that they have not done by
    /// its end are abandoned.
    pub fn run_beside<T>(&self, threads: usize, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.run());
            }
            // Also if the task panics: the scope waits for its threads.
            let _cancelled = CancelledOnDrop(self);
            work()
        })
    }

    /// Cancels the search: the threads that work on it stop within some tens of sentences, and no more parts are started.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.stop();
    }

    fn stop(&self) {
        self.next.store(self.parts.len(), Ordering::Relaxed);
        let mut given_back = self.lock();
        given_back.clear();
        self.has_given_back.store(false, Ordering::Release);
        self.signal(&given_back);
    }

    /// Whether the search was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether all parts are done.
    pub fn is_complete(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.parts.len()
    }

    /// The reason why it ended early, if a sentence took too many steps.
    pub fn failure(&self) -> Option<&SearchError> {
        self.failure.get()
    }

    /// The number of rows found up to now.
    pub fn rows_found(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The number of parts done, and of all parts.
    pub fn parts(&self) -> (usize, usize) {
        (self.finished.load(Ordering::Relaxed), self.parts.len())
    }

    /// The plan of the search, with its reasons.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The query.
    pub fn query(&self) -> &Arc<Query> {
        &self.query
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The memory of the answer up to now, in bytes: the cost of keeping it.
    pub fn bytes(&self) -> usize {
        let found = self.parts.iter().filter_map(OnceLock::get).map(BlockAnswer::bytes).sum::<usize>();
        found + size_of_val(&self.parts[..]) + size_of::<Self>()
    }

    /// The answer of a part, if it is done.
    pub(crate) fn part_done(&self, part: usize) -> Option<&BlockAnswer> {
        self.parts[part].get()
    }
}
