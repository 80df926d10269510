//! Finds the password behind a digest: what is known at once, and what has to be searched for.
//!
//! One [`Finder`] serves all workers. A [`Hunt`] is one search, done in pieces by whichever worker has it in hand.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use kendall_digest::Engine;
use kendall_digest::password::Mask;
use kendall_service::Registry;
use kendall_station::Size;

use crate::words::Words;

mod hunt;
mod index;
mod learned;
mod piece;
mod seen;
mod shared;
mod space;
mod table;
mod told;
mod wanted;

pub use hunt::{Hunt, Progress};
use learned::Learned;
use seen::Seen;
use shared::{Counts, Dictionary, Shared};
pub use space::{Space, SpaceError};
use table::Table;
pub use table::TableReport;
use told::Told;
pub use wanted::{FinderError, Found, Hash, Strategy, UnknownStrategy, Wanted, Way};

/// What a [`Finder`] is told. Begin with [`FinderOptions::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct FinderOptions {
    /// With what digests are computed.
    pub engine: Engine,
    /// The order of candidates.
    pub strategy: Strategy,
    /// The passwords that brute force tries.
    pub space: Space,
    /// The words for all strategies but the plain one.
    pub words: Arc<Words>,
    /// The most candidates that are tried for a request.
    pub most_candidates: u64,
    /// The most passwords that are remembered, and as many digests that have none.
    pub seen_entries: NonZeroUsize,
    /// How many bytes a table of all short passwords by their SHA-1 digests may take; 0 for no table.
    pub table_memory_bytes: u64,
    /// Up to which length the table must go, or searching is refused; if left out, up to the one that fits.
    pub table_length: Option<NonZeroUsize>,
    /// How many threads build the table.
    pub table_threads: NonZeroUsize,
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
        }
    }
}

/// Finds passwords. One is shared by all workers.
pub struct Finder(Arc<Shared>);

impl Finder {
    /// Makes ready for searching. A table is built from now on, and answers when it is done.
    ///
    /// # Errors
    /// Fails if a table of the wanted length does not fit, or the thread that is to build it cannot be started.
    pub fn new(options: FinderOptions) -> Result<Self, FinderError> {
        let FinderOptions { engine, strategy, space, words, most_candidates, .. } = options;
        let threads = options.table_threads.get();
        let table = Table::start(engine, &space, options.table_memory_bytes, options.table_length, threads)?;
        Ok(Self(Arc::new(Shared {
            engine,
            strategy,
            most_candidates,
            dictionary: (strategy != Strategy::Plain).then(|| Dictionary::new(&words)),
            table,
            space,
            words,
            seen: Seen::new(options.seen_entries),
            learned: Learned::default(),
            counts: Counts::default(),
        })))
    }

    /// The password, where it is known without a search: it was found before, is a word of the list (whatever its
    /// length), or stands in the table. Takes microseconds. To be asked once for each request, for it counts them.
    pub fn at_once(&self, wanted: &Wanted) -> Option<Found> {
        self.0.at_once(wanted)
    }

    /// A search, not yet begun.
    ///
    /// # Errors
    /// Fails where no password has such a length, and where more candidates would have to be tried than
    /// [`most_candidates`](FinderOptions::most_candidates). With rules, masks that are beyond that are left out, and
    /// the search is refused only if nothing is left.
    pub fn hunt(&self, wanted: Wanted) -> Result<Hunt, FinderError> {
        if let Some(left_out) = self.0.seen.is_nowhere(&wanted) {
            return Ok(Hunt::new(Arc::clone(&self.0), wanted, Vec::new(), left_out));
        }
        let (pieces, left_out) = self.pieces(&wanted)?;
        Ok(Hunt::new(Arc::clone(&self.0), wanted, pieces, left_out))
    }

    /// What a discipline may know of the search: anything up to the number of candidates.
    pub fn size(&self, wanted: &Wanted) -> Size {
        match self.pieces(wanted) {
            Ok((pieces, _)) => {
                Size::UniformUpTo(pieces.iter().map(|(_, candidates, _)| *candidates as f64).sum())
            }
            Err(_) => Size::Unknown,
        }
    }

    /// What can be told of the table, if there is one.
    pub fn table(&self) -> Option<TableReport> {
        self.0.table_report()
    }

    /// Adds what is counted to the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.0.register(registry);
        registry.register_collector(Box::new(Told(Arc::clone(&self.0))));
    }

    fn pieces(&self, wanted: &Wanted) -> Result<(Vec<piece::Piece>, u64), FinderError> {
        let lengths = &wanted.lengths;
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
