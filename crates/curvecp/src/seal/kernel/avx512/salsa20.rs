//! Salsa20 with 20 rounds: two blocks under each of eight nonces.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32 as add, _mm512_rol_epi32 as rotate, _mm512_set1_epi32, _mm512_setr_epi32,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
    _mm512_xor_si512 as xor,
};

use zeroize::Zeroizing;

use super::vector::transposed;
use crate::seal::kernel::LANES;
use crate::seal::kernel::salsa20::{input, two_rounds};

/// The input of the block function. Lanes `i` and `i + 8` have the same nonce.
pub(super) struct Salsa20 {
    words: Zeroizing<[u32; 16]>,
    /// Low and high halves.
    nonces: [__m512i; 2],
}

impl Salsa20 {
    /// Blocks under this key, with these nonces.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(key: &[u8; 32], nonces: &[u64; LANES]) -> Self {
        let halves = |shift: u32| {
            let [a, b, c, d, e, f, g, h] = nonces.map(|nonce| (nonce >> shift) as i32);
            _mm512_setr_epi32(a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h)
        };
        Self { words: input(key), nonces: [halves(0), halves(32)] }
    }

    /// The 64 bytes of the block with this even number under each nonce, then those of the following block.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn two_blocks(&self, number: u32) -> [[__m512i; LANES]; 2] {
        let next = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        let mut input = [next; 16];
        for (vector, word) in input.iter_mut().zip(self.words.iter()) {
            *vector = _mm512_set1_epi32(*word as i32);
        }
        [input[6], input[7]] = self.nonces;
        input[8] = add(_mm512_set1_epi32(number as i32), next);
        let mut x = input;
        for _ in 0..10 {
            two_rounds!(x);
        }
        for (word, input) in x.iter_mut().zip(input) {
            *word = add(*word, input);
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x;
        // In quarter q of vector v of each: four words of lane 4 q + v.
        let (first, second) = (four_words(a, b, c, d), four_words(e, f, g, h));
        let (third, fourth) = (four_words(i, j, k, l), four_words(m, n, o, p));
        let mut blocks = [[next; LANES]; 2];
        for v in 0..4 {
            let lanes = transposed([first[v], second[v], third[v], fourth[v]]);
            [blocks[0][v], blocks[0][4 + v], blocks[1][v], blocks[1][4 + v]] = lanes;
        }
        blocks
    }
}

/// Four words of sixteen lanes become, in the quarters of four vectors, sixteen lanes of four words.
#[inline]
#[target_feature(enable = "avx512f")]
fn four_words(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}
