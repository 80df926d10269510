//! Salsa20 (D. J. Bernstein, 2005) with 20 rounds: the same block under eight nonces.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use zeroize::Zeroize;

use super::LANES;

/// "expand 32-byte k", the constant of a key of 32 bytes.
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The input of the block function: each vector has one word of eight blocks.
pub(super) struct Salsa20 {
    words: [__m256i; 16],
}

/// `x[d] ^= (x[a] + x[b]) <<< n`.
macro_rules! step {
    ($x:ident[$d:literal] ^= ($a:literal + $b:literal) <<< $n:literal) => {
        let sum = _mm256_add_epi32($x[$a], $x[$b]);
        let rotated = _mm256_or_si256(_mm256_slli_epi32::<$n>(sum), _mm256_srli_epi32::<{ 32 - $n }>(sum));
        $x[$d] = _mm256_xor_si256($x[$d], rotated);
    };
}

/// Four quarter-rounds side by side, so that none waits for its own last result.
macro_rules! round {
    ($x:ident, $([$a:literal, $b:literal, $c:literal, $d:literal]),*) => {
        $(step!($x[$b] ^= ($a + $d) <<< 7);)*
        $(step!($x[$c] ^= ($b + $a) <<< 9);)*
        $(step!($x[$d] ^= ($c + $b) <<< 13);)*
        $(step!($x[$a] ^= ($d + $c) <<< 18);)*
    };
}

impl Salsa20 {
    /// Blocks under this key, one nonce for each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new(key: &[u8; 32], nonces: &[u64; LANES]) -> Self {
        let mut words = [_mm256_set1_epi32(0); 16];
        for (i, constant) in SIGMA.iter().enumerate() {
            words[5 * i] = _mm256_set1_epi32(*constant as i32);
        }
        for (i, word) in key.as_chunks::<4>().0.iter().enumerate() {
            let place = if i < 4 { 1 + i } else { 7 + i };
            words[place] = _mm256_set1_epi32(i32::from_le_bytes(*word));
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
            round!(x, [0, 4, 8, 12], [5, 9, 13, 1], [10, 14, 2, 6], [15, 3, 7, 11]);
            round!(x, [0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14]);
        }
        for (word, input) in x.iter_mut().zip(input) {
            *word = _mm256_add_epi32(*word, input);
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
