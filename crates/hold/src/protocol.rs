//! The wire: a request is its nonce in 8 bytes, an answer the same 8 bytes. All numbers are big-endian.
//!
//! A connection carries one request after the other. The nonce 0 is not a request; as an answer it means that the server
//! was full and rejected the request.

pub mod session;

/// The length of a request.
pub const REQUEST_BYTES: usize = 8;
/// The length of an answer.
pub const ANSWER_BYTES: usize = 8;
/// The answer to a rejected request.
pub const REFUSED: [u8; ANSWER_BYTES] = [0; ANSWER_BYTES];

/// The error of bytes that are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRequest {
    /// The bytes are incomplete.
    Incomplete,
    /// The nonce is 0.
    Zero,
}

/// The meaning of an answer to a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request was held for its time.
    Held,
    /// The server rejected the request.
    Refused,
    /// The answer belongs to no request, or to another one.
    Wrong,
}

/// Encodes a request. A nonce is not 0.
pub fn encode_request(nonce: u64) -> [u8; REQUEST_BYTES] {
    nonce.to_be_bytes()
}

/// The nonce of the request that `bytes` begin with.
///
/// # Errors
/// Fails on fewer than 8 bytes, or the nonce 0.
pub fn decode_request(bytes: &[u8]) -> Result<u64, NoRequest> {
    match bytes.first_chunk() {
        None => Err(NoRequest::Incomplete),
        Some(bytes) => match u64::from_be_bytes(*bytes) {
            0 => Err(NoRequest::Zero),
            nonce => Ok(nonce),
        },
    }
}

/// The answer to a request that was held.
pub fn encode_answer(nonce: u64) -> [u8; ANSWER_BYTES] {
    nonce.to_be_bytes()
}

/// The meaning of an answer to this nonce.
pub fn decode_answer(bytes: [u8; ANSWER_BYTES], nonce: u64) -> Answer {
    match bytes {
        REFUSED => Answer::Refused,
        _ if u64::from_be_bytes(bytes) == nonce => Answer::Held,
        _ => Answer::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(nonce in 1u64.., other in 1u64.., surplus: Vec<u8>) {
            let mut bytes = encode_request(nonce).to_vec();
            for length in 0..REQUEST_BYTES {
                prop_assert_eq!(decode_request(&bytes[..length]), Err(NoRequest::Incomplete));
            }
            bytes.extend(surplus);
            prop_assert_eq!(decode_request(&bytes), Ok(nonce));
            prop_assert_eq!(decode_answer(encode_answer(nonce), nonce), Answer::Held);
            prop_assert_eq!(decode_answer(encode_answer(nonce), other) == Answer::Held, nonce == other);
            prop_assert_eq!(decode_answer(REFUSED, nonce), Answer::Refused);
        }
    }

    #[test]
    fn the_bytes_are_these() {
        assert_eq!(encode_request(0x0102_0304_0506_0708), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(decode_request(&[0; 8]), Err(NoRequest::Zero));
    }
}
