//! Lanes of NEON, four candidates to a vector, and the SHA-256 kernel made of them.

#![expect(unsafe_code, reason = "the compiler does not assume that there is NEON")]

use std::arch::aarch64::{uint32x4_t, vaddq_u32, vbslq_u32, vdupq_n_s32, vdupq_n_u32, veorq_u32, vshlq_u32};
use std::arch::asm;
use std::array;

use super::super::formula::residue;
use super::super::sweep::Sweep;
use super::{LANES, STEP, vector};
use crate::lane::Lane;

/// See [`Kernel`](crate::sha256::sweep::Kernel).
pub(crate) fn sweep(sweep: &Sweep<'_>) -> u32 {
    // SAFETY: NEON is part of 64-bit Arm.
    unsafe { sweep_lanes(sweep) }
}

#[target_feature(enable = "neon")]
fn sweep_lanes(sweep: &Sweep<'_>) -> u32 {
    let lanes = [0, LANES].map(|first| vector(array::from_fn(|lane| (first + lane as u32) * STEP)));
    super::sweep(sweep, |first| residue(sweep.block, Pair::splat(first).plus(lanes)))
}

/// Calls an intrinsic.
macro_rules! neon {
    ($call:expr) => {
        // SAFETY: NEON is part of 64-bit Arm.
        unsafe { $call }
    };
}

/// An instruction that writes its result to its first operand. Left to choose, the compiler makes a rotation of a
/// shift and a slower sum, and a majority of three instructions.
macro_rules! instruction {
    ($template:literal, $first:expr, $($operand:tt)*) => {{
        let mut result = $first;
        // SAFETY: NEON is part of 64-bit Arm, and the instruction does nothing but compute.
        unsafe {
            asm!($template, inout(vreg) result, $($operand)*, options(pure, nomem, nostack, preserves_flags));
        }
        result
    }};
}

/// Four candidates.
impl Lane for uint32x4_t {
    type Word = u32;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        neon!(vdupq_n_u32(word))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        neon!(vaddq_u32(self, other))
    }

    /// There is no instruction that rotates.
    #[inline(always)]
    fn rotate_right<const N: u32>(self) -> Self {
        let left = neon!(vshlq_u32(self, vdupq_n_s32(32 - N as i32)));
        instruction!("sri {0:v}.4s, {1:v}.4s, #{2}", left, in(vreg) self, const N)
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        neon!(vshlq_u32(self, vdupq_n_s32(-(N as i32))))
    }

    #[inline(always)]
    fn xor3(a: Self, b: Self, c: Self) -> Self {
        neon!(veorq_u32(veorq_u32(a, b), c))
    }

    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        neon!(vbslq_u32(self, yes, no))
    }

    /// Where two differ the third decides, elsewhere either of them.
    #[inline(always)]
    fn majority(a: Self, b: Self, c: Self) -> Self {
        let differ = neon!(veorq_u32(a, b));
        instruction!("bsl {0:v}.16b, {1:v}.16b, {2:v}.16b", differ, in(vreg) c, in(vreg) b)
    }
}

/// Two vectors in parallel, so that processors that start four instructions at once have enough to start.
type Pair = [uint32x4_t; 2];

impl Lane for Pair {
    type Word = u32;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        [Lane::splat(word); 2]
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        array::from_fn(|i| self[i].plus(other[i]))
    }

    #[inline(always)]
    fn rotate_right<const N: u32>(self) -> Self {
        self.map(Lane::rotate_right::<N>)
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        self.map(Lane::shift_right::<N>)
    }

    #[inline(always)]
    fn xor3(a: Self, b: Self, c: Self) -> Self {
        array::from_fn(|i| Lane::xor3(a[i], b[i], c[i]))
    }

    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        array::from_fn(|i| self[i].choose(yes[i], no[i]))
    }

    #[inline(always)]
    fn majority(a: Self, b: Self, c: Self) -> Self {
        array::from_fn(|i| Lane::majority(a[i], b[i], c[i]))
    }
}

#[cfg(test)]
mod tests {
    use std::arch::aarch64::vgetq_lane_u32;

    use super::*;

    /// The first candidate's word.
    fn word(lane: uint32x4_t) -> u32 {
        neon!(vgetq_lane_u32::<0>(lane))
    }

    #[test]
    fn lanes_are_shifted_and_rotated_by_every_distance() {
        let x = 0x9e37_79b9;
        let lane = uint32x4_t::splat(x);
        macro_rules! check {
            ($($n:literal)*) => {$(
                assert_eq!(word(Lane::rotate_right::<$n>(lane)), x.rotate_right($n));
                assert_eq!(word(lane.shift_right::<$n>()), x >> $n);
            )*};
        }
        check!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    }

    #[test]
    fn lanes_mix_three_as_words_do() {
        // Every combination of three bits.
        let [a, b, c] = [0x0f0f_0f0f, 0x3333_3333, 0x5555_5555];
        let [x, y, z] = [a, b, c].map(uint32x4_t::splat);
        assert_eq!(word(Lane::xor3(x, y, z)), a ^ b ^ c);
        assert_eq!(word(x.choose(y, z)), Lane::choose(a, b, c));
        assert_eq!(word(Lane::majority(x, y, z)), <u32 as Lane>::majority(a, b, c));
    }
}
