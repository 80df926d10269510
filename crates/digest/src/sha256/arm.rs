//! The kernels of 64-bit Arm: NEON, which every such processor has, and the SHA-2 extension, which most have.
//!
//! This module iterates over groups of candidates and compares their residues; its submodules compute the residues.

use std::arch::aarch64::{uint32x4_t, vceqq_u32, vdupq_n_u32, vmaxvq_u32, vorrq_u32};

use super::sweep::{GROUP, Sweep};

pub(crate) mod neon;
pub(crate) mod sha2;

/// The number of candidates of a vector.
const LANES: u32 = 4;

/// Implements [`Kernel`](crate::sha256::sweep::Kernel). `residues` computes them for as many consecutive candidates as
/// there are lanes in `N` vectors, from the first message word of the first of them: the others' are [`STEP`] more
/// each.
#[inline]
#[target_feature(enable = "neon")]
fn sweep<const N: usize>(sweep: &Sweep<'_>, residues: impl Fn(u32) -> [uint32x4_t; N]) -> u32 {
    for index in 0..sweep.groups {
        if sweep.interrupt.is_raised() {
            return index;
        }
        let group = (sweep.from + index * GROUP).swap_bytes();
        for at in (0..GROUP).step_by(N * LANES as usize) {
            if any_wanted(residues(group + at * STEP), sweep.wanted) {
                return index;
            }
        }
    }
    sweep.groups
}

/// The difference between the first message words of two consecutive candidates of a group: the low byte of a
/// candidate is the high byte of the word.
const STEP: u32 = 1 << 24;

/// Whether one of the residues is one of the wanted words.
#[inline]
#[target_feature(enable = "neon")]
fn any_wanted<const N: usize>(residues: [uint32x4_t; N], wanted: &[u32]) -> bool {
    let mut equal = vdupq_n_u32(0);
    for &wanted in wanted {
        for residue in residues {
            equal = vorrq_u32(equal, vceqq_u32(residue, vdupq_n_u32(wanted)));
        }
    }
    vmaxvq_u32(equal) != 0
}

/// These four words.
#[inline]
#[target_feature(enable = "neon")]
fn vector(words: [u32; 4]) -> uint32x4_t {
    // SAFETY: the pointer is to four words, and a vector may be loaded from where words may be.
    #[expect(unsafe_code, reason = "there is no other way to load a vector")]
    unsafe {
        std::arch::aarch64::vld1q_u32(words.as_ptr())
    }
}
