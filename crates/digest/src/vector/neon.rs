//! Vectors of NEON, which every 64-bit Arm processor has.

#![allow(unsafe_code)] // The instructions have no other names than intrinsics.

use std::arch::aarch64::{uint32x4_t, vceqq_u32, veorq_u32, vld1q_u32, vmaxvq_u32, vst1q_u32, vsubq_u32};
use std::arch::asm;

use super::{Task, Vector};

/// Four candidates.
pub(crate) type Neon = uint32x4_t;

impl Vector for Neon {
    const LANES: usize = 4;

    #[inline(always)]
    fn of(words: &[u32]) -> Self {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: the slice is as long as the vector.
        unsafe { vld1q_u32(words.as_ptr()) }
    }

    #[inline(always)]
    fn write(self, words: &mut [u32]) {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: the slice is as long as the vector.
        unsafe { vst1q_u32(words.as_mut_ptr(), self) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: NEON is part of 64-bit Arm.
        unsafe { veorq_u32(self, other) }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: NEON is part of 64-bit Arm.
        unsafe { vsubq_u32(self, other) }
    }

    #[inline(always)]
    fn equal(self, other: Self) -> u32 {
        // SAFETY: NEON is part of 64-bit Arm.
        unsafe { vmaxvq_u32(vceqq_u32(self, other)) }
    }

    #[inline(always)]
    fn in_order(mut self) -> Self {
        // SAFETY: it does nothing.
        unsafe { asm!("/* {0:v} */", inout(vreg) self, options(nomem, nostack, preserves_flags)) };
        self
    }

    fn run<T: Task>(task: T) -> T::Output {
        task.run()
    }
}
