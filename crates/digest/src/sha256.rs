//! SHA-256 of 64-bit integers, hashed as their 8 little-endian bytes.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use crate::engine::Engine;
use crate::interrupt::Interrupt;

pub(crate) mod formula;
mod portable;

use formula::{Block, wanted};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// The digest of a 64-bit integer.
pub fn digest(value: u64) -> Digest {
    Sha256::digest(value.to_le_bytes()).into()
}

/// The candidates that kernels test between two looks at anything else. Lanes differ in the low bits.
pub(crate) const GROUP: u32 = 16;

/// Digests to look for, all in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    digests: Vec<Digest>,
    /// For each digest, the word that tells almost all other candidates from it.
    pub(crate) wanted: Vec<u32>,
}

/// There must be at least one target, and no more than [`Targets::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} targets at once; there must be 1 to {most}", most = Targets::MOST)]
pub struct TargetCount(pub usize);

impl Targets {
    /// The most digests in one pass.
    pub const MOST: usize = 64;

    /// Several digests.
    ///
    /// # Errors
    /// Fails if there is none, or more than [`MOST`](Self::MOST).
    pub fn new(digests: impl Into<Vec<Digest>>) -> Result<Self, TargetCount> {
        let digests = digests.into();
        if !(1..=Self::MOST).contains(&digests.len()) {
            return Err(TargetCount(digests.len()));
        }
        let wanted = digests.iter().map(wanted).collect();
        Ok(Self { digests, wanted })
    }

    /// One digest.
    pub fn one(digest: Digest) -> Self {
        Self { digests: vec![digest], wanted: vec![wanted(&digest)] }
    }

    /// The digests, in the order in which they were given.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Which of the targets this candidate is behind.
    pub(crate) fn matched(&self, candidate: u64) -> Option<usize> {
        let digest = digest(candidate);
        self.digests.iter().position(|target| *target == digest)
    }
}

/// What came of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first candidate in the range that is behind one of the targets.
    Found {
        /// The candidate.
        value: u64,
        /// The place of its digest among the targets.
        target: usize,
    },
    /// No candidate in the range is behind any target.
    Absent,
    /// The scan was interrupted. No candidate below `at` is behind any target.
    Stopped {
        /// The first candidate that was not looked at.
        at: u64,
    },
}

/// A piece of work for a kernel: whole groups of candidates that share their upper 32 bits.
pub(crate) struct Sweep<'a> {
    pub(crate) block: &'a Block<u32>,
    /// The lower 32 bits of the first candidate, a multiple of [`GROUP`].
    pub(crate) from: u32,
    /// How many groups; at least one.
    pub(crate) groups: u32,
    /// What [`formula::residue`] is for each target; at least one.
    pub(crate) wanted: &'a [u32],
    pub(crate) interrupt: &'a Interrupt,
}

/// Tests groups of candidates in order. Returns how many it has tested in full without a match: it stops before
/// a group with a candidate that matches, and before any group once it sees the interrupt raised. That a
/// candidate matches does not mean that it is found: some other one in 2³² does for each target.
pub(crate) type Kernel = fn(&Sweep<'_>) -> u32;

/// The kernel of an engine.
pub(crate) fn kernel(engine: Engine) -> Kernel {
    match engine {
        _ => portable::sweep,
    }
}

/// The first candidate in `range` that is behind one of the targets.
pub fn scan(engine: Engine, targets: &Targets, range: Range<u64>, interrupt: &Interrupt) -> Outcome {
    let kernel = kernel(engine);
    let Range { start: mut at, end } = range;
    while at < end {
        // All groups up to the end of the block of candidates that share their upper half.
        let upper = (at >> 32) as u32;
        let last = (end - 1).min(at | u64::from(u32::MAX));
        let block = Block::new(upper);
        let mut from = at as u32 / GROUP;
        let until = last as u32 / GROUP;
        while from <= until {
            let groups = until - from + 1;
            let sweep =
                Sweep { block: &block, from: from * GROUP, groups, wanted: &targets.wanted, interrupt };
            from += kernel(&sweep);
            if from > until {
                break;
            }
            let group = (u64::from(upper) << 32) | u64::from(from * GROUP);
            if interrupt.is_raised() {
                return Outcome::Stopped { at: group.max(at) };
            }
            for value in group.max(at)..=last.min(group + u64::from(GROUP - 1)) {
                if let Some(target) = targets.matched(value) {
                    return Outcome::Found { value, target };
                }
            }
            from += 1;
        }
        at = match last.checked_add(1) {
            Some(next) => next,
            None => break,
        };
    }
    Outcome::Absent
}
