//! Vectors of AVX-512: rotations and functions of three bits are single instructions.

#![allow(unsafe_code)] // The instructions have no other names than intrinsics.

use std::arch::asm;
use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_cmpeq_epi32_mask, _mm512_loadu_epi32, _mm512_rorv_epi32,
    _mm512_set1_epi32, _mm512_srlv_epi32, _mm512_storeu_epi32, _mm512_sub_epi32, _mm512_ternarylogic_epi32,
    _mm512_xor_si512,
};

use super::{Task, Vector};
use crate::engine::Engine;
use crate::lane::Lane;

/// Sixteen candidates.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Avx512(__m512i);

/// Calls an intrinsic of AVX-512.
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: vectors are made and used only in tasks that `Avx512::run` has let through.
        unsafe { $call }
    };
}

/// The function of three bits that is `$value` of `a`, `b` and `c`.
macro_rules! logic {
    (|$a:ident, $b:ident, $c:ident| $value:expr; $x:expr, $y:expr, $z:expr) => {{
        const TABLE: i32 = {
            let ($a, $b, $c) = (0xf0u8, 0xccu8, 0xaau8);
            $value as i32
        };
        Self(avx512!(_mm512_ternarylogic_epi32::<TABLE>($x.0, $y.0, $z.0)))
    }};
}

impl Lane for Avx512 {
    type Word = u32;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(avx512!(_mm512_set1_epi32(word as i32)))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(avx512!(_mm512_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn rotate_right<const N: u32>(self) -> Self {
        Self(avx512!(_mm512_rorv_epi32(self.0, Self::splat(N).0)))
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        Self(avx512!(_mm512_srlv_epi32(self.0, Self::splat(N).0)))
    }

    #[inline(always)]
    fn xor3(a: Self, b: Self, c: Self) -> Self {
        logic!(|a, b, c| a ^ b ^ c; a, b, c)
    }

    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        logic!(|a, b, c| (a & b) | (!a & c); self, yes, no)
    }

    #[inline(always)]
    fn majority(a: Self, b: Self, c: Self) -> Self {
        logic!(|a, b, c| (a & b) | (c & (a | b)); a, b, c)
    }
}

impl Vector for Avx512 {
    const LANES: usize = 16;

    #[inline(always)]
    fn of(words: &[u32]) -> Self {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: as for all intrinsics here; and the slice is as long as the vector.
        Self(unsafe { _mm512_loadu_epi32(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn write(self, words: &mut [u32]) {
        assert_eq!(words.len(), Self::LANES);
        // SAFETY: as for all intrinsics here; and the slice is as long as the vector.
        unsafe { _mm512_storeu_epi32(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(avx512!(_mm512_xor_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self(avx512!(_mm512_sub_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn equal(self, other: Self) -> u32 {
        avx512!(_mm512_cmpeq_epi32_mask(self.0, other.0)).into()
    }

    #[inline(always)]
    fn in_order(self) -> Self {
        avx512!(in_order(self))
    }

    fn run<T: Task>(task: T) -> T::Output {
        assert!(Engine::Avx512.is_available(), "this processor has no AVX-512");
        // SAFETY: the processor has it.
        unsafe { run(task) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn run<T: Task>(task: T) -> T::Output {
    task.run()
}

/// An empty piece of assembly that claims to change the vector; the compiler keeps these in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_order(mut vector: Avx512) -> Avx512 {
    // SAFETY: it does nothing.
    unsafe { asm!("/* {0} */", inout(zmm_reg) vector.0, options(nomem, nostack, preserves_flags)) };
    vector
}
