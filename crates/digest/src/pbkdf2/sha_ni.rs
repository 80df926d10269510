//! Derivations by the SHA extensions of x86-64, several interleaved.
//!
//! `sha1rnds4` does four rounds, and the next must wait for it; so several chains are interleaved.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_extract_epi32, _mm_set_epi32, _mm_sha1msg1_epu32, _mm_sha1msg2_epu32,
    _mm_sha1nexte_epu32, _mm_sha1rnds4_epu32, _mm_xor_si128,
};

use super::chain::{BLOCK_BYTES, Chain, State};
use crate::engine::Engine;

/// The most chains that are interleaved.
pub(super) const LANES: usize = 4;

/// See [`super::Kernel`].
///
/// # Panics
/// Panics on a processor without the SHA extensions, and if there are more chains than are interleaved.
pub(super) fn run(chains: &[Chain], rounds: u32) -> Vec<State> {
    assert!(Engine::ShaNi.is_available(), "this processor cannot run the sha-ni engine");
    // SAFETY: the processor has the instructions.
    unsafe {
        match chains {
            [_] => interleaved::<1>(chains, rounds),
            [_, _] => interleaved::<2>(chains, rounds),
            _ => interleaved::<LANES>(chains, rounds),
        }
    }
}

/// Four words of a state with the first uppermost, and in the uppermost word of another vector the fifth; for each
/// stream.
type Registers<const N: usize> = [(__m128i, __m128i); N];

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn interleaved<const N: usize>(chains: &[Chain], rounds: u32) -> Vec<State> {
    assert!((1..=N).contains(&chains.len()), "{} chains", chains.len());
    let load = |state: fn(&Chain) -> &State| -> Registers<N> {
        std::array::from_fn(|i| registers(state(&chains[i.min(chains.len() - 1)])))
    };
    let inner = load(|chain| &chain.inner);
    let outer = load(|chain| &chain.outer);
    let mut last = load(|chain| &chain.first);
    let mut sum = last;
    for _ in 1..rounds {
        last = compress(&outer, &compress(&inner, &last));
        for i in 0..N {
            sum[i] = (_mm_xor_si128(sum[i].0, last[i].0), _mm_xor_si128(sum[i].1, last[i].1));
        }
    }
    sum[..chains.len()].iter().map(|sum| words(*sum)).collect()
}

#[target_feature(enable = "sse4.1")]
fn registers([a, b, c, d, e]: &State) -> (__m128i, __m128i) {
    let [a, b, c, d, e] = [*a, *b, *c, *d, *e].map(u32::cast_signed);
    (_mm_set_epi32(a, b, c, d), _mm_set_epi32(e, 0, 0, 0))
}

#[target_feature(enable = "sse4.1")]
fn words((abcd, e): (__m128i, __m128i)) -> State {
    let [a, b, c, d] = [
        _mm_extract_epi32::<3>(abcd),
        _mm_extract_epi32::<2>(abcd),
        _mm_extract_epi32::<1>(abcd),
        _mm_extract_epi32::<0>(abcd),
    ];
    [a, b, c, d, _mm_extract_epi32::<3>(e)].map(i32::cast_unsigned)
}

/// The states after a block that is a digest of 20 bytes, its end and its length with the block before it.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress<const N: usize>(before: &Registers<N>, digests: &Registers<N>) -> Registers<N> {
    let end = _mm_set_epi32(0, i32::MIN, 0, 0);
    let length = _mm_set_epi32(0, 0, 0, 8 * (64 + BLOCK_BYTES as i32));
    let zero = _mm_set_epi32(0, 0, 0, 0);
    // The last four groups of four message words.
    let mut w: [[__m128i; 4]; N] =
        std::array::from_fn(|i| [digests[i].0, _mm_xor_si128(digests[i].1, end), zero, length]);
    let mut abcd: [__m128i; N] = std::array::from_fn(|i| before[i].0);
    // The part of `e` of the next four rounds.
    let mut of_e = abcd;
    // The first four rounds take `e` as it is.
    for i in 0..N {
        let sum = _mm_add_epi32(before[i].1, w[i][0]);
        (of_e[i], abcd[i]) = (abcd[i], _mm_sha1rnds4_epu32::<0>(abcd[i], sum));
    }
    macro_rules! rounds {
        ($function:literal; $($group:literal)*) => {$(
            for i in 0..N {
                if $group >= 4 {
                    let [w16, w12, w8, w4] =
                        [w[i][$group % 4], w[i][($group + 1) % 4], w[i][($group + 2) % 4], w[i][($group + 3) % 4]];
                    let sum = _mm_xor_si128(_mm_sha1msg1_epu32(w16, w12), w8);
                    w[i][$group % 4] = _mm_sha1msg2_epu32(sum, w4);
                }
                let sum = _mm_sha1nexte_epu32(of_e[i], w[i][$group % 4]);
                (of_e[i], abcd[i]) = (abcd[i], _mm_sha1rnds4_epu32::<$function>(abcd[i], sum));
            }
        )*};
    }
    rounds!(0; 1 2 3 4);
    rounds!(1; 5 6 7 8 9);
    rounds!(2; 10 11 12 13 14);
    rounds!(3; 15 16 17 18 19);
    std::array::from_fn(|i| {
        // `sha1nexte` also rotates, as the last rounds would have done.
        (_mm_add_epi32(abcd[i], before[i].0), _mm_sha1nexte_epu32(of_e[i], before[i].1))
    })
}
