//! The message: what travels inside the boxes, 48 bytes of header, padding, data.
//!
//! Offsets and sizes are those of the reference (`curvecpmessage.c` of NaCl 20110221). All integers are little-endian.
//! Decoding accepts every byte string and answers `None` where the reference would ignore the message.

use crate::feedback::FIXED_BYTES;

/// Bytes of the header, and the shortest message that carries anything.
pub const HEADER_BYTES: usize = 48;
/// Bytes of the reference's longest message, and of ours until the path is known to carry more.
pub const MAX_MESSAGE_BYTES: usize = 1088;
/// The most data bytes that it carries.
pub const MAX_DATA_BYTES: usize = 1024;
/// Bytes of the longest message between two of ours.
pub const LONGEST_MESSAGE_BYTES: usize = 1376;
/// Messages longer than the reference's have a multiple of this many bytes more.
pub const LENGTH_STEP: usize = 32;
/// Bytes of a message that carry no data: the header and the fixed part of the feedback.
pub(crate) const BESIDE_DATA: usize = HEADER_BYTES + FIXED_BYTES;
const LONGEST_DATA_BYTES: usize = LONGEST_MESSAGE_BYTES - BESIDE_DATA;
/// Stream positions are below this bound (2^60).
pub const MAX_POSITION: u64 = 1 << 60;
/// Ranges of acknowledged bytes in a header: the first, from 0, and five more.
pub const RANGES: usize = 6;

const SUCCESS_BIT: u16 = 2048;
const FAILURE_BIT: u16 = 4096;

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything was written.
    Success,
    /// The writer gave up.
    Failure,
}

/// The acknowledgment fields in the order of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckFields {
    /// The end of the bytes that have all arrived; one more than the stream's length once its end has, too.
    pub first: u64,
    /// Bytes between range i and range i + 1. The first gap has 32 bits on the wire, the others 16.
    pub gaps: [u32; RANGES - 1],
    /// Lengths of ranges 2 to 6.
    pub lengths: [u16; RANGES - 1],
}

impl AckFields {
    /// The fields for `[0, first)` and islands in ascending order. Islands that the fields cannot express are left out or
    /// shortened, which is safe: an acknowledgment may report less than has arrived.
    pub fn new(first: u64, islands: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut fields = Self { first, ..Self::default() };
        let mut stop = first;
        for (index, (start, end)) in islands.take(RANGES - 1).enumerate() {
            let gap = start - stop;
            let limit = if index == 0 { u64::from(u32::MAX) } else { u64::from(u16::MAX) };
            if gap > limit {
                break;
            }
            let length = (end - start).min(u64::from(u16::MAX));
            fields.gaps[index] = gap as u32;
            fields.lengths[index] = length as u16;
            stop = start + length;
            if stop < end {
                break;
            }
        }
        fields
    }

    /// Ranges 2 to 6 as positions, without the empty ones.
    pub fn islands(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut stop = self.first;
        self.gaps.iter().zip(&self.lengths).filter_map(move |(gap, length)| {
            let start = stop.saturating_add(u64::from(*gap));
            stop = start.saturating_add(u64::from(*length));
            (start < stop).then_some((start, stop))
        })
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Number of the message; 0 marks a pure acknowledgment, which is never acknowledged.
    pub id: u32,
    /// Number of a message that has just arrived from the peer; 0 where no message has.
    pub echo: u32,
    /// The received parts of the peer's stream.
    pub acks: AckFields,
    /// Bytes of data at the end of the message.
    pub data_len: u16,
    /// Whether the stream ends after this message's data, and how.
    pub end: Option<End>,
    /// Position in the stream of the first data byte.
    pub position: u64,
}

/// A message taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The first 48 bytes.
    pub header: Header,
    /// The bytes between header and data: zeros, or [`Feedback`](crate::feedback::Feedback).
    pub padding: &'a [u8],
    /// The last `data_len` bytes.
    pub data: &'a [u8],
}

/// The length of a message for this much data: that of the reference, so that lengths reveal little. More data than the
/// reference sends at once fills its message.
pub const fn message_bytes(data_len: usize) -> usize {
    match data_len + BESIDE_DATA {
        0..=192 => 192,
        193..=320 => 320,
        321..=576 => 576,
        577..=MAX_MESSAGE_BYTES => MAX_MESSAGE_BYTES,
        more => more.next_multiple_of(LENGTH_STEP),
    }
}

impl Header {
    /// Writes the 48 bytes to the front of `out`.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than 48 bytes.
    pub fn encode(&self, out: &mut [u8]) {
        let out: &mut [u8; HEADER_BYTES] =
            out.first_chunk_mut().expect("the caller's buffer holds at least a header");
        out[0..4].copy_from_slice(&self.id.to_le_bytes());
        out[4..8].copy_from_slice(&self.echo.to_le_bytes());
        out[8..16].copy_from_slice(&self.acks.first.to_le_bytes());
        out[16..20].copy_from_slice(&self.acks.gaps[0].to_le_bytes());
        for (index, length) in self.acks.lengths.iter().enumerate() {
            let at = 20 + 4 * index;
            out[at..at + 2].copy_from_slice(&length.to_le_bytes());
            if let Some(gap) = self.acks.gaps.get(index + 1) {
                out[at + 2..at + 4].copy_from_slice(&(*gap as u16).to_le_bytes());
            }
        }
        let end_bits = match self.end {
            None => 0,
            Some(End::Success) => SUCCESS_BIT,
            Some(End::Failure) => FAILURE_BIT,
        };
        out[38..40].copy_from_slice(&(self.data_len | end_bits).to_le_bytes());
        out[40..48].copy_from_slice(&self.position.to_le_bytes());
    }
}

impl<'a> Message<'a> {
    /// Takes a message apart; `None` for one that is shorter than a header, longer than 1,376 bytes (the reference ignores more
    /// than 1,088), no multiple of 16, or has more data than it has bytes for.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > LONGEST_MESSAGE_BYTES || !bytes.len().is_multiple_of(16) {
            return None;
        }
        let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let size_and_end = u16_at(38);
        let data_len = size_and_end & !(SUCCESS_BIT | FAILURE_BIT);
        if usize::from(data_len) > LONGEST_DATA_BYTES || usize::from(data_len) > rest.len() {
            return None;
        }
        let end = match size_and_end & (SUCCESS_BIT | FAILURE_BIT) {
            0 => None,
            SUCCESS_BIT => Some(End::Success),
            _ => Some(End::Failure),
        };
        let gap = |index: usize| if index == 0 { u32_at(16) } else { u32::from(u16_at(18 + 4 * index)) };
        let header = Header {
            id: u32_at(0),
            echo: u32_at(4),
            acks: AckFields {
                first: u64_at(8),
                gaps: std::array::from_fn(gap),
                lengths: std::array::from_fn(|index| u16_at(20 + 4 * index)),
            },
            data_len,
            end,
            position: u64_at(40),
        };
        let (padding, data) = rest.split_at(rest.len() - usize::from(data_len));
        Some(Self { header, padding, data })
    }

    /// Whether the message is longer than the reference's longest.
    pub fn is_long(&self) -> bool {
        HEADER_BYTES + self.padding.len() + self.data.len() > MAX_MESSAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A worked message: an acknowledgment of the reference for 24 bytes and the end of the stream, as captured.
    #[test]
    fn a_pure_acknowledgment_has_its_fields_where_the_reference_has_them() {
        let mut bytes = [0; 192];
        let acks = AckFields::new(25, std::iter::empty());
        Header { echo: 7, acks, ..Header::default() }.encode(&mut bytes);
        assert_eq!(bytes[..16], [0, 0, 0, 0, 7, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0]);
        assert!(bytes[16..].iter().all(|byte| *byte == 0));
        let message = Message::decode(&bytes).unwrap();
        assert_eq!((message.header.id, message.header.echo, message.header.acks.first), (0, 7, 25));
        assert_eq!((message.padding.len(), message.data.len()), (144, 0));
    }

    #[test]
    fn lengths_are_those_of_the_reference() {
        let sizes = [0, 128, 129, 256, 257, 512, 513, 1024, 1056, 1312].map(message_bytes);
        assert_eq!(sizes, [192, 192, 320, 320, 576, 576, 1088, 1088, 1120, 1376]);
    }

    #[test]
    fn six_ranges_are_written_and_the_seventh_is_left_out() {
        let islands = [(110, 120), (140, 150), (160, 170), (180, 190), (200, 210), (220, 230)];
        let fields = AckFields::new(100, islands.into_iter());
        assert_eq!(fields.islands().collect::<Vec<_>>(), islands[..5]);
    }

    #[test]
    fn an_island_that_needs_more_than_16_bits_is_shortened_and_ends_the_list() {
        let fields = AckFields::new(0, [(1 << 20, (1 << 20) + 70_000), (1 << 22, 1 << 23)].into_iter());
        assert_eq!(fields.islands().collect::<Vec<_>>(), [(1 << 20, (1 << 20) + 65_535)]);
        let far = AckFields::new(0, [(10, 20), (70_000, 70_010)].into_iter());
        assert_eq!(far.islands().collect::<Vec<_>>(), [(10, 20)]);
    }

    #[test]
    fn messages_that_the_reference_ignores_are_not_decoded() {
        let mut bytes = [0; 1392];
        assert_eq!(Message::decode(&bytes[..32]), None, "shorter than a header");
        assert_eq!(Message::decode(&bytes[..100]), None, "no multiple of 16");
        assert_eq!(Message::decode(&bytes), None, "too long");
        bytes[38] = 145;
        assert_eq!(Message::decode(&bytes[..192]), None, "more data than bytes");
        assert!(Message::decode(&bytes[..208]).is_some());
    }

    fn header() -> impl Strategy<Value = Header> {
        let acks = (any::<u64>(), any::<u32>(), any::<[u16; 4]>(), any::<[u16; 5]>()).prop_map(
            |(first, gap, others, lengths)| {
                let gaps = std::array::from_fn(|i| if i == 0 { gap } else { others[i - 1].into() });
                AckFields { first, gaps, lengths }
            },
        );
        let end = prop_oneof![Just(None), Just(Some(End::Success)), Just(Some(End::Failure))];
        (any::<u32>(), any::<u32>(), acks, 0..=1312_u16, end, any::<u64>()).prop_map(
            |(id, echo, acks, data_len, end, position)| Header { id, echo, acks, data_len, end, position },
        )
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse_of_encoding(header in header(), fill in any::<u8>()) {
            let mut bytes = [fill; LONGEST_MESSAGE_BYTES];
            let bytes = &mut bytes[..message_bytes(header.data_len.into())];
            header.encode(bytes);
            let message = Message::decode(bytes).unwrap();
            prop_assert_eq!(message.header, header);
            prop_assert_eq!(message.data.len(), usize::from(header.data_len));
            prop_assert_eq!(message.padding.len() + message.data.len() + 48, bytes.len());
        }

        #[test]
        fn any_bytes_are_decoded_or_ignored(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            if let Some(message) = Message::decode(&bytes) {
                prop_assert!(message.header.acks.islands().all(|(start, stop)| start < stop));
            }
        }

        #[test]
        fn islands_that_fit_come_back(first in 0_u64..1 << 40, steps in prop::collection::vec((1_u64..60_000, 1_u64..60_000), 0..6)) {
            let mut stop = first;
            let islands: Vec<_> = steps.iter().map(|(gap, length)| {
                let start = stop + gap;
                stop = start + length;
                (start, stop)
            }).collect();
            let fields = AckFields::new(first, islands.iter().copied());
            prop_assert_eq!(fields.islands().collect::<Vec<_>>(), &islands[..islands.len().min(5)]);
        }
    }
}
