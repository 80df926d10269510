//! Poly1305 (RFC 8439, section 2.5) of eight messages of one length, each under its own key.
//!
//! A number modulo 2^130 - 5 is five limbs of 26 bits; each limb of four messages is a vector. Two such groups take turns,
//! so that one multiplies while the other carries.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_mul_epu32, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_slli_epi64, _mm256_srli_epi64,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi64,
};

use zeroize::{Zeroize, Zeroizing};

use super::vector::{load, store};
use crate::TAG;
use crate::seal::kernel::LANES;
use crate::seal::kernel::poly1305::{MacKey, tag};

/// Messages in a vector.
const GROUP: usize = 4;
/// The bits of a limb.
const BITS: usize = 26;
const LIMB: u64 = (1 << BITS) - 1;

/// The tags of eight messages of the same length, a multiple of 16.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn tags(keys: &[MacKey; LANES], texts: &[&[u8]; LANES]) -> [[u8; TAG]; LANES] {
    let half = |half: usize| std::array::from_fn(|i| &keys[GROUP * half + i]);
    let mut groups = [Group::new(half(0)), Group::new(half(1))];
    let length = texts[0].len();
    for at in (0..length / 32).map(|pair| 32 * pair) {
        // Two blocks of one group, then of the other: their instructions overlap.
        for (half, group) in groups.iter_mut().enumerate() {
            group.take_two(two_blocks(std::array::from_fn(|i| {
                texts[GROUP * half + i][at..].first_chunk().expect("all messages have the same length")
            })));
        }
    }
    if !length.is_multiple_of(32) {
        for (half, group) in groups.iter_mut().enumerate() {
            group.take(last_block(std::array::from_fn(|i| {
                texts[GROUP * half + i].last_chunk().expect("a message is at least one block")
            })));
        }
    }
    let sums = [groups[0].sums(), groups[1].sums()];
    std::array::from_fn(|i| tag::<5, BITS>(sums[i / GROUP][i % GROUP], &keys[i]))
}

/// The sums of four messages.
struct Group {
    sum: [__m256i; 5],
    /// The point at which the polynomials are evaluated, and its square.
    point: Factor,
    square: Factor,
}

impl Group {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(keys: [&MacKey; GROUP]) -> Self {
        let points = Zeroizing::new(keys.map(MacKey::point::<5, BITS>));
        let limbs = std::array::from_fn(|limb| {
            let [a, b, c, d] = std::array::from_fn(|i| points[i][limb] as i64);
            _mm256_set_epi64x(d, c, b, a)
        });
        let point = Factor::new(limbs);
        let square = Factor::new(carried(point.times(limbs)));
        Self { sum: [_mm256_set1_epi64x(0); 5], point, square }
    }

    /// Adds a block of each message and multiplies.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn take(&mut self, block: [__m256i; 2]) {
        self.sum = carried(self.point.times(plus(self.sum, limbs(block))));
    }

    /// Does the same for two blocks with one carry.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn take_two(&mut self, [first, second]: [[__m256i; 2]; 2]) {
        let first = self.square.times(plus(self.sum, limbs(first)));
        self.sum = carried(plus(first, self.point.times(limbs(second))));
    }

    /// The limbs of each message's sum.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums(&self) -> [[u64; 5]; GROUP] {
        let limbs = self.sum.map(|limb| {
            let mut bytes = [0; 32];
            store(limb, &mut bytes);
            let (words, _) = bytes.as_chunks();
            [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]))
        });
        std::array::from_fn(|message| limbs.map(|limb| limb[message]))
    }
}

/// What sums are multiplied by.
struct Factor {
    limbs: [__m256i; 5],
    /// The factor times five, without the first limb.
    times_five: [__m256i; 4],
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(limbs: [__m256i; 5]) -> Self {
        let times_five = std::array::from_fn(|i| {
            let limb: __m256i = limbs[i + 1];
            _mm256_add_epi64(limb, _mm256_slli_epi64::<2>(limb))
        });
        Self { limbs, times_five }
    }

    /// The product, whose limbs have up to 58 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn times(&self, h: [__m256i; 5]) -> [__m256i; 5] {
        let (r, s) = (&self.limbs, &self.times_five);
        let sum = |a, b, c, d, e| {
            let (ab, cd): (__m256i, __m256i) = (_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
            _mm256_add_epi64(_mm256_add_epi64(ab, cd), e)
        };
        let m = |a: __m256i, b: __m256i| _mm256_mul_epu32(a, b);
        [
            sum(m(h[0], r[0]), m(h[1], s[3]), m(h[2], s[2]), m(h[3], s[1]), m(h[4], s[0])),
            sum(m(h[0], r[1]), m(h[1], r[0]), m(h[2], s[3]), m(h[3], s[2]), m(h[4], s[1])),
            sum(m(h[0], r[2]), m(h[1], r[1]), m(h[2], r[0]), m(h[3], s[3]), m(h[4], s[2])),
            sum(m(h[0], r[3]), m(h[1], r[2]), m(h[2], r[1]), m(h[3], r[0]), m(h[4], s[3])),
            sum(m(h[0], r[4]), m(h[1], r[3]), m(h[2], r[2]), m(h[3], r[1]), m(h[4], r[0])),
        ]
    }
}

impl Drop for Factor {
    fn drop(&mut self) {
        self.limbs.zeroize();
        self.times_five.zeroize();
    }
}

/// The limbs of a block of each message, from its low and its high eight bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn limbs([low, high]: [__m256i; 2]) -> [__m256i; 5] {
    let mask = _mm256_set1_epi64x(LIMB as i64);
    let limb = |vector| _mm256_and_si256(vector, mask);
    [
        limb(low),
        limb(_mm256_srli_epi64::<26>(low)),
        limb(_mm256_or_si256(_mm256_srli_epi64::<52>(low), _mm256_slli_epi64::<12>(high))),
        limb(_mm256_srli_epi64::<14>(high)),
        // A one follows the bytes of a block.
        _mm256_or_si256(_mm256_srli_epi64::<40>(high), _mm256_set1_epi64x(1 << 24)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn plus(a: [__m256i; 5], b: [__m256i; 5]) -> [__m256i; 5] {
    std::array::from_fn(|i| _mm256_add_epi64(a[i], b[i]))
}

/// Carries once from each limb to the next, in two chains that meet; limbs then have at most a little over 26 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn carried(mut x: [__m256i; 5]) -> [__m256i; 5] {
    let mask = _mm256_set1_epi64x(LIMB as i64);
    for [from, to] in [[0, 1], [3, 4], [1, 2], [4, 0], [2, 3], [0, 1], [3, 4]] {
        let carry = _mm256_srli_epi64::<26>(x[from]);
        x[from] = _mm256_and_si256(x[from], mask);
        // 2^130 is 5.
        let carry = if to == 0 { _mm256_add_epi64(carry, _mm256_slli_epi64::<2>(carry)) } else { carry };
        x[to] = _mm256_add_epi64(x[to], carry);
    }
    x
}

/// Two blocks of four messages: low and high eight bytes of the first, and of the second.
#[inline]
#[target_feature(enable = "avx2")]
fn two_blocks(texts: [&[u8; 32]; GROUP]) -> [[__m256i; 2]; 2] {
    let [a, b, c, d] = [load(texts[0]), load(texts[1]), load(texts[2]), load(texts[3])];
    let (low_ab, low_cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
    let (high_ab, high_cd) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
    [
        [
            _mm256_permute2x128_si256::<0x20>(low_ab, low_cd),
            _mm256_permute2x128_si256::<0x20>(high_ab, high_cd),
        ],
        [
            _mm256_permute2x128_si256::<0x31>(low_ab, low_cd),
            _mm256_permute2x128_si256::<0x31>(high_ab, high_cd),
        ],
    ]
}

/// One block of four messages.
#[inline]
#[target_feature(enable = "avx2")]
fn last_block(texts: [&[u8; 16]; GROUP]) -> [__m256i; 2] {
    let words = texts.map(|text| u128::from_le_bytes(*text));
    let of = |shift: u32| {
        let [a, b, c, d] = words.map(|word| (word >> shift) as i64);
        _mm256_set_epi64x(d, c, b, a)
    };
    [of(0), of(64)]
}
