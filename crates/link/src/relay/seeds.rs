//! The seeds of the two ways of a link.

/// One for each way, from one seed.
pub(super) fn seeds(seed: u64) -> [u64; 2] {
    [seed, !seed]
}
