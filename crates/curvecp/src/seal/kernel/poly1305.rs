//! What kernels for Poly1305 (RFC 8439, section 2.5) share: the beginning and the end, which vectors do not make faster.
//!
//! A number modulo 2^130 - 5 is a few limbs of some bits each, the lowest first.

use crate::TAG;
use zeroize::Zeroize;

/// Zero where the specification clears a bit of the key.
const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;

/// The one-time key of a message: the point at which its polynomial is evaluated, and what is added to the sum.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct MacKey {
    point: u128,
    pad: u128,
}

impl MacKey {
    pub(super) fn new(bytes: &[u8; 32]) -> Self {
        let half = |at: usize| u128::from_le_bytes(*bytes[at..].first_chunk().expect("a key has 32 bytes"));
        Self { point: half(0) & CLAMP, pad: half(16) }
    }

    /// The limbs of the point.
    pub(super) fn point<const LIMBS: usize, const BITS: usize>(&self) -> [u64; LIMBS] {
        std::array::from_fn(|i| (self.point >> (BITS * i)) as u64 & ((1 << BITS) - 1))
    }
}

/// Reduces a sum below 2^132 modulo 2^130 - 5 and adds the key's second half, modulo 2^128. Limbs may be longer than
/// their bits. No branch depends on the sum or the key.
pub(super) fn tag<const LIMBS: usize, const BITS: usize>(sum: [u64; LIMBS], key: &MacKey) -> [u8; TAG] {
    let (mut low, mut high) = (0_u128, 0);
    for (i, limb) in sum.into_iter().enumerate() {
        // Two shifts, since one by 128 bits is not defined.
        let above = (u128::from(limb) >> (127 - BITS * i) >> 1) as u64;
        (low, high) = plus(low, high + above, u128::from(limb) << (BITS * i));
    }
    // 2^130 is 5.
    (low, high) = plus(low, high & 3, u128::from(5 * (high >> 2)));
    // The sum plus 5 has a bit 130 where the sum is at least 2^130 - 5; without it the sum is reduced.
    let (less, bits) = plus(low, high, 5);
    let reduces = 0_u128.wrapping_sub(u128::from(bits >> 2));
    let reduced = (less & reduces) | (low & !reduces);
    reduced.wrapping_add(key.pad).to_le_bytes()
}

/// Adds to a number of which `high` holds what is beyond 128 bits.
fn plus(low: u128, high: u64, number: u128) -> (u128, u64) {
    let (sum, carry) = low.overflowing_add(number);
    (sum, high + u64::from(carry))
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, LANES};
    use ::poly1305::universal_hash::KeyInit;
    use proptest::prelude::*;

    /// RFC 8439, appendix A.3, test vectors 7 to 11: sums near 2^130 - 5.
    #[test]
    fn sums_at_the_modulus_are_reduced() {
        let sixteen = |first: u8, rest: u8| {
            let mut bytes = vec![rest; 16];
            bytes[0] = first;
            bytes
        };
        let ones = || sixteen(0xff, 0xff);
        let vectors = [
            (2, 0, ones(), sixteen(3, 0)),
            (2, 0xff, sixteen(2, 0), sixteen(3, 0)),
            (1, 0, [ones(), sixteen(0xf0, 0xff), sixteen(0x11, 0)].concat(), sixteen(5, 0)),
            (1, 0, [ones(), sixteen(0xfb, 0xfe), sixteen(1, 1)].concat(), sixteen(0, 0)),
            (2, 0, sixteen(0xfd, 0xff), sixteen(0xfa, 0xff)),
        ];
        for (point, pad, text, tag) in vectors {
            let mut key = [0; 32];
            key[0] = point;
            key[16..].fill(pad);
            for kernel in Kernel::all() {
                let tags = kernel.tags(&[key; LANES], &[&text; LANES]);
                assert!(tags.iter().all(|one| one[..] == tag), "{}", kernel.name());
            }
        }
    }

    proptest! {
        #[test]
        fn tags_equal_those_of_a_second_implementation(
            keys: [[u8; 32]; LANES], blocks in 1usize..70, extreme: bool,
            bytes in proptest::collection::vec(any::<u8>(), (70 + LANES) * 16)
        ) {
            let bytes: Vec<u8> = bytes.iter().map(|byte| if extreme { 0xff * (byte & 1) } else { *byte }).collect();
            let keys = keys.map(|key| if extreme { key.map(|byte| byte | 0x0f) } else { key });
            // Each lane has another text.
            let texts = std::array::from_fn(|i| &bytes[i * 16..][..blocks * 16]);
            for kernel in Kernel::all() {
                for ((key, tag), text) in keys.iter().zip(kernel.tags(&keys, &texts)).zip(texts) {
                    let expected = ::poly1305::Poly1305::new(key.into()).compute_unpadded(text);
                    prop_assert_eq!(&tag[..], &expected[..], "{}", kernel.name());
                }
            }
        }

        /// With the greatest limbs a sum that overflowed its vector would differ.
        #[test]
        fn the_greatest_numbers_do_not_overflow(point in 0x0fu8.., blocks in 1usize..70) {
            let (keys, text) = ([[point | 0x0f; 32]; LANES], vec![0xff; 16 * blocks]);
            let expected = ::poly1305::Poly1305::new((&keys[0]).into()).compute_unpadded(&text);
            for kernel in Kernel::all() {
                let tags = kernel.tags(&keys, &[&text[..]; LANES]);
                prop_assert!(tags.iter().all(|tag| tag[..] == expected[..]), "{}", kernel.name());
            }
        }
    }
}
