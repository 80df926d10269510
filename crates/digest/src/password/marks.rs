//! A word of the digest of every candidate, for tables.

use std::ops::Range;

use super::mask::Mask;
use super::search::{Marking, marking};
use super::sha1;
use crate::engine::Engine;
#[cfg(target_arch = "aarch64")]
use crate::vector::neon;
#[cfg(target_arch = "x86_64")]
use crate::vector::{avx2, avx512};

/// The mark of a SHA-1 digest: a word that is a function of it, and the first that a search computes.
pub fn sha1_mark(digest: &[u8; 20]) -> u32 {
    sha1::mark(digest)
}

/// Computes the marks of all candidates of a mask.
pub struct Marks {
    mask: Mask,
    kernel: Box<dyn Marking>,
}

impl Marks {
    /// The marks of SHA-1.
    pub fn sha1(engine: Engine, mask: &Mask) -> Self {
        let kernel = match engine.vectors() {
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => marking::<avx2::Avx2, sha1::Sha1, 2>(mask),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512 => marking::<avx512::Avx512, sha1::Sha1, 4>(mask),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon => marking::<neon::Neon, sha1::Sha1, 4>(mask),
            _ => marking::<u32, sha1::Sha1, 1>(mask),
        };
        Self { mask: mask.clone(), kernel }
    }

    /// Ranges must begin at multiples of this.
    pub fn grain(&self) -> u64 {
        self.kernel.row_length() * self.kernel.rows() as u64
    }

    /// Replaces the contents of `marks` by the marks of the candidates in `range`, in their order.
    ///
    /// # Panics
    /// Panics if the range does not begin at a multiple of the [grain](Self::grain), or goes beyond the mask.
    pub fn fill(&self, range: Range<u64>, marks: &mut Vec<u32>) {
        assert!(range.start.is_multiple_of(self.grain()), "a range from {}", range.start);
        assert!(range.end <= self.mask.size(), "a range up to {} of {}", range.end, self.mask.size());
        marks.clear();
        let row_length = self.kernel.row_length();
        let rows = range.start / row_length..range.end.div_ceil(row_length);
        let mut rest = self.kernel.blocks(&self.mask, rows.start);
        let mut blocks = Vec::with_capacity(self.kernel.rows());
        for row in rows.clone().step_by(self.kernel.rows()) {
            blocks.clear();
            blocks.extend((row..rows.end).take(self.kernel.rows()).map(|_| rest.next()));
            self.kernel.mark(&blocks, marks);
        }
        marks.truncate((range.end - range.start) as usize);
    }
}
