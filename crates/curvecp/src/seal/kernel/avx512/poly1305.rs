//! Poly1305 (RFC 8439, section 2.5) of eight messages of one length, each under its own key.
//!
//! A number modulo 2^130 - 5 is limbs of 44, 44 and 42 bits; each limb of eight messages is a vector, and the
//! processor's multiplication takes up to 52 bits. Four blocks have one carry.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use zeroize::{Zeroize, Zeroizing};

use super::vector::{load, numbers, to_numbers, transposed};
use crate::TAG;
use crate::seal::kernel::LANES;
use crate::seal::kernel::poly1305::{MacKey, tag};

/// The bits of a limb; the highest has two fewer.
const BITS: usize = 44;
/// Blocks with one carry.
const BLOCKS: usize = 4;

/// A block of each message, or the sum of each.
type Limbs = [__m512i; 3];

/// The tags of eight messages of the same length, a multiple of 16.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn tags(keys: &[MacKey; LANES], texts: &[&[u8]; LANES]) -> [[u8; TAG]; LANES] {
    let powers = powers(keys);
    let mut sum = no_limbs();
    let (length, four) = (texts[0].len(), 16 * BLOCKS);
    for at in (0..length / four).map(|index| four * index) {
        let [first, second, third, fourth] = four_blocks(texts, at);
        let mut product = Product::zero();
        product.add(second, &powers[1]);
        product.add(third, &powers[2]);
        product.add(fourth, &powers[3]);
        // What depends on the sum comes last, so that the rest overlaps with the carry before.
        product.add(plus(sum, first), &powers[0]);
        sum = product.carried();
    }
    for at in (length - length % four..length).step_by(16) {
        let words = texts
            .map(|text| u128::from_le_bytes(*text[at..].first_chunk().expect("a message is whole blocks")));
        let of = |shift: u32| numbers(&words.map(|word| (word >> shift) as u64));
        sum = product(plus(sum, limbs(of(0), of(64))), &powers[3]);
    }
    let sums = [to_numbers(sum[0]), to_numbers(sum[1]), to_numbers(sum[2])];
    std::array::from_fn(|i| tag::<3, BITS>(sums.map(|limb| limb[i]), &keys[i]))
}

/// A power of the point at which each message's polynomial is evaluated.
struct Power {
    limbs: Limbs,
    /// The second and third limb times 20, which is 2^132.
    times_twenty: [__m512i; 2],
}

impl Power {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(limbs: Limbs) -> Self {
        let twenty = |limb| _mm512_slli_epi64::<2>(times_five(limb));
        Self { limbs, times_twenty: [twenty(limbs[1]), twenty(limbs[2])] }
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        self.limbs.zeroize();
        self.times_twenty.zeroize();
    }
}

/// The powers of each point, the highest first.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn powers(keys: &[MacKey; LANES]) -> [Power; BLOCKS] {
    let points = Zeroizing::new(keys.each_ref().map(MacKey::point::<3, BITS>));
    let limb = |limb: usize| numbers(&std::array::from_fn(|i| points[i][limb]));
    let point = [limb(0), limb(1), limb(2)];
    let first = Power::new(point);
    let second = Power::new(product(point, &first));
    let third = Power::new(product(point, &second));
    let fourth = Power::new(product(point, &third));
    [fourth, third, second, first]
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product(number: Limbs, power: &Power) -> Limbs {
    let mut product = Product::zero();
    product.add(number, power);
    product.carried()
}

/// A sum of products: the low 52 bits of each limb, and the bits above.
struct Product {
    low: Limbs,
    high: Limbs,
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> Self {
        Self { low: no_limbs(), high: no_limbs() }
    }

    /// Adds `number` times `power`. Limbs have at most 46 bits and, times 20, at most 49, so sums of twelve do not overflow.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add(&mut self, number: Limbs, power: &Power) {
        let ([x, y, z], [a, b, c], [b20, c20]) = (number, power.limbs, power.times_twenty);
        let terms = [[(z, b20), (y, c20), (x, a)], [(z, c20), (y, a), (x, b)], [(z, a), (y, b), (x, c)]];
        for (limb, terms) in terms.into_iter().enumerate() {
            for (one, other) in terms {
                self.low[limb] = _mm512_madd52lo_epu64(self.low[limb], one, other);
                self.high[limb] = _mm512_madd52hi_epu64(self.high[limb], one, other);
            }
        }
    }

    /// The limbs, of which the second may be a little longer than its bits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn carried(self) -> Limbs {
        let ([mut x, mut y, mut z], [high_x, high_y, high_z]) = (self.low, self.high);
        let mask = _mm512_set1_epi64((1 << BITS) - 1);
        let carry = _mm512_add_epi64(_mm512_srli_epi64::<44>(x), _mm512_slli_epi64::<8>(high_x));
        (x, y) = (_mm512_and_si512(x, mask), _mm512_add_epi64(y, carry));
        let carry = _mm512_add_epi64(_mm512_srli_epi64::<44>(y), _mm512_slli_epi64::<8>(high_y));
        (y, z) = (_mm512_and_si512(y, mask), _mm512_add_epi64(z, carry));
        let carry = _mm512_add_epi64(_mm512_srli_epi64::<42>(z), _mm512_slli_epi64::<10>(high_z));
        z = _mm512_and_si512(z, _mm512_set1_epi64((1 << 42) - 1));
        // 2^130 is 5.
        x = _mm512_add_epi64(x, times_five(carry));
        [_mm512_and_si512(x, mask), _mm512_add_epi64(y, _mm512_srli_epi64::<44>(x)), z]
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn no_limbs() -> Limbs {
    [_mm512_setzero_si512(); 3]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn plus(a: Limbs, b: Limbs) -> Limbs {
    [_mm512_add_epi64(a[0], b[0]), _mm512_add_epi64(a[1], b[1]), _mm512_add_epi64(a[2], b[2])]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn times_five(number: __m512i) -> __m512i {
    _mm512_add_epi64(number, _mm512_slli_epi64::<2>(number))
}

/// The limbs of a block of each message, from its low and its high eight bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn limbs(low: __m512i, high: __m512i) -> Limbs {
    let mask = _mm512_set1_epi64((1 << BITS) - 1);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<44>(low), _mm512_slli_epi64::<20>(high));
    [
        _mm512_and_si512(low, mask),
        _mm512_and_si512(middle, mask),
        // A one follows the bytes of a block.
        _mm512_or_si512(_mm512_srli_epi64::<24>(high), _mm512_set1_epi64(1 << 40)),
    ]
}

/// Four blocks of each message, from this byte on.
#[inline]
#[target_feature(enable = "avx512f")]
fn four_blocks(texts: &[&[u8]; LANES], at: usize) -> [Limbs; BLOCKS] {
    let mut rows = [_mm512_setzero_si512(); LANES];
    for (row, text) in rows.iter_mut().zip(texts) {
        *row = load(text[at..].first_chunk().expect("all messages have the same length"));
    }
    // The low and the high halves of blocks, of two messages each and then of all.
    let [a, b, c, d, e, f, g, h] = rows;
    let pairs = |one, other| (_mm512_unpacklo_epi64(one, other), _mm512_unpackhi_epi64(one, other));
    let ((low_ab, high_ab), (low_cd, high_cd)) = (pairs(a, b), pairs(c, d));
    let ((low_ef, high_ef), (low_gh, high_gh)) = (pairs(e, f), pairs(g, h));
    let low = transposed([low_ab, low_cd, low_ef, low_gh]);
    let high = transposed([high_ab, high_cd, high_ef, high_gh]);
    [limbs(low[0], high[0]), limbs(low[1], high[1]), limbs(low[2], high[2]), limbs(low[3], high[3])]
}
