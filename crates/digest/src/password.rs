//! SHA-1, SHA-256 and MD5 of short passwords.
//!
//! A [`Mask`] is a space of candidates, [`Targets`] are digests of one of the algorithms. A [`Search`] is built from
//! both once, and then [`scan`](Search::scan)s any ranges of candidates, also from several threads.
//!
//! ```
//! use kendall_digest::password::{Mask, Outcome, Search, Targets, sha1};
//! use kendall_digest::{Engine, Interrupt};
//!
//! let mask = Mask::uniform(b"abcdefghijklmnopqrstuvwxyz", 4)?;
//! let targets = Targets::sha1([sha1(b"test")])?;
//! let found = Search::new(Engine::Portable, &targets, &mask).scan(0..mask.size(), &Interrupt::new());
//! let Outcome::Found { value, target: 0 } = found else { panic!("{found:?}") };
//! assert_eq!(mask.password(value), b"test");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use ::md5::Md5;
use ::sha1::{Digest as _, Sha1};

use crate::engine::Engine;
use crate::interrupt::Interrupt;
pub use crate::sha256::{Outcome, TargetCount};
#[cfg(target_arch = "aarch64")]
use crate::vector::neon;
#[cfg(target_arch = "x86_64")]
use crate::vector::{avx2, avx512};

pub(crate) mod compress;
mod formula;
mod marks;
mod mask;
mod md5;
mod search;
pub(crate) mod sha1;
mod sha256;
#[cfg(target_arch = "x86_64")]
mod sha256_ni;

use formula::Block;
pub use marks::{Marks, sha1_mark};
pub use mask::{Mask, MaskError};
use search::{Kernel, kernel};

/// The SHA-1 digest of a message.
pub fn sha1(message: &[u8]) -> [u8; 20] {
    Sha1::digest(message).into()
}

/// The MD5 digest of a message.
pub fn md5(message: &[u8]) -> [u8; 16] {
    Md5::digest(message).into()
}

/// The SHA-256 digest of a message.
pub fn sha256(message: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(message).into()
}

/// The hash function of the digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SHA-1 (FIPS 180-4).
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// MD5 (RFC 1321).
    Md5,
}

/// The digests that a search compares in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets(Digests);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Digests {
    Sha1(Vec<[u8; 20]>),
    Sha256(Vec<[u8; 32]>),
    Md5(Vec<[u8; 16]>),
}

impl Targets {
    /// The most digests in one pass.
    pub const MOST: usize = crate::sha256::Targets::MOST;

    /// SHA-1 digests.
    ///
    /// # Errors
    /// Fails for an empty list, or more than [`MOST`](Self::MOST) digests.
    pub fn sha1(digests: impl Into<Vec<[u8; 20]>>) -> Result<Self, TargetCount> {
        let digests = digests.into();
        check_count(digests.len()).map(|()| Self(Digests::Sha1(digests)))
    }

    /// SHA-256 digests.
    ///
    /// # Errors
    /// Fails for an empty list, or more than [`MOST`](Self::MOST) digests.
    pub fn sha256(digests: impl Into<Vec<[u8; 32]>>) -> Result<Self, TargetCount> {
        let digests = digests.into();
        check_count(digests.len()).map(|()| Self(Digests::Sha256(digests)))
    }

    /// MD5 digests.
    ///
    /// # Errors
    /// Fails for an empty list, or more than [`MOST`](Self::MOST) digests.
    pub fn md5(digests: impl Into<Vec<[u8; 16]>>) -> Result<Self, TargetCount> {
        let digests = digests.into();
        check_count(digests.len()).map(|()| Self(Digests::Md5(digests)))
    }

    /// The hash function of the digests.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Digests::Sha1(_) => Algorithm::Sha1,
            Digests::Sha256(_) => Algorithm::Sha256,
            Digests::Md5(_) => Algorithm::Md5,
        }
    }

    /// The index of the target that this word is behind: for words from a list, which no mask describes.
    pub fn position_of(&self, word: &[u8]) -> Option<usize> {
        match &self.0 {
            Digests::Sha1(digests) => place(digests, &sha1(word)),
            Digests::Sha256(digests) => place(digests, &sha256(word)),
            Digests::Md5(digests) => place(digests, &md5(word)),
        }
    }
}

fn place<const BYTES: usize>(digests: &[[u8; BYTES]], digest: &[u8; BYTES]) -> Option<usize> {
    digests.iter().position(|target| target == digest)
}

fn check_count(count: usize) -> Result<(), TargetCount> {
    if (1..=Targets::MOST).contains(&count) { Ok(()) } else { Err(TargetCount(count)) }
}

/// The first candidate in `range` that is behind one of the targets. To scan several ranges, make a [`Search`].
///
/// # Panics
/// As [`Search::scan`].
pub fn scan(
    engine: Engine,
    targets: &Targets,
    mask: &Mask,
    range: Range<u64>,
    interrupt: &Interrupt,
) -> Outcome {
    Search::new(engine, targets, mask).scan(range, interrupt)
}

/// A search among the candidates of a mask.
pub struct Search {
    targets: Targets,
    mask: Mask,
    kernel: Box<dyn Kernel>,
}

impl Search {
    /// Prepares a search, which takes some microseconds. The SHA extensions only speed up SHA-256, so for the other
    /// digests their engine uses the vectors that a processor of its kind has.
    pub fn new(engine: Engine, targets: &Targets, mask: &Mask) -> Self {
        // The fastest number of streams was measured: with more, registers are spilled, which can be slow.
        let kernel = match (&targets.0, engine.vectors()) {
            #[cfg(target_arch = "x86_64")]
            (Digests::Sha256(digests), _) if engine == Engine::ShaNi => {
                Box::new(sha256_ni::Interleaved::new(mask, digests))
            }
            #[cfg(target_arch = "x86_64")]
            (Digests::Sha1(digests), Engine::Avx2) => kernel::<avx2::Avx2, sha1::Sha1, 2>(mask, digests),
            #[cfg(target_arch = "x86_64")]
            (Digests::Sha256(digests), Engine::Avx2) => {
                kernel::<avx2::Avx2, sha256::Sha256, 1>(mask, digests)
            }
            #[cfg(target_arch = "x86_64")]
            (Digests::Md5(digests), Engine::Avx2) => kernel::<avx2::Avx2, md5::Md5, 4>(mask, digests),
            #[cfg(target_arch = "x86_64")]
            (Digests::Sha1(digests), Engine::Avx512) => {
                kernel::<avx512::Avx512, sha1::Sha1, 4>(mask, digests)
            }
            #[cfg(target_arch = "x86_64")]
            (Digests::Sha256(digests), Engine::Avx512) => {
                kernel::<avx512::Avx512, sha256::Sha256, 2>(mask, digests)
            }
            #[cfg(target_arch = "x86_64")]
            (Digests::Md5(digests), Engine::Avx512) => kernel::<avx512::Avx512, md5::Md5, 6>(mask, digests),
            #[cfg(target_arch = "aarch64")]
            (Digests::Sha1(digests), Engine::Neon) => kernel::<neon::Neon, sha1::Sha1, 4>(mask, digests),
            #[cfg(target_arch = "aarch64")]
            (Digests::Sha256(digests), Engine::Neon) => {
                kernel::<neon::Neon, sha256::Sha256, 2>(mask, digests)
            }
            #[cfg(target_arch = "aarch64")]
            (Digests::Md5(digests), Engine::Neon) => kernel::<neon::Neon, md5::Md5, 6>(mask, digests),
            (Digests::Sha1(digests), _) => kernel::<u32, sha1::Sha1, 1>(mask, digests),
            (Digests::Sha256(digests), _) => kernel::<u32, sha256::Sha256, 1>(mask, digests),
            (Digests::Md5(digests), _) => kernel::<u32, md5::Md5, 1>(mask, digests),
        };
        Self { targets: targets.clone(), mask: mask.clone(), kernel }
    }

    /// The grain: scanning is fastest where ranges begin and end at multiples of it, and are many times as long.
    pub fn grain(&self) -> u64 {
        self.kernel.row_length() * self.kernel.rows() as u64
    }

    /// The first candidate in `range` that is behind one of the targets.
    ///
    /// # Panics
    /// Panics if the range goes beyond the mask.
    pub fn scan(&self, range: Range<u64>, interrupt: &Interrupt) -> Outcome {
        assert!(range.end <= self.mask.size(), "a range up to {} of {}", range.end, self.mask.size());
        if range.is_empty() {
            return Outcome::Absent;
        }
        let row_length = self.kernel.row_length();
        let until = (range.end - 1) / row_length + 1;
        let mut row = range.start / row_length;
        let mut rest = self.kernel.blocks(&self.mask, row);
        let mut blocks = Vec::with_capacity(self.kernel.rows());
        while row < until {
            blocks.clear();
            blocks.extend((row..until).take(self.kernel.rows()).map(|_| rest.next()));
            match self.scan_rows(row, &blocks, &range, interrupt) {
                Outcome::Absent => row += blocks.len() as u64,
                outcome => return outcome,
            }
        }
        Outcome::Absent
    }

    /// Tests the rows of these blocks, of which `row` is the index of the first.
    fn scan_rows(&self, row: u64, blocks: &[Block], range: &Range<u64>, interrupt: &Interrupt) -> Outcome {
        let (streams, vectors) = (self.kernel.streams(), self.kernel.vectors());
        let mut until = blocks.len().div_ceil(streams) * vectors;
        let mut first: Option<(u64, usize)> = None;
        let mut step = 0;
        loop {
            step = self.kernel.sweep(blocks, step, interrupt);
            if step >= until {
                return first.map_or(Outcome::Absent, |(value, target)| Outcome::Found { value, target });
            }
            let (group, vector) = (step / vectors, step % vectors);
            let row = row + (group * streams) as u64;
            if interrupt.is_raised() {
                return Outcome::Stopped { at: range.start.max(row * self.kernel.row_length()) };
            }
            let rows = (row..).take(streams.min(blocks.len() - group * streams));
            let mut candidates =
                rows.flat_map(|row| self.candidates(row, vector)).filter(|number| range.contains(number));
            let found = candidates
                .find_map(|number| Some((number, self.targets.position_of(&self.mask.password(number))?)));
            if found.is_some() {
                // Later vectors have candidates of the same rows, so this need not be the first match; later rows have
                // none before it.
                until = (group + 1) * vectors;
            }
            first = first.into_iter().chain(found).min();
            step += 1;
        }
    }

    /// The numbers of a row's candidates in this vector.
    fn candidates(&self, row: u64, vector: usize) -> Range<u64> {
        let length = self.kernel.row_length();
        let from = (vector * self.kernel.lanes()) as u64;
        let until = (from + self.kernel.lanes() as u64).min(length);
        row * length + from..row * length + until
    }
}
