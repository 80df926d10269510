//! What kernels take from the packets of a batch, and write into them.

use super::{Batch, LANES};
use crate::TAG;
use crate::packet::counter_of;
use subtle::ConstantTimeEq;

impl Batch<'_> {
    /// Where the messages begin and end in their packets.
    pub(super) fn text(&self) -> std::ops::Range<usize> {
        self.header + TAG..self.stride
    }

    /// The counters of all lanes; those without a packet have the counter of the first.
    pub(super) fn counters(&self) -> [u64; LANES] {
        let mut counters = [counter_of(&self.packets[..self.header]); LANES];
        for (counter, packet) in counters.iter_mut().zip(self.packets.chunks_exact(self.stride)) {
            *counter = counter_of(&packet[..self.header]);
        }
        counters
    }

    /// The messages of all lanes; those without a packet have the message of the first.
    pub(super) fn texts(&self) -> [&[u8]; LANES] {
        let mut texts = [&self.packets[self.text()]; LANES];
        for (place, packet) in texts.iter_mut().zip(self.packets.chunks_exact(self.stride)) {
            *place = &packet[self.text()];
        }
        texts
    }

    /// The messages of the packets whose bit is set.
    pub(super) fn chosen_texts(&mut self, chosen: u64) -> impl Iterator<Item = (usize, &mut [u8])> {
        let text = self.text();
        let packets = self.packets.chunks_exact_mut(self.stride).enumerate();
        packets
            .filter(move |(i, _)| chosen >> i & 1 == 1)
            .map(move |(i, packet)| (i, &mut packet[text.clone()]))
    }

    /// Writes each packet's tag.
    pub(super) fn write_tags(&mut self, tags: &[[u8; TAG]; LANES]) {
        for (packet, tag) in self.packets.chunks_exact_mut(self.stride).zip(tags) {
            packet[self.header..][..TAG].copy_from_slice(tag);
        }
    }

    /// Bit `i` is set where packet `i` has the tag of lane `i`.
    pub(super) fn with_tags(&self, tags: &[[u8; TAG]; LANES]) -> u64 {
        // As numbers, since byte by byte takes the comparison in constant time sixteen times as long.
        let packets = self.packets.chunks_exact(self.stride).zip(tags).enumerate();
        packets.fold(0, |equal, (i, (packet, tag))| {
            let received = packet[self.header..].first_chunk().expect("a packet has a tag");
            let same = u128::from_le_bytes(*received).ct_eq(&u128::from_le_bytes(*tag));
            equal | u64::from(same.unwrap_u8()) << i
        })
    }
}
