//! Recent searches: compiled patterns and finished answers; and running searches that other requests can share.
//!
//! The cache is bounded in bytes and evicts what was requested least recently. It keeps an answer as the finished [`Search`], which
//! is numbers of lines and no text, under the [canonical form](crate::Canonical) of its request; so `x` and `(.*)x(.*)` share one.
//! An answer belongs to its database and is valid for no other: a reloaded database finds nothing here.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lru::LruCache;

use crate::database::Database;
use crate::error::SearchError;
use crate::query::{Canonical, Query, Stopped};
use crate::search::Search;
use crate::semantics::Semantics;

/// A cache of searches.
#[derive(Debug)]
pub struct Cache {
    queries: Mutex<Bounded<Request, Query>>,
    answers: Mutex<Bounded<Canonical, Search>>,
    /// Searches that are running.
    under_way: Mutex<HashMap<Canonical, Weak<Search>>>,
}

/// Types and pattern as they were written, and their semantics.
type Request = (Vec<i32>, String, Semantics);

/// The origin of a search for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The search is new.
    New,
    /// Another request is already running the search.
    Shared,
    /// The search was finished before.
    Kept,
}

impl Cache {
    /// A cache of compiled patterns and of answers, each with at most this many bytes. The size of a pattern is known after a
    /// search: until then it counts with its initial size.
    pub fn new(query_bytes: usize, answer_bytes: usize) -> Self {
        Self {
            queries: Mutex::new(Bounded::new(query_bytes)),
            answers: Mutex::new(Bounded::new(answer_bytes)),
            under_way: Mutex::default(),
        }
    }

    /// The query of a request, as [`Query::parse`] reads it: a cached one, or a new one. Rejections are not cached.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn query(&self, request: &str, semantics: &Semantics) -> Result<Arc<Query>, SearchError> {
        let (kinds, pattern) = Query::parts(request)?;
        let key = (kinds, pattern.to_owned(), *semantics);
        if let Some(query) = lock(&self.queries).get(&key) {
            return Ok(query);
        }
        let query = Arc::new(Query::new(key.0.clone(), pattern, semantics)?);
        lock(&self.queries).put(key, &query, query.bytes());
        Ok(query)
    }

    /// The search of a query in a database: the cached answer, the same search that another request is running, or a new one.
    pub fn search(&self, database: &Arc<Database>, query: &Arc<Query>) -> (Arc<Search>, Origin) {
        self.search_unless(database, query, &|| false).expect("it was not stopped")
    }

    /// As [`search`](Self::search), unless `stop` ends the planning of a new one.
    pub(crate) fn search_unless(
        &self,
        database: &Arc<Database>,
        query: &Arc<Query>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Arc<Search>, Origin), Stopped> {
        if let Some(search) = self.answer(database, query) {
            return Ok((search, Origin::Kept));
        }
        if let Some(search) = self.shared(&lock(&self.under_way), database, query) {
            return Ok((search, Origin::Shared));
        }
        // Planning takes time, so it holds no lock; if another request was faster meanwhile, this one joins its search.
        let search = Arc::new(database.search_unless(query, stop)?);
        let mut under_way = lock(&self.under_way);
        if let Some(search) = self.shared(&under_way, database, query) {
            return Ok((search, Origin::Shared));
        }
        under_way.retain(|_, search| search.strong_count() > 0);
        under_way.insert(query.canonical(), Arc::downgrade(&search));
        Ok((search, Origin::New))
    }

    /// The search that another request is running, if it can still complete.
    fn shared(
        &self,
        under_way: &HashMap<Canonical, Weak<Search>>,
        database: &Arc<Database>,
        query: &Query,
    ) -> Option<Arc<Search>> {
        let search = under_way.get(&query.canonical())?.upgrade()?;
        let can_be_shared = Arc::ptr_eq(search.database(), database)
            && !search.is_complete()
            && !search.is_cancelled()
            && search.failure().is_none();
        can_be_shared.then_some(search)
    }

    /// The finished search of the same rows in the same database, if there is one.
    pub fn answer(&self, database: &Arc<Database>, query: &Query) -> Option<Arc<Search>> {
        let search = lock(&self.answers).get(&query.canonical())?;
        Arc::ptr_eq(search.database(), database).then_some(search)
    }

    /// Caches a search, if it is complete and fits the limit, and updates the size of its pattern.
    pub fn keep(&self, search: &Arc<Search>) {
        let query = search.query();
        let key = (query.kinds().to_vec(), query.pattern().to_owned(), *query.semantics());
        lock(&self.queries).put(key, query, query.bytes());
        if search.is_complete() {
            lock(&self.answers).put(query.canonical(), search, search.bytes() + query.bytes());
        }
    }

    /// Forgets all answers: of a database that is no longer served, to free its memory.
    pub fn forget_answers(&self) {
        lock(&self.answers).clear();
    }

    /// How many bytes the answers take.
    pub fn answer_bytes(&self) -> usize {
        lock(&self.answers).bytes
    }

    /// How many bytes the compiled patterns take.
    pub fn query_bytes(&self) -> usize {
        lock(&self.queries).bytes
    }
}

/// The most recently used entries, of at most this many bytes.
#[derive(Debug)]
struct Bounded<K: Hash + Eq, V> {
    kept: LruCache<K, (Arc<V>, usize)>,
    bytes: usize,
    most_bytes: usize,
}

impl<K: Hash + Eq, V> Bounded<K, V> {
    fn new(most_bytes: usize) -> Self {
        Self { kept: LruCache::unbounded(), bytes: 0, most_bytes }
    }

    fn get(&mut self, key: &K) -> Option<Arc<V>> {
        self.kept.get(key).map(|(value, _)| Arc::clone(value))
    }

    fn put(&mut self, key: K, value: &Arc<V>, bytes: usize) {
        let old = if bytes > self.most_bytes {
            self.kept.pop(&key)
        } else {
            self.bytes += bytes;
            self.kept.put(key, (Arc::clone(value), bytes))
        };
        self.bytes -= old.map_or(0, |(_, bytes)| bytes);
        while self.bytes > self.most_bytes
            && let Some((_, (_, bytes))) = self.kept.pop_lru()
        {
            self.bytes -= bytes;
        }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the cache")
}
