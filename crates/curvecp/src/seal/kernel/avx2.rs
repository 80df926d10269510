//! XSalsa20-Poly1305 over eight packets at once, one in each lane of AVX2's vectors.
//!
//! All packets of a batch have the same length, so all lanes do the same: Salsa20 computes the same block of eight
//! packets, Poly1305 takes the same block of two times four. Nothing branches or indexes on a secret. The output is that of
//! the cipher for single packets, to the bit.

#![allow(unsafe_code, reason = "vector instructions, and loads and stores of vectors")]

mod poly1305;
mod salsa20;
mod vector;

use std::arch::x86_64::{__m256i, _mm256_setzero_si256, _mm256_xor_si256};

use zeroize::Zeroizing;

use self::poly1305::tags;
use self::salsa20::Salsa20;
use self::vector::{load, store};
use super::poly1305::MacKey;
use super::{Batch, LANES};

/// The one-time key of each lane's tag.
type MacKeys = Zeroizing<[MacKey; LANES]>;

/// Shows that this processor can run the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// `None` where the processor has no AVX2.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Seals at most eight packets, whose messages are whole blocks of 16 bytes.
    pub(super) fn seal(self, subkey: &[u8; 32], packets: Batch<'_>) {
        // SAFETY: `detect` has found that the processor has AVX2.
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

#[target_feature(enable = "avx2")]
fn seal(subkey: &[u8; 32], mut packets: Batch<'_>) {
    let (cipher, mac_keys, first) = start(subkey, &packets);
    apply(&cipher, &first, &mut packets, u64::MAX);
    let tags = tags(&mac_keys, &packets.texts());
    packets.write_tags(&tags);
}

#[target_feature(enable = "avx2")]
fn open(subkey: &[u8; 32], mut packets: Batch<'_>) -> u64 {
    let (cipher, mac_keys, first) = start(subkey, &packets);
    let authentic = packets.with_tags(&tags(&mac_keys, &packets.texts()));
    if authentic != 0 {
        apply(&cipher, &first, &mut packets, authentic);
    }
    authentic
}

/// The cipher, the key of each tag, and the first 32 bytes of each key stream: the first block holds both.
#[inline]
#[target_feature(enable = "avx2")]
fn start(subkey: &[u8; 32], packets: &Batch<'_>) -> (Salsa20, MacKeys, [__m256i; LANES]) {
    let cipher = Salsa20::new(subkey, &packets.counters());
    let mut halves = no_block();
    cipher.block(0, &mut halves);
    let [keys, first] = halves;
    let mut mac_keys = Zeroizing::new([MacKey::default(); LANES]);
    let mut bytes = Zeroizing::new([0; 32]);
    for (vector, key) in keys.iter().zip(mac_keys.iter_mut()) {
        store(*vector, &mut bytes);
        *key = MacKey::new(&bytes);
    }
    (cipher, mac_keys, first)
}

/// Applies the key stream, of which the first 32 bytes are given, to the chosen packets.
#[inline]
#[target_feature(enable = "avx2")]
fn apply(cipher: &Salsa20, first: &[__m256i; LANES], packets: &mut Batch<'_>, chosen: u64) {
    for (i, text) in packets.chosen_texts(chosen) {
        xor(text, first[i]);
    }
    let mut halves = no_block();
    let length = packets.text().len();
    for (number, at) in (1..).zip((32..length).step_by(64)) {
        cipher.block(number, &mut halves);
        for (i, text) in packets.chosen_texts(chosen) {
            let rest = &mut text[at..];
            xor(rest, halves[0][i]);
            if rest.len() > 32 {
                xor(&mut rest[32..], halves[1][i]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn no_block() -> [[__m256i; LANES]; 2] {
    [[_mm256_setzero_si256(); LANES]; 2]
}

/// Applies 32 bytes of key stream to the beginning of a text, or fewer where it is shorter.
#[inline]
#[target_feature(enable = "avx2")]
fn xor(text: &mut [u8], stream: __m256i) {
    if let Some(whole) = text.first_chunk_mut() {
        store(_mm256_xor_si256(load(whole), stream), whole);
        return;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    store(stream, &mut bytes);
    text.iter_mut().zip(bytes.iter()).for_each(|(byte, stream)| *byte ^= stream);
}
