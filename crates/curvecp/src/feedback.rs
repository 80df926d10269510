//! Feedback between two endpoints of this crate, inside the padding of messages, which the reference ignores.
//!
//! Every message has at least 16 bytes of padding, enough for the fixed part, so it is in every message and no exchange
//! is needed to agree on it: the first message that has it shows that the peer understands it.
//!
//! ```text
//!  offset from the padding's start
//!   0   4  magic "kCP1"
//!   4   1  flags: 1 wants a larger window, 2 the echoed message brought nothing new, 4 both streams are over,
//!          8 more ranges have arrived than are listed, 16 acknowledge this message at once,
//!          32 takes messages of up to 1,376 bytes
//!   5   1  n, the number of ranges that follow
//!   6   2  delay between the arrival of the echoed message and this one, in units of 16 µs
//!   8   8  position up to which the receiver of this message may send
//!  16  8n  ranges as pairs (gap, length) of 32 bits, in place of ranges 2 to 6 of the header
//! ```

use std::time::Duration;

const MAGIC: [u8; 4] = *b"kCP1";
/// Bytes of the fixed part.
pub const FIXED_BYTES: usize = 16;
/// The most ranges that the feedback lists.
pub const MAX_RANGES: usize = 16;
const DELAY_UNIT_NS: u64 = 16_000;

/// The fixed part of the feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The sender of this message would send more at once if it were allowed to.
    pub wants_window: bool,
    /// All data of the echoed message had arrived before.
    pub duplicate: bool,
    /// The sender of this message has received both ends, and all data that it sent is acknowledged.
    pub done: bool,
    /// More ranges have arrived than this message lists, all of them beyond those that it lists.
    pub more: bool,
    /// The sender of this message has nothing more to send, so an acknowledgment should not wait for more messages.
    pub prompt: bool,
    /// The sender of this message takes messages longer than the reference's.
    pub takes_long: bool,
    /// The number of ranges that follow.
    pub ranges: u8,
    /// The time from the arrival of the echoed message to the sending of this one; at most 1.05 s, in steps of 16 µs.
    pub delay: Duration,
    /// The peer may send bytes before this position.
    pub limit: u64,
}

impl Feedback {
    /// Writes the fixed part and as many islands as fit into the padding, and returns whether there was space.
    pub fn encode(
        mut self,
        first: u64,
        mut islands: impl Iterator<Item = (u64, u64)>,
        padding: &mut [u8],
    ) -> bool {
        let Some((fixed, list)) = padding.split_first_chunk_mut::<FIXED_BYTES>() else { return false };
        let mut stop = first;
        self.ranges = 0;
        for slot in list.as_chunks_mut::<8>().0.iter_mut().take(MAX_RANGES) {
            let Some((start, end)) = islands.next() else { break };
            let (Ok(gap), Ok(length)) = (u32::try_from(start - stop), u32::try_from(end - start)) else {
                self.more = true;
                break;
            };
            slot[..4].copy_from_slice(&gap.to_le_bytes());
            slot[4..].copy_from_slice(&length.to_le_bytes());
            stop = end;
            self.ranges += 1;
        }
        self.more |= islands.next().is_some();
        let flags = [self.wants_window, self.duplicate, self.done, self.more, self.prompt, self.takes_long];
        fixed[..4].copy_from_slice(&MAGIC);
        fixed[4] = flags.iter().enumerate().map(|(bit, flag)| u8::from(*flag) << bit).sum();
        fixed[5] = self.ranges;
        let units = self.delay.as_nanos() as u64 / DELAY_UNIT_NS;
        fixed[6..8].copy_from_slice(&u16::try_from(units).unwrap_or(u16::MAX).to_le_bytes());
        fixed[8..].copy_from_slice(&self.limit.to_le_bytes());
        true
    }

    /// Reads the feedback and the bytes of its ranges; `None` where the padding is not feedback.
    pub fn decode(padding: &[u8]) -> Option<(Self, &[[u8; 8]])> {
        let (fixed, list) = padding.split_first_chunk::<FIXED_BYTES>()?;
        if fixed[..4] != MAGIC {
            return None;
        }
        let list = list.as_chunks::<8>().0.get(..fixed[5].into()).filter(|list| list.len() <= MAX_RANGES)?;
        let feedback = Self {
            wants_window: fixed[4] & 1 != 0,
            duplicate: fixed[4] & 2 != 0,
            done: fixed[4] & 4 != 0,
            more: fixed[4] & 8 != 0,
            prompt: fixed[4] & 16 != 0,
            takes_long: fixed[4] & 32 != 0,
            ranges: fixed[5],
            delay: Duration::from_nanos(u64::from(u16::from_le_bytes([fixed[6], fixed[7]])) * DELAY_UNIT_NS),
            limit: u64::from_le_bytes(*fixed.last_chunk().expect("the fixed part ends in eight bytes")),
        };
        Some((feedback, list))
    }
}

/// The ranges behind a list of pairs, after `first` bytes without a gap.
pub fn islands(first: u64, list: &[[u8; 8]]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut stop = first;
    list.iter().filter_map(move |pair| {
        let [g0, g1, g2, g3, l0, l1, l2, l3] = *pair;
        let start = stop.saturating_add(u32::from_le_bytes([g0, g1, g2, g3]).into());
        stop = start.saturating_add(u32::from_le_bytes([l0, l1, l2, l3]).into());
        (start < stop).then_some((start, stop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zeros_and_short_padding_are_no_feedback() {
        assert_eq!(Feedback::decode(&[0; 144]), None);
        assert_eq!(Feedback::decode(b"kCP1"), None);
        assert!(!Feedback::default().encode(0, std::iter::empty(), &mut [0; 15]));
    }

    #[test]
    fn a_list_longer_than_the_padding_is_no_feedback() {
        let mut padding = [0; 32];
        assert!(Feedback::default().encode(0, [(2, 3), (5, 7)].into_iter(), &mut padding));
        assert_eq!(Feedback::decode(&padding).map(|(_, list)| list.len()), Some(2));
        padding[5] = 3;
        assert_eq!(Feedback::decode(&padding), None);
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse_of_encoding(
            flags in any::<[bool; 5]>(),
            units in any::<u16>(),
            limit in any::<u64>(),
            first in 0_u64..1 << 50,
            steps in prop::collection::vec((1_u32.., 1_u32..), 0..20),
        ) {
            let mut stop = first;
            let ranges: Vec<_> = steps.iter().map(|(gap, length)| {
                let start = stop + u64::from(*gap);
                stop = start + u64::from(*length);
                (start, stop)
            }).collect();
            let [wants_window, duplicate, done, prompt, takes_long] = flags;
            let delay = Duration::from_micros(16 * u64::from(units));
            let listed = ranges.len().min(MAX_RANGES);
            let more = listed < ranges.len();
            let feedback = Feedback {
                wants_window, duplicate, done, more, prompt, takes_long, ranges: listed as u8, delay, limit,
            };
            let mut padding = [0; 144];
            prop_assert!(feedback.encode(first, ranges.iter().copied(), &mut padding));
            let (decoded, list) = Feedback::decode(&padding).unwrap();
            prop_assert_eq!(decoded, feedback);
            prop_assert_eq!(islands(first, list).collect::<Vec<_>>(), &ranges[..listed]);
        }

        #[test]
        fn any_bytes_are_decoded_or_ignored(mut padding in prop::collection::vec(any::<u8>(), 0..150), magic in any::<bool>()) {
            if magic && padding.len() >= 4 { padding[..4].copy_from_slice(&MAGIC); }
            if let Some((_, list)) = Feedback::decode(&padding) {
                prop_assert!(islands(u64::MAX - 5, list).all(|(start, stop)| start < stop));
            }
        }
    }
}
