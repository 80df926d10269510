//! The wire of sessions: a client identifies itself once, then sends requests; the answer arrives on the session of the user that
//! the request names. All numbers are little-endian.
//!
//! | | bytes |
//! | --- | --- |
//! | opening | `KHS1`, 4 bytes of 0, the user's number in 8 |
//! | its answer | the user's number in 8, 2⁶³ − 1 in 8 |
//! | request | nonce in 8, the user whose session gets the answer in 8, 8 bytes of 0 |
//! | answer | nonce in 8, the user of the request in 8 |
//!
//! After the answer to its opening, a user's session gets the answers to requests of other users for it. Users have the numbers
//! below 2⁶³ − 1. If the user named has no session, or reads its messages too slowly, the answer arrives on the requester's
//! session, with the high bit of the second number set. The answer to a rejected request arrives on the requester's session with
//! all bits of the second number set.

/// The first bytes of a session.
pub const MAGIC: [u8; 8] = *b"KHS1\0\0\0\0";
/// The length of an opening.
pub const OPENING_BYTES: usize = 16;
/// The length of a request.
pub const REQUEST_BYTES: usize = 24;
/// The length of an answer.
pub const ANSWER_BYTES: usize = 16;
/// The highest number of a user.
pub const LAST_USER: u64 = UNREACHED - 2;

/// The bit of an answer that could not be delivered to its user.
const UNREACHED: u64 = 1 << 63;
/// The second number of the answer to an opening.
const PRESENT: u64 = UNREACHED - 1;
/// The second number of the answer to a rejected request.
const REFUSED: u64 = u64::MAX;

/// The error of invalid bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are incomplete.
    Incomplete,
    /// The bytes are not of this protocol.
    Malformed,
}

/// A request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request's number, which determines its hold time.
    pub nonce: u64,
    /// The user whose session gets the answer.
    pub to: u64,
}

/// An answer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's number; in the answer to an opening, the user's.
    pub nonce: u64,
    /// The outcome of the request.
    pub fate: Fate,
}

/// The outcome of a request or an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The session is open: its user can receive answers.
    Present,
    /// The user was held.
    Held {
        /// The user of the request.
        from: u64,
    },
    /// The request was held, but the user named could not be reached.
    Unreached {
        /// The user of the request.
        from: u64,
    },
    /// The request was rejected.
    Refused,
}

/// The opening of a user's session.
pub fn encode_opening(user: u64) -> [u8; OPENING_BYTES] {
    two(u64::from_le_bytes(MAGIC), user)
}

/// The user whose session `bytes` open.
///
/// # Errors
/// Fails on fewer than 16 bytes, another beginning than [`MAGIC`], and a number beyond [`LAST_USER`].
pub fn decode_opening(bytes: &[u8]) -> Result<u64, Fault> {
    let begins = bytes.iter().zip(MAGIC).all(|(&byte, wanted)| byte == wanted);
    match (begins, number(bytes, 1)) {
        (false, _) => Err(Fault::Malformed),
        (true, None) => Err(Fault::Incomplete),
        (true, Some(user)) => known_user(user),
    }
}

/// Encodes a request.
pub fn encode_request(Request { nonce, to }: Request) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..16].copy_from_slice(&two(nonce, to));
    bytes
}

/// The request that `bytes` begin with.
///
/// # Errors
/// Fails on fewer than 24 bytes, a user beyond [`LAST_USER`], and where the last 8 bytes are not 0.
pub fn decode_request(bytes: &[u8]) -> Result<Request, Fault> {
    let (Some(nonce), Some(to), Some(rest)) = (number(bytes, 0), number(bytes, 1), number(bytes, 2)) else {
        return Err(Fault::Incomplete);
    };
    if rest != 0 {
        return Err(Fault::Malformed);
    }
    Ok(Request { nonce, to: known_user(to)? })
}

/// Encodes an answer.
pub fn encode_answer(Answer { nonce, fate }: Answer) -> [u8; ANSWER_BYTES] {
    let from = match fate {
        Fate::Present => PRESENT,
        Fate::Held { from } => from,
        Fate::Unreached { from } => from | UNREACHED,
        Fate::Refused => REFUSED,
    };
    two(nonce, from)
}

/// The answer of these bytes.
pub fn decode_answer(bytes: [u8; ANSWER_BYTES]) -> Answer {
    let [nonce, from] = [0, 1].map(|place| number(&bytes, place).expect("these are two numbers"));
    let fate = match from {
        PRESENT => Fate::Present,
        REFUSED => Fate::Refused,
        from if from & UNREACHED != 0 => Fate::Unreached { from: from & !UNREACHED },
        from => Fate::Held { from },
    };
    Answer { nonce, fate }
}

fn known_user(user: u64) -> Result<u64, Fault> {
    if user <= LAST_USER { Ok(user) } else { Err(Fault::Malformed) }
}

/// The number at an index.
fn number(bytes: &[u8], place: usize) -> Option<u64> {
    bytes.get(8 * place..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn two(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(nonce: u64, from in 0..=LAST_USER, to in 0..=LAST_USER, surplus: Vec<u8>) {
            let mut opening = encode_opening(from).to_vec();
            let mut request = encode_request(Request { nonce, to }).to_vec();
            for length in 0..OPENING_BYTES {
                prop_assert_eq!(decode_opening(&opening[..length]), Err(Fault::Incomplete));
            }
            for length in 0..REQUEST_BYTES {
                prop_assert_eq!(decode_request(&request[..length]), Err(Fault::Incomplete));
            }
            opening.extend(&surplus);
            request.extend(&surplus);
            prop_assert_eq!(decode_opening(&opening), Ok(from));
            prop_assert_eq!(decode_request(&request), Ok(Request { nonce, to }));
            for fate in [Fate::Present, Fate::Held { from }, Fate::Unreached { from }, Fate::Refused] {
                let answer = Answer { nonce, fate };
                prop_assert_eq!(decode_answer(encode_answer(answer)), answer);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = (decode_opening(&bytes), decode_request(&bytes));
        }
    }

    #[test]
    fn the_bytes_are_these() {
        assert_eq!(encode_opening(0x0102), *b"KHS1\0\0\0\0\x02\x01\0\0\0\0\0\0");
        let request = encode_request(Request { nonce: 3, to: 0x0405 });
        assert_eq!(request, *b"\x03\0\0\0\0\0\0\0\x05\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        let unreached = encode_answer(Answer { nonce: 3, fate: Fate::Unreached { from: 7 } });
        assert_eq!(unreached, *b"\x03\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x80");
        let present = encode_answer(Answer { nonce: 7, fate: Fate::Present });
        assert_eq!(present, *b"\x07\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f");
        assert_eq!(decode_opening(b"KHS2"), Err(Fault::Malformed));
        assert_eq!(decode_opening(&encode_opening(LAST_USER + 1)), Err(Fault::Malformed));
        let mut reserved = request;
        reserved[23] = 1;
        assert_eq!(decode_request(&reserved), Err(Fault::Malformed));
    }
}
