//! Finds the password behind a digest: what is known at once, and what has to be searched for.
//!
//! One [`Finder`] serves all workers. A [`Hunt`] is one search, done in pieces by whichever worker has it in hand.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;

use kendall_digest::Engine;
use kendall_digest::password::{Mask, Targets, md5, sha1, sha256};
use kendall_service::Registry;
use kendall_station::Size;

use crate::words::Words;

mod hunt;
mod index;
mod learned;
mod seen;
mod shared;
mod space;
mod table;
mod told;

pub use hunt::{Hunt, Progress};
use learned::Learned;
use seen::Seen;
use shared::{Counts, Dictionary, Shared};
pub use space::{Space, SpaceError};
use table::Table;
pub use table::TableReport;

/// What the owner of a file knows of its password: the digest, by the algorithm that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hash {
    /// SHA-1, as all clients of the course send it.
    Sha1([u8; 20]),
    /// SHA-256.
    Sha256([u8; 32]),
    /// MD5.
    Md5([u8; 16]),
}

impl Hash {
    /// Whether this is the digest of the password.
    pub fn is_of(&self, password: &[u8]) -> bool {
        match self {
            Self::Sha1(digest) => sha1(password) == *digest,
            Self::Sha256(digest) => sha256(password) == *digest,
            Self::Md5(digest) => md5(password) == *digest,
        }
    }

    fn sha1(password: &[u8]) -> Self {
        Self::Sha1(sha1(password))
    }

    fn sha256(password: &[u8]) -> Self {
        Self::Sha256(sha256(password))
    }

    fn md5(password: &[u8]) -> Self {
        Self::Md5(md5(password))
    }

    /// The first 32 bits of the digest.
    fn first_word(&self) -> u32 {
        let word = match self {
            Self::Sha1(digest) => digest.first_chunk(),
            Self::Sha256(digest) => digest.first_chunk(),
            Self::Md5(digest) => digest.first_chunk(),
        };
        u32::from_be_bytes(*word.expect("digests are longer"))
    }

    /// What a kernel looks for.
    fn target(&self) -> Targets {
        let targets = match self {
            Self::Sha1(digest) => Targets::sha1([*digest]),
            Self::Sha256(digest) => Targets::sha256([*digest]),
            Self::Md5(digest) => Targets::md5([*digest]),
        };
        targets.expect("it is one target")
    }
}

/// A password that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Its digest.
    pub hash: Hash,
    /// How many characters it may have. A list of words is asked without regard to this.
    pub lengths: RangeInclusive<usize>,
}

/// By which way a password was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// It was found before, for somebody else.
    Seen,
    /// It stood in the table of all short passwords.
    Table,
    /// It is a word of the list.
    Dictionary,
    /// It is a word of the list, changed by a rule.
    Rules,
    /// By trying all passwords of a mask.
    BruteForce,
}

impl Way {
    /// All.
    pub const ALL: [Self; 5] = [Self::Seen, Self::Table, Self::Dictionary, Self::Rules, Self::BruteForce];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Table => "table",
            Self::Dictionary => "dictionary",
            Self::Rules => "rules",
            Self::BruteForce => "brute-force",
        }
    }
}

/// A password that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The password.
    pub password: Vec<u8>,
    /// By which way.
    pub by: Way,
    /// How many candidates were tried for it.
    pub tried: u64,
}

/// In which order candidates are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// All passwords of the length, those that begin with the same letters one after the other.
    #[default]
    Plain,
    /// The list of words first.
    Dictionary,
    /// The list of words, then these changed by rules, then all passwords of the length.
    Rules,
    /// The list of words, then what rules make of it and all passwords of the length in the order that takes the
    /// shortest time on average, by what was found so far.
    Adaptive,
}

impl Strategy {
    /// All, in the order in which they are listed to users.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Dictionary, Self::Rules, Self::Adaptive];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Dictionary => "dictionary",
            Self::Rules => "rules",
            Self::Adaptive => "adaptive",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}; known are plain, dictionary, rules, adaptive")]
pub struct UnknownStrategy(pub String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| UnknownStrategy(name.into()))
    }
}

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

/// Why nothing is searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinderError {
    /// No password has such a length.
    #[error("passwords of {from} to {to} characters; they must have 1 to {longest}", from = .0.start(), to = .0.end(), longest = Mask::LONGEST)]
    Lengths(RangeInclusive<usize>),
    /// The table cannot be built.
    #[error("cannot start the thread that builds the table of passwords: {0}; run without a table")]
    NoThread(String),
    /// The table would be too large.
    #[error(
        "a table of all passwords of up to {length} characters {needs}, and {granted} MiB are granted; give more with \
         --table-memory, or a shorter --table-length",
        needs = needs(*.needs_bytes),
        granted = .granted_bytes >> 20
    )]
    NoTable {
        /// Up to which length it should go.
        length: usize,
        /// What it would take; `None` where it has more passwords than a table may have.
        needs_bytes: Option<u64>,
        /// What it may take.
        granted_bytes: u64,
    },
    /// It would take too long.
    #[error(
        "{candidates} passwords would have to be tried, and no more than {bound} are; ask for a shorter one"
    )]
    TooMany {
        /// How many there are; `u64::MAX` if there are more.
        candidates: u64,
        /// The most that are tried.
        bound: u64,
    },
}

fn needs(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("needs {} MiB", bytes.div_ceil(1 << 20)),
        None => format!("has more than the {} passwords of the largest", u32::MAX),
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
        Shared::register(&self.0, registry);
    }

    fn pieces(&self, wanted: &Wanted) -> Result<(Vec<hunt::Piece>, u64), FinderError> {
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
