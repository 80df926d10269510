//! A search under way.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::lines::Found;
use crate::plan::Plan;
use crate::work::Work;
use crate::{Database, Query, SearchError};

/// A query against a database, worked off in parts.
///
/// Any number of threads may call [`advance`](Self::advance) at once: each takes the next part that nobody has taken. Parts follow
/// each other in the file, and what is found is kept as numbers of lines, at most two bytes a row and mostly far fewer. Meanwhile
/// [`Rows`](crate::Rows) gives the rows out.
#[derive(Debug)]
pub struct Search {
    database: Arc<Database>,
    query: Arc<Query>,
    plan: Plan,
    parts: Box<[OnceLock<Found>]>,
    /// The next part to be taken.
    next: AtomicUsize,
    finished: AtomicUsize,
    rows: AtomicU64,
    cancelled: AtomicBool,
    failure: OnceLock<SearchError>,
}

/// Whether work is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There are more parts to take.
    More,
    /// All parts are taken. Other threads may still be at theirs.
    AllTaken,
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
            finished: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Works on parts until so much time is over, at least on one. A part takes about a millisecond; where a pattern backtracks
    /// it can take far longer, but then it looks at [`cancel`](Self::cancel) every few sentences.
    pub fn advance(&self, budget: Duration) -> Progress {
        let begun = Instant::now();
        let mut work = Work::new(&self.database, &self.query, &self.plan, &self.cancelled);
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            let (Some(block), Some(slot)) = (self.database.blocks.get(part), self.parts.get(part)) else {
                // However often it is called, the counter stays near the end.
                self.next.store(self.parts.len(), Ordering::Relaxed);
                return Progress::AllTaken;
            };
            match work.part(part) {
                Ok(Some(found)) => {
                    self.rows.fetch_add(found.rows(block, self.query.kinds()), Ordering::Relaxed);
                    let _ = slot.set(found);
                    self.finished.fetch_add(1, Ordering::Release);
                }
                Ok(None) => return self.stop(),
                Err(reason) => {
                    let _ = self.failure.set(reason);
                    return self.stop();
                }
            }
            if begun.elapsed() >= budget {
                return Progress::More;
            }
        }
    }

    /// Works until all is done, on this thread alone.
    ///
    /// # Errors
    /// As [`failure`](Self::failure) says.
    pub fn run(&self) -> Result<(), &SearchError> {
        while self.advance(Duration::MAX) == Progress::More {}
        self.failure().map_or(Ok(()), Err)
    }

    /// Ends the search: whoever works on it stops within some tens of sentences, and no more parts are given out.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.stop();
    }

    fn stop(&self) -> Progress {
        self.next.store(self.parts.len(), Ordering::Relaxed);
        Progress::AllTaken
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether all parts are done.
    pub fn is_complete(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.parts.len()
    }

    /// Why it ended early, if a sentence took too many steps.
    pub fn failure(&self) -> Option<&SearchError> {
        self.failure.get()
    }

    /// How many rows were found so far.
    pub fn rows_found(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The parts done, and all.
    pub fn parts(&self) -> (usize, usize) {
        (self.finished.load(Ordering::Relaxed), self.parts.len())
    }

    /// How it is done, and why so.
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

    /// How much memory the answer takes so far, in bytes: what it costs to keep it.
    pub fn bytes(&self) -> usize {
        let found = self.parts.iter().filter_map(OnceLock::get).map(Found::bytes).sum::<usize>();
        found + size_of_val(&self.parts[..]) + size_of::<Self>()
    }

    /// What a part came to, if it is done.
    pub(crate) fn part_done(&self, part: usize) -> Option<&Found> {
        self.parts[part].get()
    }
}
