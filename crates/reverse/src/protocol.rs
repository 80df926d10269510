//! The wire: 49 bytes per request, 8 bytes per answer. No I/O, no framing, no version; the caller owns the
//! socket.
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 32 | the SHA-256 digest |
//! | 32 | 8 | the first candidate, big-endian |
//! | 40 | 8 | the end of the range, big-endian, itself not a candidate |
//! | 48 | 1 | the priority, the larger the more urgent |
//!
//! The answer is one big-endian integer. The hashed message is the integer's 8 bytes in *little*-endian
//! order. The protocol has no error: the answer for "not found" is 0, which is also a possible answer.

pub use kendall_digest::sha256::{Digest, digest};

/// The length of a request.
pub const REQUEST_BYTES: usize = 49;
/// The length of an answer.
pub const ANSWER_BYTES: usize = 8;
/// The answer where nothing was found, and to a rejected request.
pub const NOT_FOUND: u64 = 0;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The digest of the integer that is sought.
    pub digest: Digest,
    /// The first candidate.
    pub start: u64,
    /// The end of the range; not a candidate.
    pub end: u64,
    /// The priority; larger is more urgent. Course clients send 1 to 16; a server treats 0 as 1.
    pub priority: u8,
}

impl Request {
    /// Encodes the request.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..32].copy_from_slice(&self.digest);
        bytes[32..40].copy_from_slice(&self.start.to_be_bytes());
        bytes[40..48].copy_from_slice(&self.end.to_be_bytes());
        bytes[48] = self.priority;
        bytes
    }

    /// The request that `bytes` begin with; `None` if there are fewer than 49. Any 49 bytes are a request.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (digest, rest) = bytes.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (end, rest) = rest.split_first_chunk()?;
        let priority = *rest.first()?;
        let (start, end) = (u64::from_be_bytes(*start), u64::from_be_bytes(*end));
        Some(Self { digest: *digest, start, end, priority })
    }

    /// The number of candidates of the range; 0 if it ends before it begins.
    pub fn candidates(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether `answer` lies in the range and has the digest.
    pub fn is_answered_by(&self, answer: u64) -> bool {
        (self.start..self.end).contains(&answer) && digest(answer) == self.digest
    }
}

/// Encodes an answer.
pub fn encode_answer(answer: u64) -> [u8; ANSWER_BYTES] {
    answer.to_be_bytes()
}

/// The answer in 8 bytes.
pub fn decode_answer(bytes: [u8; ANSWER_BYTES]) -> u64 {
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(digest: [u8; 32], start: u64, end: u64, priority: u8, surplus: Vec<u8>) {
            let request = Request { digest, start, end, priority };
            let mut bytes = request.encode().to_vec();
            prop_assert_eq!(bytes.len(), REQUEST_BYTES);
            for length in 0..REQUEST_BYTES {
                prop_assert_eq!(Request::decode(&bytes[..length]), None);
            }
            bytes.extend(surplus);
            prop_assert_eq!(Request::decode(&bytes), Some(request));
            prop_assert_eq!(decode_answer(encode_answer(start)), start);
        }

        #[test]
        fn any_49_bytes_are_a_request_and_encode_to_themselves(bytes in prop::array::uniform32(any::<u8>()), rest: [u8; 17]) {
            let wire = [&bytes[..], &rest[..]].concat();
            prop_assert_eq!(Request::decode(&wire).unwrap().encode().to_vec(), wire);
        }
    }

    #[test]
    fn the_recorded_request_is_read_and_written_to_the_byte() {
        let recorded = include_str!("../testdata/request.txt");
        let field = |name: &str| {
            let line = recorded.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches([':', ' '])
        };
        let wire: Vec<u8> = field("bytes")
            .split_whitespace()
            .flat_map(|word| (0..word.len()).step_by(2).map(move |i| &word[i..i + 2]))
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect();
        let number = |name| field(name).parse::<u64>().unwrap();
        let request = Request::decode(&wire).unwrap();
        assert_eq!(request.encode().as_slice(), wire);
        assert_eq!((request.start, request.end), (number("start"), number("end")));
        assert_eq!(u64::from(request.priority), number("priority"));
        assert_eq!(request.candidates(), 20_000);
        assert!(request.is_answered_by(number("answer")));
        assert!(!request.is_answered_by(number("answer") + 1));
    }
}
