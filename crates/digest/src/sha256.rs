//! SHA-256 of 64-bit integers, hashed as their 8 little-endian bytes.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use crate::engine::Engine;
use crate::interrupt::Interrupt;
#[cfg(target_arch = "x86_64")]
use crate::vector::avx2::Avx2;

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(test)]
mod assembly;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod formula;
mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sha_ni;
pub(crate) mod sweep;
#[cfg(target_arch = "x86_64")]
mod vectors;

use formula::{Block, wanted};
use sweep::{GROUP, Kernel, Sweep};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// The digest of a 64-bit integer.
pub fn digest(value: u64) -> Digest {
    Sha256::digest(value.to_le_bytes()).into()
}

/// The digests that a search compares in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    digests: Vec<Digest>,
    /// For each digest, the word that distinguishes it from almost all other candidates.
    pub(crate) wanted: Vec<u32>,
}

/// The number of targets is 0 or above [`Targets::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} targets at once; there must be 1 to {most}", most = Targets::MOST)]
pub struct TargetCount(pub usize);

impl Targets {
    /// The most digests in one pass.
    pub const MOST: usize = 64;

    /// Several digests.
    ///
    /// # Errors
    /// Fails for an empty list, or more than [`MOST`](Self::MOST) digests.
    pub fn new(digests: impl Into<Vec<Digest>>) -> Result<Self, TargetCount> {
        let digests = digests.into();
        if !(1..=Self::MOST).contains(&digests.len()) {
            return Err(TargetCount(digests.len()));
        }
        let wanted = digests.iter().map(wanted).collect();
        Ok(Self { digests, wanted })
    }

    /// A set of one digest.
    pub fn one(digest: Digest) -> Self {
        Self { digests: vec![digest], wanted: vec![wanted(&digest)] }
    }

    /// The digests, in the order in which they were given.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// The index of the target that this candidate is behind.
    pub(crate) fn matched(&self, candidate: u64) -> Option<usize> {
        let digest = digest(candidate);
        self.digests.iter().position(|target| *target == digest)
    }
}

/// The outcome of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first candidate in the range that is behind one of the targets.
    Found {
        /// The candidate.
        value: u64,
        /// The index of its digest among the targets.
        target: usize,
    },
    /// No candidate in the range is behind any target.
    Absent,
    /// The scan was interrupted. No candidate below `at` is behind any target.
    Stopped {
        /// The first candidate that was not tested.
        at: u64,
    },
}

impl Outcome {
    /// The progress of the scan of a range: no candidate below is behind any target.
    pub fn reached(self, range: &Range<u64>) -> u64 {
        match self {
            Self::Found { value, .. } => value,
            Self::Absent => range.end,
            Self::Stopped { at } => at,
        }
    }
}

/// The kernel of an engine.
pub(crate) fn kernel(engine: Engine) -> Kernel {
    match engine {
        // For any request of a caller, this only runs instructions that the processor has.
        _ if !engine.is_available() => portable::sweep,
        #[cfg(target_arch = "aarch64")]
        Engine::Neon => arm::neon::sweep,
        #[cfg(target_arch = "aarch64")]
        Engine::ArmSha2 => arm::sha2::sweep,
        #[cfg(target_arch = "x86_64")]
        Engine::ShaNi => sha_ni::sweep,
        #[cfg(target_arch = "x86_64")]
        Engine::Avx2 => vectors::sweep::<Avx2>,
        #[cfg(target_arch = "x86_64")]
        Engine::Avx512 => avx512::sweep,
        _ => portable::sweep,
    }
}

/// The least number of cycles per candidate on this engine, if its vector units can begin four operations a
/// cycle, or one `sha256rnds2` every second cycle: the bound with which kernels are compared. `None` where no
/// such bound is known.
pub fn least_cycles(engine: Engine) -> Option<f64> {
    match engine {
        // 28 times two rounds.
        Engine::ShaNi => Some(28.0 * 2.0),
        // A rotation takes three operations, and so does a choice.
        Engine::Avx2 => Some(2564.0 / 4.0 / 8.0),
        Engine::Avx512 => Some(1259.0 / 4.0 / 16.0),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A scan would hide that a kernel stops where nothing matches: it tests the group, finds nothing and goes
    /// on.
    #[test]
    fn every_kernel_stops_before_the_group_that_matches_and_nowhere_else() {
        const GROUPS: u32 = 5;
        let interrupt = Interrupt::new();
        for upper in [0, 7, u32::MAX] {
            let block = Block::new(upper);
            let residue = |candidate: u32| formula::residue(&block, candidate.swap_bytes());
            for from in [0, 0x1230, 0_u32.wrapping_sub(GROUPS * GROUP)] {
                for engine in Engine::available() {
                    let tested = |wanted: &[u32]| {
                        let interrupt = &interrupt;
                        kernel(engine)(&Sweep { block: &block, from, groups: GROUPS, wanted, interrupt })
                    };
                    let absent = residue(from.wrapping_sub(1));
                    assert_eq!(tested(&[absent]), GROUPS, "{engine}, {upper}, {from}");
                    for at in 0..GROUPS * GROUP {
                        let stopped = tested(&[absent, residue(from + at)]);
                        assert_eq!(stopped, at / GROUP, "{engine}, {upper}, {from} + {at}");
                    }
                }
            }
        }
    }

    /// For Miri, which takes a millisecond a candidate.
    #[test]
    fn every_kernel_finds_a_candidate_of_one_group() {
        let (block, interrupt) = (Block::new(3), Interrupt::new());
        for (candidate, tested) in [(GROUP - 1, 0), (GROUP, 1)] {
            let wanted = [formula::residue(&block, candidate.swap_bytes())];
            for engine in Engine::available() {
                let sweep =
                    Sweep { block: &block, from: 0, groups: 1, wanted: &wanted, interrupt: &interrupt };
                assert_eq!(kernel(engine)(&sweep), tested, "{engine}");
            }
        }
    }

    #[test]
    fn every_kernel_stops_when_it_is_interrupted() {
        let interrupt = Interrupt::new();
        interrupt.raise();
        let block = Block::new(0);
        // Of none of the candidates.
        let wanted = [formula::residue(&block, u32::MAX)];
        for engine in Engine::available() {
            let groups = 1 << 12;
            let sweep = Sweep { block: &block, from: 0, groups, wanted: &wanted, interrupt: &interrupt };
            assert!(kernel(engine)(&sweep) < groups, "{engine}");
        }
    }

    /// A digest of no candidate, which kernels mistake for that of `value`.
    fn decoy(value: u64) -> Digest {
        let mut decoy = digest(value);
        let right = wanted(&decoy);
        decoy[0] ^= 1;
        // The wanted word contains word 7 of the state unchanged.
        let last = u32::from_be_bytes(decoy[28..].try_into().unwrap());
        let last = last.wrapping_add(right).wrapping_sub(wanted(&decoy));
        decoy[28..].copy_from_slice(&last.to_be_bytes());
        assert_eq!(wanted(&decoy), right);
        decoy
    }

    #[test]
    fn a_candidate_that_only_matches_does_not_end_the_scan() {
        let start = (5 << 32) - 100;
        for engine in Engine::available() {
            for false_at in start..start + 40 {
                let scan = |digests: &[Digest]| {
                    let targets = Targets::new(digests).unwrap();
                    scan(engine, &targets, start..start + 300, &Interrupt::new())
                };
                assert_eq!(scan(&[decoy(false_at)]), Outcome::Absent, "{engine}");
                for answer in [start, false_at, false_at + 1, false_at + 20, start + 299] {
                    let found = scan(&[decoy(false_at), digest(answer)]);
                    assert_eq!(found, Outcome::Found { value: answer, target: 1 }, "{engine}, {false_at}");
                }
            }
        }
    }
}
