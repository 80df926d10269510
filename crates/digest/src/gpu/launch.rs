//! The protocol between host and kernel: the words of a launch, and those of its result.

use super::record::{BLOCK_WORDS, words};
use crate::sha256::formula::Block;

/// The numbers of targets for which there are kernels. A launch uses the narrowest that is wide enough and fills
/// up with repetitions.
pub(super) const WIDTHS: [usize; 3] = [1, 8, 64];

/// Threads in a block.
pub(super) const BLOCK_THREADS: u32 = 256;

/// The positions of the words in the kernel's only parameter.
pub(super) mod call {
    use super::BLOCK_WORDS;

    /// The address of the words of [`super::outcome`].
    pub(in crate::gpu) const OUTCOME: usize = 0;
    /// The address of a word that is not zero if the kernel is to stop.
    pub(in crate::gpu) const STOP: usize = 2;
    /// The lower half of the first candidate.
    pub(in crate::gpu) const FROM: usize = 4;
    /// The number of candidates.
    pub(in crate::gpu) const COUNT: usize = 5;
    /// The number 1, for the kernel's sums.
    pub(in crate::gpu) const ONE: usize = 6;
    /// The words of the block.
    pub(in crate::gpu) const BLOCK: usize = 7;
    /// The words to match.
    pub(in crate::gpu) const WANTED: usize = BLOCK + BLOCK_WORDS;
}

/// The positions of the words in the card's memory that a kernel changes.
pub(super) mod outcome {
    /// The first candidate that matched, counted from the first of the launch.
    pub(in crate::gpu) const FIRST: usize = 0;
    /// The first candidate that was not tested because of the flag, counted alike.
    pub(in crate::gpu) const CUT: usize = 1;
}

/// The words in the card's memory before a launch.
pub(super) type Words = [u32; 2];

/// The value for "no such candidate".
const NONE: u32 = u32::MAX;

/// [`Words`] before a launch.
pub(super) const UNTOUCHED: Words = [NONE, NONE];

/// The most candidates of a launch: counting on by the number of threads must not overflow.
pub(super) const MOST_CANDIDATES: u32 = 1 << 30;

/// Consecutive candidates that one launch tests.
#[derive(Clone, Debug)]
pub(super) struct Launch<'a> {
    /// The lower half of the first one.
    pub(super) from: u32,
    /// How many: 1 to [`MOST_CANDIDATES`], all with the same upper half.
    pub(super) count: u32,
    /// The words that they have in common.
    pub(super) block: Block<u32>,
    /// The value of [`crate::sha256::formula::residue`] for each target: 1 to as many as the last of [`WIDTHS`].
    pub(super) wanted: &'a [u32],
}

impl Launch<'_> {
    /// The index of the width in [`WIDTHS`].
    pub(super) fn width(&self) -> usize {
        WIDTHS.iter().position(|width| self.wanted.len() <= *width).expect("there are at most 64 targets")
    }

    /// The number of blocks of threads, where `most` fill the card.
    pub(super) fn blocks(&self, most: u32) -> u32 {
        self.count.div_ceil(BLOCK_THREADS).min(most)
    }

    /// The kernel's parameter, given the addresses that it reads and changes.
    pub(super) fn call(&self, outcome: u64, stop: u64) -> Vec<u32> {
        let halves = |address: u64| [address as u32, (address >> 32) as u32];
        let mut call = [halves(outcome), halves(stop), [self.from, self.count]].concat();
        call.push(1);
        call.extend(words(&self.block));
        call.extend(self.wanted.iter().cycle().take(WIDTHS[self.width()]));
        call
    }
}

/// How a launch ended. Candidates are counted from its first. Every candidate before the reported one was tested
/// and does not match; later ones may match too, or may not have been tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// All candidates were tested, and none matches.
    Nothing,
    /// The candidate that matches.
    Match(u32),
    /// The first candidate that was not tested.
    Cut(u32),
}

impl From<Words> for Report {
    fn from(words: Words) -> Self {
        match [words[outcome::FIRST], words[outcome::CUT]] {
            [NONE, NONE] => Self::Nothing,
            [first, cut] if first < cut => Self::Match(first),
            [_, cut] => Self::Cut(cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_counts_if_all_before_it_were_tested() {
        for (first, cut, report) in [
            (NONE, NONE, Report::Nothing),
            (5, NONE, Report::Match(5)),
            (NONE, 5, Report::Cut(5)),
            (5, 6, Report::Match(5)),
            (6, 5, Report::Cut(5)),
            (0, 1, Report::Match(0)),
            (1, 0, Report::Cut(0)),
        ] {
            assert_eq!(Report::from([first, cut]), report);
        }
    }
}
