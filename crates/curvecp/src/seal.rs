//! XSalsa20-Poly1305 over packets of one connection and direction, one by one and in batches of equal length, in place.
//!
//! All boxes of a direction share the first 16 bytes of their nonce, so HSalsa20 gives the same key for every one:
//! [`DirectionKey`] holds it. A batch goes through vectors with a packet in each lane where the processor has a [`Kernel`].
//! The cipher for single boxes, which is the fallback, takes the key before HSalsa20 and computes that step again for each.

#[cfg(target_arch = "x86_64")]
mod kernel;
#[cfg(not(target_arch = "x86_64"))]
#[path = "seal/no_kernel.rs"]
mod kernel;

pub use self::kernel::Kernel;

use crate::keys::{BoxKey, TAG, hsalsa20, nonce};
use crate::packet::counter_of;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The longest batch that [`DirectionKey::open_batch`] takes: its verdicts are the bits of a `u64`.
pub const BATCH: usize = 64;

/// The key of all boxes in one direction of one connection.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DirectionKey {
    shared: BoxKey,
    subkey: [u8; 32],
    prefix: [u8; 16],
}

/// Packets of equal length, one after another, in a send or receive buffer.
///
/// Each is a header, whose last eight bytes are the nonce's counter, and a box: 16 bytes of tag and the message.
#[derive(Debug)]
pub struct Batch<'a> {
    /// A multiple of `stride` bytes.
    pub packets: &'a mut [u8],
    /// Bytes of each packet.
    pub stride: usize,
    /// Bytes of each packet before its box, at least eight.
    pub header: usize,
}

impl<'a> Batch<'a> {
    /// The first packets, this many, and the others.
    fn split_at(self, count: usize) -> (Self, Self) {
        let Self { packets, stride, header } = self;
        let (first, others) = packets.split_at_mut(count * stride);
        (Self { packets: first, stride, header }, Self { packets: others, stride, header })
    }
}

impl DirectionKey {
    /// The key for boxes under `shared` whose nonces begin with `prefix`.
    pub fn new(shared: BoxKey, prefix: &[u8; 16]) -> Self {
        Self { subkey: hsalsa20(&shared.0, prefix), shared, prefix: *prefix }
    }

    /// The key that HSalsa20 derives from the shared key and the constant beginning of the nonce: the Salsa20 key of
    /// every box in this direction, whose eight bytes of nonce are the packet's counter.
    pub fn subkey(&self) -> &[u8; 32] {
        &self.subkey
    }

    /// Seals one box in place; see [`BoxKey::seal`].
    pub fn seal(&self, counter: u64, boxed: &mut [u8]) {
        self.shared.seal(&nonce(&self.prefix, &counter.to_le_bytes()), boxed);
    }

    /// Opens one box in place; see [`BoxKey::open`].
    pub fn open<'a>(&self, counter: u64, boxed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        self.shared.open(&nonce(&self.prefix, &counter.to_le_bytes()), boxed)
    }

    /// Seals every packet of the batch in place, each under the counter in its header.
    pub fn seal_batch(&self, batch: Batch<'_>) {
        self.seal_batch_with(Kernel::fastest(), batch);
    }

    /// Does the same with the given kernel, or one by one without.
    pub fn seal_batch_with(&self, kernel: Option<Kernel>, batch: Batch<'_>) {
        debug_assert_eq!(batch.packets.len() % batch.stride, 0);
        let taken = kernel.map_or(0, |kernel| kernel.takes(&batch));
        let (side_by_side, Batch { packets, stride, header }) = batch.split_at(taken);
        if let Some(kernel) = kernel {
            kernel.seal(&self.subkey, side_by_side);
        }
        for packet in packets.chunks_exact_mut(stride) {
            let (header, boxed) = packet.split_at_mut(header);
            self.seal(counter_of(header), boxed);
        }
    }

    /// Opens every packet of the batch in place. Bit `i` of the result is set where packet `i` is authentic; others stay
    /// as they were. A batch has at most [`BATCH`] packets; those beyond stay sealed.
    pub fn open_batch(&self, batch: Batch<'_>) -> u64 {
        self.open_batch_with(Kernel::fastest(), batch)
    }

    /// Does the same with the given kernel, or one by one without.
    pub fn open_batch_with(&self, kernel: Option<Kernel>, batch: Batch<'_>) -> u64 {
        debug_assert_eq!(batch.packets.len() % batch.stride, 0);
        let most = BATCH.min(batch.packets.len() / batch.stride);
        let (batch, _) = batch.split_at(most);
        let taken = kernel.map_or(0, |kernel| kernel.takes(&batch));
        let (side_by_side, Batch { packets, stride, header }) = batch.split_at(taken);
        let mut authentic = kernel.map_or(0, |kernel| kernel.open(&self.subkey, side_by_side));
        for (i, packet) in (taken..).zip(packets.chunks_exact_mut(stride)) {
            let (header, boxed) = packet.split_at_mut(header);
            authentic |= u64::from(self.open(counter_of(header), boxed).is_some()) << i;
        }
        authentic
    }
}

impl std::fmt::Debug for DirectionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectionKey(***)")
    }
}

const _: () = assert!(TAG == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{PublicKey, SecretKey};
    use poly1305::universal_hash::KeyInit;
    use proptest::prelude::*;
    use salsa20::cipher::{KeyIvInit, StreamCipher};

    /// XSalsa20-Poly1305 from other crates, with the derived key.
    fn reference_seal(key: &DirectionKey, counter: u64, boxed: &mut [u8]) {
        let mut cipher = salsa20::Salsa20::new(key.subkey().into(), &counter.to_le_bytes().into());
        let mut mac_key = [0; 32];
        cipher.apply_keystream(&mut mac_key);
        cipher.apply_keystream(&mut boxed[TAG..]);
        let tag = poly1305::Poly1305::new(&mac_key.into()).compute_unpadded(&boxed[TAG..]);
        boxed[..TAG].copy_from_slice(&tag);
    }

    fn key(shared: [u8; 32]) -> DirectionKey {
        DirectionKey::new(BoxKey(shared), b"CurveCP-client-M")
    }

    /// Lengths of messages, most of them whole blocks.
    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![4 => (0usize..=68).prop_map(|blocks| 16 * blocks), 1 => 0usize..=1088]
    }

    proptest! {
        #[test]
        fn boxes_equal_those_of_a_second_implementation(
            shared: [u8; 32], counter: u64, text in proptest::collection::vec(any::<u8>(), 0..1300)
        ) {
            let key = key(shared);
            let mut boxed = vec![0; TAG];
            boxed.extend_from_slice(&text);
            let mut expected = boxed.clone();
            key.seal(counter, &mut boxed);
            reference_seal(&key, counter, &mut expected);
            prop_assert_eq!(&boxed, &expected);
            prop_assert_eq!(key.open(counter, &mut boxed).unwrap(), &text[..]);
        }

        #[test]
        fn a_flipped_bit_is_noticed_and_leaves_the_box_unchanged(
            counter: u64, length in 0usize..1100, flip in any::<proptest::sample::Index>()
        ) {
            let key = key([9; 32]);
            let mut boxed = vec![5; TAG + length];
            key.seal(counter, &mut boxed);
            let bit = flip.index(boxed.len() * 8);
            boxed[bit / 8] ^= 1 << (bit % 8);
            let before = boxed.clone();
            prop_assert!(key.open(counter, &mut boxed).is_none());
            prop_assert_eq!(boxed, before);
        }

        #[test]
        fn a_batch_is_its_packets_one_by_one(
            shared: [u8; 32], count in 1usize..=BATCH, length in lengths(), forged in any::<u64>(), first in any::<u32>()
        ) {
            let (key, header) = (key(shared), 48);
            let stride = header + TAG + length;
            let mut packets = vec![7; count * stride];
            for (i, packet) in packets.chunks_exact_mut(stride).enumerate() {
                packet[40..48].copy_from_slice(&(u64::from(first) + i as u64).to_le_bytes());
            }
            let mut one_by_one = packets.clone();
            for (i, packet) in one_by_one.chunks_exact_mut(stride).enumerate() {
                key.seal(u64::from(first) + i as u64, &mut packet[header..]);
            }
            let all = u64::MAX >> (64 - count);
            let is_forged = |i: usize| forged >> i & 1 == 1;
            let mut received = one_by_one.clone();
            for i in (0..count).filter(|i| is_forged(*i)) {
                received[i * stride + header] ^= 1;
            }
            for kernel in Kernel::all().map(Some).chain([None]) {
                let mut sealed = packets.clone();
                key.seal_batch_with(kernel, Batch { packets: &mut sealed, stride, header });
                prop_assert_eq!(&sealed, &one_by_one);

                let mut opened = received.clone();
                let authentic = key.open_batch_with(kernel, Batch { packets: &mut opened, stride, header });
                prop_assert_eq!(authentic, all & !forged);
                for i in 0..count {
                    let expected = if is_forged(i) { &received } else { &packets };
                    let text = i * stride + header + TAG..(i + 1) * stride;
                    prop_assert_eq!(&opened[text.clone()], &expected[text]);
                }
            }
        }
    }

    #[test]
    fn shared_keys_and_boxes_equal_those_of_nacl() {
        for line in include_str!("../testdata/box.txt").lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<Vec<u8>> = line.split_whitespace().map(from_hex).collect();
            let [secret, peer, shared, nonce, text, boxed] = &fields[..] else {
                panic!("six fields: {line}")
            };
            let secret = SecretKey::from_bytes(secret[..].try_into().unwrap());
            let key = secret.box_key(&PublicKey(peer[..].try_into().unwrap())).unwrap();
            assert_eq!(&key.0, &shared[..]);
            let mut ours = [&[0; TAG][..], text].concat();
            key.seal(&nonce[..].try_into().unwrap(), &mut ours);
            assert_eq!(&ours, boxed);
        }
    }

    fn from_hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }
}
