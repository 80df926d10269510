//! The requests of the laboratory, the same over every transport, and the bytes of a transfer.
//!
//! A request is 9 bytes: a letter for the operation, then a number of bytes as an unsigned integer in network order. That number of
//! bytes follows for an echo or an upload. The answer is that number of bytes, and nothing else; that of an upload is the number of
//! bytes that have arrived, 8 bytes in network order every 100 ms and when all have.

use std::ops::Range;
use std::time::Duration;

/// The length of a request without the bytes of an echo or upload.
pub const HEAD_BYTES: usize = 9;
/// The most bytes of a transfer: one terabyte.
pub const MOST_BYTES: u64 = 1_000_000_000_000;
/// The period after which the bytes of a transfer repeat.
const PERIOD: usize = 251;
/// The interval at which the server reports the progress of an upload.
pub const REPORT_EVERY: Duration = Duration::from_millis(100);
/// The most bytes that are written or compared at once.
pub const PIECE_BYTES: usize = 64 << 10;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Send this many bytes.
    Send(u64),
    /// Send back the next bytes, this many.
    Echo(u64),
    /// Receive the next bytes, this many, and report the progress.
    Take(u64),
}

/// The reason why 9 bytes are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The letter does not exist.
    #[error("a request begins with s, e or t, not with byte {0}")]
    Operation(u8),
    /// The number is too large.
    #[error("a transfer has at most {MOST_BYTES} bytes, not {0}")]
    Length(u64),
}

impl Head {
    /// The request's first bytes.
    pub fn encode(self) -> [u8; HEAD_BYTES] {
        let (letter, bytes) = match self {
            Self::Send(bytes) => (b's', bytes),
            Self::Echo(bytes) => (b'e', bytes),
            Self::Take(bytes) => (b't', bytes),
        };
        let mut head = [0; HEAD_BYTES];
        head[0] = letter;
        head[1..].copy_from_slice(&bytes.to_be_bytes());
        head
    }

    /// Parses a request's first bytes.
    ///
    /// # Errors
    /// Fails on an unknown letter, and on a number over [`MOST_BYTES`].
    pub fn decode(head: &[u8; HEAD_BYTES]) -> Result<Self, Malformed> {
        let [letter, number @ ..] = *head;
        let bytes = u64::from_be_bytes(number);
        if bytes > MOST_BYTES {
            return Err(Malformed::Length(bytes));
        }
        match letter {
            b's' => Ok(Self::Send(bytes)),
            b'e' => Ok(Self::Echo(bytes)),
            b't' => Ok(Self::Take(bytes)),
            _ => Err(Malformed::Operation(letter)),
        }
    }
}

/// The pattern of a transfer's bytes, by which a receiver notices lost, duplicated or reordered ones.
#[derive(Clone, Debug)]
pub struct Pattern(Vec<u8>);

impl Default for Pattern {
    fn default() -> Self {
        Self((0..PIECE_BYTES + PERIOD).map(|place| (place % PERIOD) as u8).collect())
    }
}

impl Pattern {
    /// The bytes of a transfer between two positions, at most [`PIECE_BYTES`].
    pub fn piece(&self, places: Range<u64>) -> &[u8] {
        let from = (places.start % PERIOD as u64) as usize;
        let length = places.end.saturating_sub(places.start).min(PIECE_BYTES as u64) as usize;
        &self.0[from..from + length]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_request_reads_back(bytes in 0..=MOST_BYTES) {
            for head in [Head::Send(bytes), Head::Echo(bytes), Head::Take(bytes)] {
                prop_assert_eq!(Head::decode(&head.encode()), Ok(head));
            }
        }

        #[test]
        fn nine_bytes_are_a_request_or_refused(head: [u8; HEAD_BYTES]) {
            if let Ok(read) = Head::decode(&head) {
                prop_assert_eq!(read.encode(), head);
            }
        }

        #[test]
        fn a_piece_is_the_pattern_from_its_place(start in 0..MOST_BYTES, length in 0..2 * PIECE_BYTES as u64) {
            let pattern = Pattern::default();
            let piece = pattern.piece(start..start + length);
            prop_assert_eq!(piece.len() as u64, length.min(PIECE_BYTES as u64));
            for (place, byte) in (start..).zip(piece) {
                prop_assert_eq!(u64::from(*byte), place % PERIOD as u64);
            }
        }
    }

    #[test]
    fn what_is_not_a_request_says_why() {
        assert_eq!(Head::decode(b"GET / HTT"), Err(Malformed::Length(u64::from_be_bytes(*b"ET / HTT"))));
        assert_eq!(Head::decode(b"x\0\0\0\0\0\0\0\0"), Err(Malformed::Operation(b'x')));
    }
}
