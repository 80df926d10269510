//! The served database, and the cache of its searches.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use kendall_service::Counter;

use crate::cache::Cache;
use crate::database::Database;
use crate::error::SearchError;
use crate::opening::OpenOptions;
use crate::pattern::Pattern;
use crate::query::Query;
use crate::search::Search;
use crate::semantics::Semantics;

/// The source of the rows: the current database, how to open it again, and recent searches.
#[derive(Debug)]
pub(crate) struct DataSource {
    current: Mutex<Arc<Database>>,
    options: OpenOptions,
    pub(crate) cache: Cache,
    /// Whether the server ends, so that no rows are read any more.
    ends: AtomicBool,
    pub(crate) reloads: Counter,
    pub(crate) failed_reloads: Counter,
}

impl DataSource {
    /// Opens a file for searches by this cache.
    pub(crate) fn open(path: &Path, options: &OpenOptions, cache: Cache) -> Result<Self, SearchError> {
        let database = Database::open(path, options)?;
        warn_of_oddities(&database);
        Ok(Self {
            current: Mutex::new(Arc::new(database)),
            options: options.clone(),
            cache,
            ends: AtomicBool::new(false),
            reloads: Counter::default(),
            failed_reloads: Counter::default(),
        })
    }

    pub(crate) fn current(&self) -> Arc<Database> {
        Arc::clone(&self.lock())
    }

    /// The key of a request: equal for the same request of the same rows, so that a later request does not get the rows from before
    /// a reload.
    pub(crate) fn key(&self, request: &str) -> Vec<u8> {
        [&self.reloads.get().to_be_bytes(), request.as_bytes()].concat()
    }

    /// Caches a search, unless its rows are no longer served.
    pub(crate) fn keep(&self, search: &Arc<Search>) {
        let current = self.lock();
        if Arc::ptr_eq(&current, search.database()) {
            self.cache.keep(search);
        }
    }

    /// The expected time of the search for a request, in seconds; `None` if computing it would itself take long. A request
    /// that is rejected takes no time.
    pub(crate) fn expected_s(&self, request: &str, semantics: &Semantics) -> Option<f64> {
        const REQUEST_BYTES: usize = 256;
        let small = Semantics { compiled_bytes: 64 << 10, ..*semantics };
        if request.len() > REQUEST_BYTES {
            return None;
        }
        match Query::parse(request, &small) {
            Ok(query) => {
                let database = self.current();
                let is_known = self.cache.answer(&database, &query).is_some();
                Some(if is_known { 0.0 } else { database.expected(&query).as_secs_f64() })
            }
            // Its automaton may only be too large to be built here.
            Err(_) => match Query::parts(request) {
                Ok((_, pattern)) => Pattern::parse(pattern, semantics).err().map(|_| 0.0),
                Err(_) => Some(0.0),
            },
        }
    }

    /// Reads the file again, and forgets the searches of the previous rows. Running searches keep their rows. If the server ends
    /// meanwhile, the rows stay as they were.
    pub(crate) fn reload(&self) -> Result<(), SearchError> {
        let path = self.current().contents().path.clone();
        match Database::open_unless(&path, &self.options, &self.ends) {
            Ok(database) => {
                warn_of_oddities(&database);
                let mut current = self.lock();
                *current = Arc::new(database);
                self.cache.forget_answers();
                self.reloads.inc();
                Ok(())
            }
            Err(SearchError::Stopped) => Ok(()),
            Err(error) => {
                self.failed_reloads.inc();
                Err(error)
            }
        }
    }

    /// Ends a reload that is running, and later ones.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Database>> {
        self.current.lock().expect("no thread panics while it holds the database")
    }
}

fn warn_of_oddities(database: &Database) {
    let contents = database.contents();
    tracing::info!(path = %contents.path.display(), rows = contents.rows(), read_in = ?contents.read_in, "database open");
    if contents.oddities != crate::data::load::Oddities::default() {
        tracing::warn!(path = %contents.path.display(), oddities = ?contents.oddities, "not all lines are plain rows");
    }
}
