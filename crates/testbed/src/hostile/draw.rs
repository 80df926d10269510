//! The random choices of a case: a pure function of the seed, the kind and the number of the case.

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The random choices of one case.
#[derive(Debug)]
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The choices of a case.
    pub fn of(seed: u64, kind: &str, number: u64) -> Self {
        // FNV-1a, which stays the same from one version of Rust to the next.
        let bytes = kind.bytes().chain(number.to_le_bytes());
        let mixed = bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { self.0.random_range(0..end) }
    }

    /// True with a probability of `chance` percent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// Picks an element of a list.
    ///
    /// # Panics
    /// Where the list is empty.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Noise.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
