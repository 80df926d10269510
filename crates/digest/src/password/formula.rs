//! The interface between a digest and the search: formulas over any vectors.

use crate::vector::{Streams, Vector};

/// The one block of a message, as words.
pub(crate) type Block = [u32; 16];

/// The byte order within words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first byte is the high one, as in SHA-1.
    BigEndian,
    /// The first byte is the low one, as in MD5.
    LittleEndian,
}

impl Order {
    /// How far left the byte at this position of the message is shifted within its word.
    pub(crate) fn shift(self, position: usize) -> usize {
        match self {
            Self::BigEndian => 24 - 8 * (position % 4),
            Self::LittleEndian => 8 * (position % 4),
        }
    }

    /// The block of a message of this many zero bytes.
    pub(crate) fn empty_block(self, length: usize) -> Block {
        let mut block = [0; 16];
        block[length / 4] = 0x80 << self.shift(length);
        block[match self {
            Self::BigEndian => 15,
            Self::LittleEndian => 14,
        }] = 8 * length as u32;
        block
    }
}

/// A digest's formulas, with the targets. Candidates come in rows: those of a row only differ in some bytes of
/// their first word, for which a table has one vector after the other. Several rows go through the table
/// together.
pub(crate) trait Formula: Send + Sync + 'static {
    /// A digest.
    type Digest;
    /// The byte order within words.
    const ORDER: Order;
    /// The values precomputed from the bytes that differ within a row.
    type Lanes<V: Vector>: Send + Sync;
    /// The values precomputed from all other bytes and from the targets, for `N` rows.
    type Rows<const N: usize>;

    /// The formulas for these targets; without any, nothing matches.
    fn new(targets: &[Self::Digest]) -> Self;

    /// The lanes of first words that only contain the bytes that differ within a row.
    fn lanes<V: Vector>(first: V) -> Self::Lanes<V>;

    /// The rows of blocks without the bytes that differ within a row, `N` together; the last is repeated if there
    /// are too few. There is at least one, and at most `N` or, if that is more, [`Vector::LANES`].
    fn rows<V: Vector, const N: usize>(&self, blocks: &[Block]) -> Vec<Self::Rows<N>>;

    /// Whether some candidate may have one of the digests.
    fn any_match<V: Vector, const N: usize>(&self, rows: &Self::Rows<N>, lanes: &Self::Lanes<V>) -> bool;
}

/// A digest of which one word can be computed for every candidate, in any row.
pub(crate) trait Marked: Formula {
    /// A word that is a function of the digest of each candidate. The formula must have been made without
    /// targets.
    fn mark<V: Vector, const N: usize>(&self, rows: &Self::Rows<N>, lanes: &Self::Lanes<V>) -> Streams<V, N>;
}
