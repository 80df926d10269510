//! XSalsa20-Poly1305 over eight packets at once, with AVX-512 and its multiplication of 52 bits.
//!
//! All packets of a batch have the same length, so all lanes do the same: Salsa20 computes the same two blocks of eight
//! packets, Poly1305 takes the same four blocks of eight. Nothing branches or indexes on a secret. The output is that of
//! the cipher for single packets, to the bit.

#![allow(unsafe_code, reason = "vector instructions, and loads and stores of vectors")]

mod poly1305;
mod salsa20;
mod vector;

use std::arch::x86_64::{__m512i, _mm512_extracti64x4_epi64, _mm512_zextsi256_si512};

use zeroize::Zeroizing;

use self::poly1305::tags;
use self::salsa20::Salsa20;
use self::vector::{first_half, xor_into};
use super::poly1305::MacKey;
use super::{Batch, LANES};

/// The one-time key of each lane's tag.
type MacKeys = Zeroizing<[MacKey; LANES]>;
/// Two blocks of the key stream of each lane.
type TwoBlocks = [[__m512i; LANES]; 2];

/// Shows that this processor can run the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// `None` where the processor lacks one of the instruction sets.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512ifma");
        has_all.then_some(Self(()))
    }

    /// Seals at most eight packets, whose messages are whole blocks of 16 bytes.
    pub(super) fn seal(self, subkey: &[u8; 32], packets: Batch<'_>) {
        // SAFETY: `detect` has found all that the function needs.
        unsafe { seal(subkey, packets) }
    }

    /// Opens at most eight packets, whose messages are whole blocks of 16 bytes. Bit `i` of the result is set where packet
    /// `i` is authentic; others stay as they were.
    pub(super) fn open(self, subkey: &[u8; 32], packets: Batch<'_>) -> u64 {
        // SAFETY: as for `seal`.
        unsafe { open(subkey, packets) }
    }

    /// The Poly1305 tags of eight messages.
    #[cfg(test)]
    pub(super) fn tags(self, keys: &[MacKey; LANES], texts: &[&[u8]; LANES]) -> [[u8; crate::TAG]; LANES] {
        // SAFETY: as for `seal`.
        unsafe { tags(keys, texts) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn seal(subkey: &[u8; 32], mut packets: Batch<'_>) {
    let cipher = Salsa20::new(subkey, &packets.counters());
    let first = cipher.two_blocks(0);
    apply(&cipher, &first, &mut packets, u64::MAX);
    let tags = tags(&mac_keys(&first), &packets.texts());
    packets.write_tags(&tags);
}

#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn open(subkey: &[u8; 32], mut packets: Batch<'_>) -> u64 {
    let cipher = Salsa20::new(subkey, &packets.counters());
    let first = cipher.two_blocks(0);
    let authentic = packets.with_tags(&tags(&mac_keys(&first), &packets.texts()));
    if authentic != 0 {
        apply(&cipher, &first, &mut packets, authentic);
    }
    authentic
}

/// The keys of the tags: the first 32 bytes of each key stream.
#[inline]
#[target_feature(enable = "avx512f")]
fn mac_keys([first, _]: &TwoBlocks) -> MacKeys {
    let mut keys = Zeroizing::new([MacKey::default(); LANES]);
    for (key, block) in keys.iter_mut().zip(first) {
        *key = MacKey::new(&first_half(*block));
    }
    keys
}

/// Applies the key stream, of which the first two blocks are given, to the chosen packets.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn apply(cipher: &Salsa20, [first, second]: &TwoBlocks, packets: &mut Batch<'_>, chosen: u64) {
    for (i, text) in packets.chosen_texts(chosen) {
        // The first half of the first block is the key of the tag.
        let (beginning, rest) = text.split_at_mut(text.len().min(32));
        xor_into(beginning, _mm512_zextsi256_si512(_mm512_extracti64x4_epi64::<1>(first[i])));
        xor_into(rest, second[i]);
    }
    let length = packets.text().len();
    for (number, at) in (2..).step_by(2).zip((96..length).step_by(128)) {
        let [first, second] = cipher.two_blocks(number);
        for (i, text) in packets.chosen_texts(chosen) {
            let (beginning, rest) = text[at..].split_at_mut((length - at).min(64));
            xor_into(beginning, first[i]);
            xor_into(rest, second[i]);
        }
    }
}
