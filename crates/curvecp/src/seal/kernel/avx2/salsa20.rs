//! Salsa20 (D. J. Bernstein, 2005) with 20 rounds: the same block under eight nonces.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32 as add, _mm256_or_si256, _mm256_permute2x128_si256,
    _mm256_set1_epi32, _mm256_setr_epi32, _mm256_slli_epi32, _mm256_srl_epi32, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256 as xor,
};

use zeroize::Zeroize;

use crate::seal::kernel::LANES;
use crate::seal::kernel::salsa20::{input, two_rounds};

/// The input of the block function: each vector has one word of eight blocks.
pub(super) struct Salsa20 {
    words: [__m256i; 16],
}

impl Salsa20 {
    /// Blocks under this key, one nonce for each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new(key: &[u8; 32], nonces: &[u64; LANES]) -> Self {
        let mut words = [_mm256_set1_epi32(0); 16];
        for (vector, word) in words.iter_mut().zip(input(key).iter()) {
            *vector = _mm256_set1_epi32(*word as i32);
        }
        let of = |shift: u32| nonces.map(|nonce| (nonce >> shift) as i32);
        for (place, [a, b, c, d, e, f, g, h]) in [(6, of(0)), (7, of(32))] {
            words[place] = _mm256_setr_epi32(a, b, c, d, e, f, g, h);
        }
        Self { words }
    }

    /// The first and the second half of the 64 bytes of a block in each lane.
    #[target_feature(enable = "avx2")]
    pub(super) fn block(&self, number: u32, halves: &mut [[__m256i; LANES]; 2]) {
        let mut input = self.words;
        input[8] = _mm256_set1_epi32(number as i32);
        let mut x = input;
        for _ in 0..10 {
            two_rounds!(x);
        }
        for (word, input) in x.iter_mut().zip(input) {
            *word = add(*word, input);
        }
        let [a, b, c, d, e, f, g, h, rest @ ..] = x;
        *halves = [transpose([a, b, c, d, e, f, g, h]), transpose(rest)];
    }
}

impl Drop for Salsa20 {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const BITS: i32>(words: __m256i) -> __m256i {
    // The compiler makes an immediate operand of the constant.
    let right = _mm256_srl_epi32(words, _mm_cvtsi32_si128(32 - BITS));
    _mm256_or_si256(_mm256_slli_epi32::<BITS>(words), right)
}

/// Eight words of eight lanes become eight lanes of eight words.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    // Pairs of words, then fours, each in lanes i and i + 4 of one vector.
    let quarter = |a, b, c, d| {
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
        ]
    };
    let ([p, q, r, s], [t, u, v, w]) = (quarter(a, b, c, d), quarter(e, f, g, h));
    let low = |x, y| _mm256_permute2x128_si256::<0x20>(x, y);
    let high = |x, y| _mm256_permute2x128_si256::<0x31>(x, y);
    [low(p, t), low(q, u), low(r, v), low(s, w), high(p, t), high(q, u), high(r, v), high(s, w)]
}
