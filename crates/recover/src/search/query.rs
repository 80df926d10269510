//! The query and the result of a search.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use kendall_digest::password::{Mask, Targets, md5, sha1, sha256};

/// A digest of a password, by its algorithm.
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

    pub(super) fn sha1(password: &[u8]) -> Self {
        Self::Sha1(sha1(password))
    }

    pub(super) fn sha256(password: &[u8]) -> Self {
        Self::Sha256(sha256(password))
    }

    pub(super) fn md5(password: &[u8]) -> Self {
        Self::Md5(md5(password))
    }

    /// The first 32 bits of the digest.
    pub(super) fn first_word(&self) -> u32 {
        let word = match self {
            Self::Sha1(digest) => digest.first_chunk(),
            Self::Sha256(digest) => digest.first_chunk(),
            Self::Md5(digest) => digest.first_chunk(),
        };
        u32::from_be_bytes(*word.expect("digests are longer"))
    }

    /// The target for a kernel.
    pub(super) fn target(&self) -> Targets {
        let targets = match self {
            Self::Sha1(digest) => Targets::sha1([*digest]),
            Self::Sha256(digest) => Targets::sha256([*digest]),
            Self::Md5(digest) => Targets::md5([*digest]),
        };
        targets.expect("it is one target")
    }
}

/// A query for a password.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PasswordQuery {
    /// The password's digest.
    pub hash: Hash,
    /// The range of its length. The list of words is used at any length.
    pub lengths: RangeInclusive<usize>,
}

/// The source of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PasswordSource {
    /// The password was found before, for another request.
    Seen,
    /// The password is in the table of all short passwords.
    Table,
    /// The password is a word of the list.
    Dictionary,
    /// The password is a word of the list, changed by a rule.
    Rules,
    /// A mask, all passwords of which were tried.
    BruteForce,
}

impl PasswordSource {
    /// All sources.
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
pub struct FoundPassword {
    /// The password.
    pub password: Vec<u8>,
    /// The password's source.
    pub by: PasswordSource,
    /// The number of candidates tried for this password.
    pub tried: u64,
}

/// The order in which candidates are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Tries all passwords of the length, in dictionary order.
    #[default]
    Plain,
    /// The list of words first.
    Dictionary,
    /// The list of words, then these words changed by rules, then all passwords of the length.
    Rules,
    /// The list of words, then the results of rules and all passwords of the length, in the order that takes the
    /// shortest time on average, by the statistics of passwords found before.
    Adaptive,
}

impl Strategy {
    /// Every strategy, in the order in which they are listed to users.
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

/// The error for an unknown name of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}; known are plain, dictionary, rules, adaptive")]
pub struct UnknownStrategy(pub String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| UnknownStrategy(name.into()))
    }
}

/// The reason why there is no search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinderError {
    /// No password has such a length.
    #[error("the passwords have {from} to {to} characters; they must have 1 to {longest}", from = .0.start(), to = .0.end(), longest = Mask::LONGEST)]
    Lengths(RangeInclusive<usize>),
    /// The table cannot be built.
    #[error("cannot start the thread that builds the table of passwords: {0}; run without a table")]
    NoThread(String),
    /// The table would be too large.
    #[error(
        "a table of all passwords of up to {length} characters {needs}, but only {granted} MiB are allowed; raise \
         --table-memory, or lower --table-length",
        needs = needs(*.needs_bytes),
        granted = .granted_bytes >> 20
    )]
    NoTable {
        /// The required length.
        length: usize,
        /// The size of the table; `None` if it has more passwords than a table can have.
        needs_bytes: Option<u64>,
        /// The allowed size.
        granted_bytes: u64,
    },
    /// The search would take too long.
    #[error("the search needs {candidates} passwords, but the limit is {bound}; send a shorter length")]
    TooMany {
        /// The number of candidates; `u64::MAX` if there are more.
        candidates: u64,
        /// The limit.
        bound: u64,
    },
}

fn needs(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("needs {} MiB", bytes.div_ceil(1 << 20)),
        None => format!("has more than the {} passwords of the largest", u32::MAX),
    }
}
