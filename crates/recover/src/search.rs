//! Finds the password behind a digest: from caches and tables, or by a search.
//!
//! One [`Finder`] serves all workers. A [`Hunt`] is one search, which any worker can advance piece by piece.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use kendall_cluster::Cluster;
use kendall_digest::Engine;
use kendall_digest::password::Mask;
use kendall_service::Registry;
use kendall_station::Size;

use crate::words::Words;

mod cache;
mod derived_metrics;
mod hunt;
mod in_mask;
mod index;
mod learned;
mod piece;
mod query;
mod shared;
mod space;
mod table;

use cache::SearchCache;
use derived_metrics::DerivedMetrics;
pub use hunt::{Hunt, Progress};
use learned::Learned;
pub use query::{FinderError, FoundPassword, Hash, PasswordQuery, PasswordSource, Strategy, UnknownStrategy};
use shared::{Counts, Dictionary, Shared};
pub use space::{Space, SpaceError};
use table::Table;
pub use table::TableReport;

/// The options of a [`Finder`]. Begin with [`FinderOptions::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct FinderOptions {
    /// The engine that computes digests.
    pub engine: Engine,
    /// The order of candidates.
    pub strategy: Strategy,
    /// The passwords of brute force.
    pub space: Space,
    /// The words for all strategies but the plain one.
    pub words: Arc<Words>,
    /// The most candidates that are tried for a request.
    pub most_candidates: u64,
    /// The most passwords that are cached, and as many digests without a password.
    pub seen_entries: NonZeroUsize,
    /// The most bytes of a table of all short passwords by their SHA-1 digests; 0 for no table.
    pub table_memory_bytes: u64,
    /// The length that the table must reach, otherwise the finder cannot be created; if left out, the longest that
    /// fits.
    pub table_length: Option<NonZeroUsize>,
    /// The number of threads that build the table.
    pub table_threads: NonZeroUsize,
    /// The cluster whose workers try passwords of masks, too.
    pub cluster: Option<Cluster>,
}

impl FinderOptions {
    /// Plain search by this engine among lower-case letters, up to seven of them; the words that come with kendall; no
    /// table.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            strategy: Strategy::default(),
            space: Space::default(),
            words: Arc::new(Words::common()),
            most_candidates: 8_400_000_000,
            seen_entries: NonZeroUsize::new(65_536).expect("it is not zero"),
            table_memory_bytes: 0,
            table_length: None,
            table_threads: available_parallelism().unwrap_or(NonZeroUsize::MIN),
            cluster: None,
        }
    }
}

/// Finds passwords. All workers share one.
pub struct Finder(Arc<Shared>);

impl Finder {
    /// Creates a finder. It builds a table in the background, which answers once it is complete.
    ///
    /// # Errors
    /// Fails if a table of the required length does not fit, or the thread that builds it cannot be started.
    pub fn new(options: FinderOptions) -> Result<Self, FinderError> {
        let FinderOptions { engine, strategy, space, words, most_candidates, cluster, .. } = options;
        let threads = options.table_threads.get();
        let table = Table::start(engine, &space, options.table_memory_bytes, options.table_length, threads)?;
        Ok(Self(Arc::new(Shared {
            engine,
            cluster,
            strategy,
            most_candidates,
            dictionary: (strategy != Strategy::Plain).then(|| Dictionary::new(&words)),
            table,
            space,
            words,
            cache: SearchCache::new(options.seen_entries),
            learned: Learned::default(),
            counts: Counts::default(),
        })))
    }

    /// The password, if it is known without a search: it was found before, is a word of the list (of any length), or
    /// is in the table. Takes microseconds. Call it once for each request, because it counts them.
    pub fn at_once(&self, query: &PasswordQuery) -> Option<FoundPassword> {
        self.0.at_once(query)
    }

    /// Whether an earlier search for the same password tried all candidates and found none.
    pub fn is_nowhere(&self, query: &PasswordQuery) -> bool {
        self.0.cache.is_nowhere(query).is_some()
    }

    /// A search that has not begun.
    ///
    /// # Errors
    /// Fails if no password has such a length, and if more candidates would have to be tried than
    /// [`most_candidates`](FinderOptions::most_candidates). With rules, masks beyond that are skipped, and the search
    /// only fails if nothing is left.
    pub fn hunt(&self, query: PasswordQuery) -> Result<Hunt, FinderError> {
        if let Some(left_out) = self.0.cache.is_nowhere(&query) {
            return Ok(Hunt::new(Arc::clone(&self.0), query, Vec::new(), left_out));
        }
        let (pieces, left_out) = self.pieces(&query)?;
        Ok(Hunt::new(Arc::clone(&self.0), query, pieces, left_out))
    }

    /// The size of the search for a discipline: uniform up to the number of candidates.
    pub fn size(&self, query: &PasswordQuery) -> Size {
        match self.pieces(query) {
            Ok((pieces, _)) => {
                Size::UniformUpTo(pieces.iter().map(|(_, candidates, _)| *candidates as f64).sum())
            }
            Err(_) => Size::Unknown,
        }
    }

    /// The report of the table, if there is one.
    pub fn table(&self) -> Option<TableReport> {
        self.0.table_report()
    }

    /// Adds the counters to the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.0.register(registry);
        registry.register_collector(Box::new(DerivedMetrics(Arc::clone(&self.0))));
    }

    fn pieces(&self, query: &PasswordQuery) -> Result<(Vec<piece::Piece>, u64), FinderError> {
        let lengths = &query.lengths;
        if lengths.is_empty() || *lengths.start() == 0 || *lengths.end() > Mask::LONGEST {
            return Err(FinderError::Lengths(lengths.clone()));
        }
        let (pieces, left_out) = self.0.pieces(lengths);
        let may_leave_out =
            matches!(self.0.strategy, Strategy::Rules | Strategy::Adaptive) && !pieces.is_empty();
        if left_out > 0 && !may_leave_out {
            let tried =
                pieces.iter().fold(left_out, |sum, (_, candidates, _)| sum.saturating_add(*candidates));
            return Err(FinderError::TooMany { candidates: tried, bound: self.0.most_candidates });
        }
        Ok((pieces, left_out))
    }
}

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { engine, strategy, space, .. } = &*self.0;
        f.debug_struct("Finder")
            .field("engine", engine)
            .field("strategy", strategy)
            .field("space", space)
            .finish_non_exhaustive()
    }
}
