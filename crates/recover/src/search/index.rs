//! An index of many candidates by their digests, in 5 bytes each: it only keeps the order of the digests.
//!
//! Candidates have numbers. The numbers are in buckets by the first bits of a word of their digests, some four in
//! each; a lookup computes the digests of those in its bucket.

use std::sync::atomic::{AtomicU32, Ordering};

/// A builder of the index. Any number of threads fill it: they first count each number, then place each.
#[derive(Debug)]
pub(super) struct Filling {
    shift: u32,
    /// The number of entries of each bucket; later, the position of its next entry.
    buckets: Vec<AtomicU32>,
    numbers: Vec<AtomicU32>,
}

/// Candidates by their digests.
#[derive(Debug)]
pub(super) struct Index {
    shift: u32,
    /// The end of each bucket.
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

/// The number of bits that distinguish the buckets of this many candidates.
fn bucket_bits(candidates: u64) -> u32 {
    (candidates / 4).max(2).ilog2()
}

/// The size in bytes of an index of this many candidates.
pub(super) fn bytes(candidates: u64) -> u64 {
    size_of::<u32>() as u64 * (candidates + (1 << bucket_bits(candidates)))
}

impl Filling {
    /// For this many candidates, at most `u32::MAX`.
    pub(super) fn new(candidates: u64) -> Self {
        let bits = bucket_bits(candidates);
        let zeros = |count: usize| (0..count).map(|_| AtomicU32::new(0)).collect();
        Self { shift: 32 - bits, buckets: zeros(1 << bits), numbers: zeros(candidates as usize) }
    }

    /// Counts the candidate whose digest has this word.
    pub(super) fn count(&self, word: u32) {
        self.buckets[(word >> self.shift) as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// After all were counted, computes where each bucket begins.
    pub(super) fn place_buckets(&mut self) {
        let mut begin = 0;
        for bucket in &mut self.buckets {
            begin += std::mem::replace(bucket.get_mut(), begin);
        }
    }

    /// Places the candidate of this number, whose digest has this word, and which was counted.
    pub(super) fn place(&self, word: u32, number: u32) {
        let place = self.buckets[(word >> self.shift) as usize].fetch_add(1, Ordering::Relaxed);
        self.numbers[place as usize].store(number, Ordering::Relaxed);
    }

    /// Completes the index after all were placed.
    pub(super) fn finish(self) -> Index {
        let plain = |words: Vec<AtomicU32>| words.into_iter().map(AtomicU32::into_inner).collect();
        Index { shift: self.shift, ends: plain(self.buckets), numbers: plain(self.numbers) }
    }
}

impl Index {
    /// The index of candidates whose digests have these words, numbered in this order.
    pub(super) fn of(words: &[u32]) -> Self {
        let mut filling = Filling::new(words.len() as u64);
        words.iter().for_each(|word| filling.count(*word));
        filling.place_buckets();
        words.iter().zip(0..).for_each(|(word, number)| filling.place(*word, number));
        filling.finish()
    }

    /// The numbers of some candidates, among them all whose digest has this word.
    pub(super) fn look_up(&self, word: u32) -> &[u32] {
        let bucket = (word >> self.shift) as usize;
        let begin = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[begin as usize..self.ends[bucket] as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_is_put_in_is_found(words in prop::collection::vec(any::<u32>(), 0..3000)) {
            let index = Index::of(&words);
            prop_assert_eq!(index.numbers.len(), words.len());
            for (word, number) in words.iter().zip(0..) {
                prop_assert!(index.look_up(*word).contains(&number));
            }
            let buckets = 0..1u32 << (32 - index.shift);
            let all: usize = buckets.map(|bucket| index.look_up(bucket << index.shift).len()).sum();
            prop_assert_eq!(all, words.len(), "each in one bucket");
        }
    }

    #[test]
    fn a_candidate_takes_some_five_bytes() {
        for candidates in [1000, 12_356_630, 321_272_406] {
            let each = bytes(candidates) as f64 / candidates as f64;
            assert!((4.5..=5.0).contains(&each), "{each}");
        }
    }
}
