//! The search of a job: the digest, the candidates, and how both are written.
//!
//! This is all that a worker can be made to do: compute digests of numbered candidates and compare them with one digest.

use std::fmt;
use std::ops::Range;

use kendall_digest::password::{self, Mask};
use kendall_digest::sha256;
use sha2::{Digest as _, Sha256};

use crate::bytes::{Input, put};

/// What is computed for each candidate. Workers have a speed for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SearchKind {
    /// SHA-256 of a 64-bit integer.
    Integer,
    /// SHA-1 of a password.
    Sha1,
    /// SHA-256 of a password.
    Sha256,
    /// MD5 of a password.
    Md5,
}

impl SearchKind {
    /// All kinds, in the order of their numbers in messages.
    pub const ALL: [Self; 4] = [Self::Integer, Self::Sha1, Self::Sha256, Self::Md5];

    /// The index in tables of speeds, and the number in messages.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A digest, and the candidates among which its origin is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSpec {
    /// 64-bit integers by their SHA-256 digest.
    Integer {
        /// The digest.
        digest: sha256::Digest,
    },
    /// Passwords of a mask by their SHA-1 digest.
    Sha1 {
        /// The digest.
        digest: [u8; 20],
        /// The passwords.
        mask: Mask,
    },
    /// Passwords of a mask by their SHA-256 digest.
    Sha256 {
        /// The digest.
        digest: [u8; 32],
        /// The passwords.
        mask: Mask,
    },
    /// Passwords of a mask by their MD5 digest.
    Md5 {
        /// The digest.
        digest: [u8; 16],
        /// The passwords.
        mask: Mask,
    },
}

impl SearchSpec {
    /// What is computed for each candidate.
    pub fn kind(&self) -> SearchKind {
        match self {
            Self::Integer { .. } => SearchKind::Integer,
            Self::Sha1 { .. } => SearchKind::Sha1,
            Self::Sha256 { .. } => SearchKind::Sha256,
            Self::Md5 { .. } => SearchKind::Md5,
        }
    }

    /// The passwords, if candidates are passwords.
    pub fn mask(&self) -> Option<&Mask> {
        match self {
            Self::Integer { .. } => None,
            Self::Sha1 { mask, .. } | Self::Sha256 { mask, .. } | Self::Md5 { mask, .. } => Some(mask),
        }
    }

    /// One more than the last candidate.
    pub fn end(&self) -> u64 {
        self.mask().map_or(u64::MAX, Mask::size)
    }

    /// Whether this candidate is behind the digest.
    pub fn is_answer(&self, candidate: u64) -> bool {
        let password =
            || self.mask().filter(|mask| candidate < mask.size()).map(|mask| mask.password(candidate));
        match self {
            Self::Integer { digest } => sha256::digest(candidate) == *digest,
            Self::Sha1 { digest, .. } => password().is_some_and(|word| password::sha1(&word) == *digest),
            Self::Sha256 { digest, .. } => password().is_some_and(|word| password::sha256(&word) == *digest),
            Self::Md5 { digest, .. } => password().is_some_and(|word| password::md5(&word) == *digest),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind().index() as u8);
        match self {
            Self::Integer { digest } | Self::Sha256 { digest, .. } => out.extend(digest),
            Self::Sha1 { digest, .. } => out.extend(digest),
            Self::Md5 { digest, .. } => out.extend(digest),
        }
        let Some(mask) = self.mask() else { return };
        out.push(mask.charsets().len() as u8);
        for charset in mask.charsets() {
            put(out, charset.len() as u16);
            out.extend(charset);
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Option<Self> {
        let kind = *SearchKind::ALL.get(usize::from(input.number::<u8>()?))?;
        Some(match kind {
            SearchKind::Integer => Self::Integer { digest: input.array()? },
            SearchKind::Sha1 => Self::Sha1 { digest: input.array()?, mask: mask(input)? },
            SearchKind::Sha256 => Self::Sha256 { digest: input.array()?, mask: mask(input)? },
            SearchKind::Md5 => Self::Md5 { digest: input.array()?, mask: mask(input)? },
        })
    }
}

fn mask(input: &mut Input<'_>) -> Option<Mask> {
    let positions = usize::from(input.number::<u8>()?);
    if positions > Mask::LONGEST {
        return None;
    }
    let mut charsets = Vec::with_capacity(positions);
    for _ in 0..positions {
        let length = usize::from(input.number::<u16>()?);
        charsets.push(input.take(length)?.to_vec());
    }
    Mask::new(charsets).ok()
}

/// The name of a job: equal searches have equal names, also after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub(crate) [u8; 16]);

impl JobId {
    /// The bytes of a name.
    pub const BYTES: usize = 16;

    /// The name of these bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The name of a search of these candidates.
    pub fn of(spec: &SearchSpec, whole: &Range<u64>) -> Self {
        let mut bytes = Vec::new();
        spec.encode(&mut bytes);
        put(&mut bytes, whole.start);
        put(&mut bytes, whole.end);
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        Self(*digest.first_chunk().expect("a digest is longer"))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl JobId {
    /// Reads a name as it is displayed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * Self::BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}
