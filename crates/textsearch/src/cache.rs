//! Recent searches: patterns that were compiled, and answers that were found.
//!
//! Both are bounded, and what was asked for least recently goes first. An answer is kept as the finished [`Search`], which is numbers
//! of lines and no text, under what its request [comes to](crate::Canonical); so `x` and `(.*)x(.*)` share one. It holds on to its
//! database, and is good for no other: a reloaded one finds nothing here.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;

use crate::{Canonical, Database, Query, Search, SearchError, Semantics};

/// Remembers searches.
#[derive(Debug)]
pub struct Cache {
    queries: Mutex<LruCache<(String, Semantics), Arc<Query>>>,
    answers: Mutex<Answers>,
}

#[derive(Debug)]
struct Answers {
    searches: LruCache<Canonical, (Arc<Search>, usize)>,
    bytes: usize,
    most_bytes: usize,
}

impl Cache {
    /// So many patterns at most, and answers of so many bytes.
    pub fn new(queries: NonZeroUsize, answer_bytes: usize) -> Self {
        let answers = Answers { searches: LruCache::unbounded(), bytes: 0, most_bytes: answer_bytes };
        // Room is taken as it is needed.
        let mut kept = LruCache::unbounded();
        kept.resize(queries);
        Self { queries: Mutex::new(kept), answers: Mutex::new(answers) }
    }

    /// The query of a request, as [`Query::parse`] reads it: one that was read before, or a new one. Refusals are not remembered.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn query(&self, request: &str, semantics: &Semantics) -> Result<Arc<Query>, SearchError> {
        let key = (request.to_owned(), *semantics);
        if let Some(query) = lock(&self.queries).get(&key) {
            return Ok(Arc::clone(query));
        }
        let query = Arc::new(Query::parse(request, semantics)?);
        lock(&self.queries).put(key, Arc::clone(&query));
        Ok(query)
    }

    /// The finished search of the same rows in the same database, if there is one.
    pub fn answer(&self, database: &Arc<Database>, query: &Query) -> Option<Arc<Search>> {
        let mut answers = lock(&self.answers);
        let (search, _) = answers.searches.get(&query.canonical())?;
        Arc::ptr_eq(search.database(), database).then(|| Arc::clone(search))
    }

    /// Keeps a search, if it is complete and no larger than all that may be kept.
    pub fn keep(&self, search: &Arc<Search>) {
        let bytes = search.bytes();
        let mut answers = lock(&self.answers);
        if !search.is_complete() || bytes > answers.most_bytes {
            return;
        }
        answers.bytes += bytes;
        let old = answers.searches.put(search.query().canonical(), (Arc::clone(search), bytes));
        answers.bytes -= old.map_or(0, |(_, bytes)| bytes);
        while answers.bytes > answers.most_bytes
            && let Some((_, (_, bytes))) = answers.searches.pop_lru()
        {
            answers.bytes -= bytes;
        }
    }

    /// Forgets all answers: of a database that is no longer served, so that its memory is free.
    pub fn forget_answers(&self) {
        let mut answers = lock(&self.answers);
        answers.searches.clear();
        answers.bytes = 0;
    }

    /// How many bytes the answers take.
    pub fn answer_bytes(&self) -> usize {
        lock(&self.answers).bytes
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding the cache")
}
