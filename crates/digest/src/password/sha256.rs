//! SHA-256 of candidates that differ in the first word of the message: the words that a row has in common are a
//! [`Block`], as for integers with the same upper half.

use std::array::from_fn;

use super::formula::{self, Formula, Order};
use crate::sha256::Digest;
use crate::sha256::formula::{Block, residue_of, wanted};
use crate::vector::{Streams, Vector};

/// The residue of the candidate behind each target.
pub(crate) struct Sha256(Vec<u32>);

impl Formula for Sha256 {
    type Digest = Digest;
    const ORDER: Order = Order::BigEndian;
    type Lanes<V: Vector> = V;
    type Rows<const N: usize> = Block<[u32; N]>;

    fn new(targets: &[Digest]) -> Self {
        Self(targets.iter().map(wanted).collect())
    }

    #[inline(always)]
    fn lanes<V: Vector>(first: V) -> V {
        first
    }

    #[inline(always)]
    fn rows<V: Vector, const N: usize>(&self, blocks: &[formula::Block]) -> Vec<Block<[u32; N]>> {
        blocks.chunks(N).map(beside).collect()
    }

    #[inline(always)]
    fn any_match<V: Vector, const N: usize>(&self, rows: &Block<[u32; N]>, lanes: &V) -> bool {
        // Without this, the compiler makes a vector of each word of a row before the loop over the lanes.
        let rows = std::hint::black_box(rows);
        let residue = residue_of::<Streams<V, N>, 14>(rows, Streams::all(*lanes));
        let mut any = false;
        for wanted in &self.0 {
            any |= residue.any_equal(Streams::same(*wanted));
        }
        any
    }
}

/// The rows of these messages in parallel; the last is repeated if there are too few.
fn beside<const N: usize>(messages: &[formula::Block]) -> Block<[u32; N]> {
    let blocks: [Block<u32>; N] = from_fn(|i| Block::of(&messages[i.min(messages.len() - 1)]));
    Block {
        initial: from_fn(|t| blocks.map(|block| block.initial[t])),
        first: from_fn(|t| blocks.map(|block| block.first[t])),
        early: from_fn(|t| blocks.map(|block| block.early[t])),
        k: from_fn(|t| blocks.map(|block| block.k[t])),
        w: from_fn(|t| blocks.map(|block| block.w[t])),
    }
}
