//! Random numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014), enough for jitter in timers and probes.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)`.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64_and_covers_the_range() {
        // The published first output for seed 0.
        assert_eq!(Random::new(0).next(), 0xE220_A839_7B1D_CDAF);
        let mut random = Random::new(7);
        let mut hits = [0; 10];
        for _ in 0..10_000 {
            hits[random.below(10) as usize] += 1;
            assert!((0.0..1.0).contains(&random.share()));
        }
        // Binomial, deviation 30: six of them, a false alarm of 2 in 10^8.
        assert!(hits.iter().all(|n| (820..1180).contains(n)), "{hits:?}");
        assert_eq!(random.below(0), 0);
    }
}
