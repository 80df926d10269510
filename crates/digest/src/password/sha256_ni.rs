//! SHA-256 by the SHA extensions of x86-64, which are faster than vectors of eight.

#![allow(unsafe_code, reason = "vector instructions")]

use super::formula::{Block, Order};
use super::mask::Mask;
use super::search::{Blocks, Kernel, first_words, row_positions};
use crate::engine::Engine;
use crate::interrupt::Interrupt;
use crate::sha256::Digest;
use crate::sha256::formula::wanted;
use crate::sha256::sha_ni::{STREAMS, Uniform, first_match, run};

/// See [`Kernel`]. Rows are not processed together: the candidates of one row are interleaved.
pub(super) struct Interleaved {
    /// The residue of the candidate behind each target.
    wanted: Vec<u32>,
    positions: usize,
    row_length: usize,
    /// The first words of the candidates of a row, for one vector after the other.
    firsts: Vec<[u32; STREAMS]>,
}

impl Interleaved {
    pub(super) fn new(mask: &Mask, targets: &[Digest]) -> Self {
        assert!(Engine::ShaNi.is_available(), "this processor cannot run the sha-ni engine");
        let positions = row_positions(mask, STREAMS, size_of::<[u32; STREAMS]>());
        let words = first_words(mask, positions, Order::BigEndian);
        // In the last vector, the last candidate is tested more than once.
        let vector = |words: &[u32]| std::array::from_fn(|i| words[i.min(words.len() - 1)]);
        Self {
            wanted: targets.iter().map(wanted).collect(),
            positions,
            row_length: words.len(),
            firsts: words.chunks(STREAMS).map(vector).collect(),
        }
    }
}

impl Kernel for Interleaved {
    fn row_length(&self) -> u64 {
        self.row_length as u64
    }

    fn lanes(&self) -> usize {
        STREAMS
    }

    fn vectors(&self) -> usize {
        self.firsts.len()
    }

    fn streams(&self) -> usize {
        1
    }

    fn rows(&self) -> usize {
        8
    }

    fn blocks<'a>(&self, mask: &'a Mask, row: u64) -> Blocks<'a> {
        Blocks::new(mask, self.positions, row, Order::BigEndian)
    }

    fn sweep(&self, rows: &[Block], step: usize, interrupt: &Interrupt) -> usize {
        // SAFETY: the processor has the instructions, or there would be no kernel.
        unsafe { sweep(self, rows, step, interrupt) }
    }
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn sweep(kernel: &Interleaved, rows: &[Block], step: usize, interrupt: &Interrupt) -> usize {
    let vectors = kernel.firsts.len();
    let mut from = step % vectors;
    for (row, block) in rows.iter().enumerate().skip(step / vectors) {
        let uniform = Uniform::new(block);
        for (vector, firsts) in kernel.firsts.iter().enumerate().skip(from) {
            if interrupt.is_raised() || first_match(run(&uniform, *firsts), &kernel.wanted).is_some() {
                return row * vectors + vector;
            }
        }
        from = 0;
    }
    rows.len() * vectors
}
