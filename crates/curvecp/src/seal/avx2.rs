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

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use self::poly1305::tags;
use self::salsa20::Salsa20;
use self::vector::{load, store};
use super::Batch;
use crate::TAG;
use crate::packet::counter_of;

/// Packets that are computed side by side.
pub(super) const LANES: usize = 8;
/// From this many packets on the lanes gain more than the idle ones cost.
pub(super) const FEWEST: usize = 6;

/// The one-time key of each lane's tag.
type MacKeys = Zeroizing<[[u8; 32]; LANES]>;

/// Shows that this processor runs the kernel faster than the cipher for single packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// `None` where the processor has no AVX2; and where it has AVX-512, for which the cipher for single packets has code.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && !is_x86_feature_detected!("avx512f")).then_some(Self(()))
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
}

#[target_feature(enable = "avx2")]
fn seal(subkey: &[u8; 32], packets: Batch<'_>) {
    let text = packets.header + TAG;
    let (cipher, mac_keys, first) = start(subkey, &packets);
    apply(&cipher, &first, &mut *packets.packets, packets.stride, text, u64::MAX);
    let tags = tags(&mac_keys, &texts(&packets));
    for (packet, tag) in packets.packets.chunks_exact_mut(packets.stride).zip(tags) {
        packet[packets.header..text].copy_from_slice(&tag);
    }
}

#[target_feature(enable = "avx2")]
fn open(subkey: &[u8; 32], packets: Batch<'_>) -> u64 {
    let text = packets.header + TAG;
    let (cipher, mac_keys, first) = start(subkey, &packets);
    let tags = tags(&mac_keys, &texts(&packets));
    let mut authentic = 0;
    for (i, (packet, tag)) in packets.packets.chunks_exact(packets.stride).zip(&tags).enumerate() {
        authentic |= u64::from(bool::from(packet[packets.header..text].ct_eq(tag))) << i;
    }
    if authentic != 0 {
        apply(&cipher, &first, packets.packets, packets.stride, text, authentic);
    }
    authentic
}

/// The cipher, the key of each tag, and the first 32 bytes of each key stream: the first block holds both.
#[inline]
#[target_feature(enable = "avx2")]
fn start(subkey: &[u8; 32], packets: &Batch<'_>) -> (Salsa20, MacKeys, [__m256i; LANES]) {
    let cipher = Salsa20::new(subkey, &counters(packets));
    let mut halves = no_block();
    cipher.block(0, &mut halves);
    let [keys, first] = halves;
    let mut mac_keys = Zeroizing::new([[0; 32]; LANES]);
    keys.iter().zip(mac_keys.iter_mut()).for_each(|(key, bytes)| store(*key, bytes));
    (cipher, mac_keys, first)
}

/// The counters of all lanes; those without a packet have the counter of the first.
fn counters(packets: &Batch<'_>) -> [u64; LANES] {
    let mut counters = [counter_of(&packets.packets[..packets.header]); LANES];
    for (counter, packet) in counters.iter_mut().zip(packets.packets.chunks_exact(packets.stride)) {
        *counter = counter_of(&packet[..packets.header]);
    }
    counters
}

/// The sealed messages of all lanes; those without a packet have the message of the first.
fn texts<'a>(packets: &'a Batch<'_>) -> [&'a [u8]; LANES] {
    let text = packets.header + TAG;
    let mut texts = [&packets.packets[text..packets.stride]; LANES];
    for (place, packet) in texts.iter_mut().zip(packets.packets.chunks_exact(packets.stride)) {
        *place = &packet[text..];
    }
    texts
}

/// Applies the key stream, of which the first 32 bytes are given, to the chosen packets.
#[inline]
#[target_feature(enable = "avx2")]
fn apply(
    cipher: &Salsa20,
    first: &[__m256i; LANES],
    packets: &mut [u8],
    stride: usize,
    text: usize,
    chosen: u64,
) {
    for (i, packet) in packets.chunks_exact_mut(stride).enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
        xor(&mut packet[text..], first[i]);
    }
    let mut halves = no_block();
    for (number, at) in (1..).zip((text + 32..stride).step_by(64)) {
        cipher.block(number, &mut halves);
        for (i, packet) in packets.chunks_exact_mut(stride).enumerate() {
            if chosen >> i & 1 == 1 {
                let rest = &mut packet[at..];
                xor(rest, halves[0][i]);
                if rest.len() > 32 {
                    xor(&mut rest[32..], halves[1][i]);
                }
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
