//! Vectors of AVX2.

#![allow(unsafe_code)] // The instructions have no other names than intrinsics.

use std::arch::asm;
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256,
    _mm256_movemask_ps, _mm256_or_si256, _mm256_set1_epi32, _mm256_sllv_epi32, _mm256_srlv_epi32,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_xor_si256,
};

use super::{Task, Vector};
use crate::engine::Engine;
use crate::lane::Lane;

/// Eight candidates.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Avx2(__m256i);

/// Calls an intrinsic of AVX2.
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: vectors are made and used only in tasks that `Avx2::run` has let through.
        unsafe { $call }
    };
}

impl Lane for Avx2 {
    type Word = u32;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(avx2!(_mm256_set1_epi32(word as i32)))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(avx2!(_mm256_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn rotate_right<const N: u32>(self) -> Self {
        let left = avx2!(_mm256_sllv_epi32(self.0, Self::splat(32 - N).0));
        Self(avx2!(_mm256_or_si256(left, self.shift_right::<N>().0)))
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        Self(avx2!(_mm256_srlv_epi32(self.0, Self::splat(N).0)))
    }

    #[inline(always)]
    fn xor3(a: Self, b: Self, c: Self) -> Self {
        a.xor(b).xor(c)
    }

    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        Self(avx2!(_mm256_and_si256(self.0, yes.xor(no).0))).xor(no)
    }

    #[inline(always)]
    fn majority(a: Self, b: Self, c: Self) -> Self {
        // Where the first two differ the third decides, elsewhere either does.
        a.xor(b).choose(c, b)
    }
}

impl Vector for Avx2 {
    const LANES: usize = 8;

    #[inline(always)]
    fn of(words: &[u32]) -> Self {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: as for all intrinsics here; and the slice is as long as the vector.
        Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn write(self, words: &mut [u32]) {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: as for all intrinsics here; and the slice is as long as the vector.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(avx2!(_mm256_xor_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self(avx2!(_mm256_sub_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn equal(self, other: Self) -> u32 {
        avx2!(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(self.0, other.0)))) as u32
    }

    #[inline(always)]
    fn in_order(self) -> Self {
        avx2!(in_order(self))
    }

    fn run<T: Task>(task: T) -> T::Output {
        assert!(Engine::Avx2.is_available(), "this processor has no AVX2");
        // SAFETY: the processor has it.
        unsafe { run(task) }
    }
}

#[target_feature(enable = "avx2")]
fn run<T: Task>(task: T) -> T::Output {
    task.run()
}

/// An empty piece of assembly that claims to change the vector; the compiler keeps these in order.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(mut vector: Avx2) -> Avx2 {
    // Miri runs no assembly.
    if cfg!(not(miri)) {
        // SAFETY: it does nothing.
        unsafe { asm!("/* {0} */", inout(ymm_reg) vector.0, options(nomem, nostack, preserves_flags)) };
    }
    vector
}
