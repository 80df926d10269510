//! The seeds of the two directions of a link.

/// Derives a seed for each direction from one seed.
pub(super) fn seeds(seed: u64) -> [u64; 2] {
    [seed, !seed]
}
