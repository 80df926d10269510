//! The wire between a client and the directory server. Pure functions on byte slices; all numbers are big-endian.
//!
//! A connection begins with a greeting of 8 bytes in each direction: `KCHAT`, the version, two bytes of 0. A server that does
//! not speak the client's version answers with its own and closes. Frames follow:
//!
//! | bytes | |
//! | ---: | --- |
//! | 2 | how many bytes follow |
//! | 1 | the kind |
//! | 4 | in a request its number, which the answer repeats; 0 in a message that no request asked for |
//! | … | the fields of the kind, one after the other |
//!
//! A text is its length in one byte and its UTF-8; a list is its length in one byte and its elements; an address is 4 or 6,
//! the address of IPv4 or IPv6, and the port. Everything has a bound, and no byte follows the last field.

mod field;
mod message;
mod reply;
mod request;

pub use field::{Addresses, ClearPassword, Names, Secret};
pub use reply::{Answer, Blame, DirectoryMessage, EndOfCall, EndOfSession, Presence, Push, Reachable};
pub use request::{Contact, Request};

/// The version of this protocol.
pub const VERSION: u8 = 1;
/// The length of a greeting.
pub const GREETING_BYTES: usize = 8;
/// The most bytes of a frame that a client sends, its length included.
pub const REQUEST_BYTES: usize = 512;
/// The most bytes of a frame that the server sends, its length included.
pub const ANSWER_BYTES: usize = 8 * 1024;

const MAGIC: &[u8; 5] = b"KCHAT";
/// The length, the kind and the number.
const HEAD_BYTES: usize = 7;
const LENGTH_BYTES: usize = 2;

/// A fault in the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More bytes are to come.
    Incomplete,
    /// The bytes are not of this protocol.
    Malformed,
}

/// A message and the number of the request that it is or answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<T> {
    /// The number of the request; 0 for a message without a request.
    pub number: u32,
    /// The message.
    pub message: T,
}

/// A greeting of this version.
pub fn encode_greeting(version: u8) -> [u8; GREETING_BYTES] {
    let [k, c, h, a, t] = *MAGIC;
    [k, c, h, a, t, version, 0, 0]
}

/// The version of the greeting that `bytes` begin with.
///
/// # Errors
/// Fails on fewer than 8 bytes, and on bytes that no greeting has.
pub fn decode_greeting(bytes: &[u8]) -> Result<u8, Fault> {
    if bytes.iter().zip(MAGIC).any(|(byte, wanted)| byte != wanted) {
        return Err(Fault::Malformed);
    }
    match bytes.first_chunk() {
        None => Err(Fault::Incomplete),
        Some([_, _, _, _, _, version, 0, 0]) if *version > 0 => Ok(*version),
        Some(_) => Err(Fault::Malformed),
    }
}

/// Appends the encoding of a request.
pub fn encode_request(Frame { number, message }: &Frame<Request>, bytes: &mut Vec<u8>) {
    frame(*number, message.kind(), bytes, |bytes| message.put(bytes));
}

/// The request that `bytes` begin with, and its length.
///
/// # Errors
/// Fails on a part of a request, on one longer than [`REQUEST_BYTES`], and on one that breaks the rules.
pub fn decode_request(bytes: &[u8]) -> Result<(Frame<Request>, usize), Fault> {
    unframe(bytes, REQUEST_BYTES, Request::take)
}

/// Appends the encoding of a message of the server.
pub fn encode_said(Frame { number, message }: &Frame<DirectoryMessage>, bytes: &mut Vec<u8>) {
    match message {
        DirectoryMessage::Answer(answer) => frame(*number, answer.kind(), bytes, |bytes| answer.put(bytes)),
        DirectoryMessage::Push(push) => frame(*number, push.kind(), bytes, |bytes| push.put(bytes)),
    }
}

/// Decodes the server's message at the beginning of `bytes`, and returns its length as well.
///
/// # Errors
/// Fails on a part of a message, on one longer than [`ANSWER_BYTES`], and on one that breaks the rules.
pub fn decode_said(bytes: &[u8]) -> Result<(Frame<DirectoryMessage>, usize), Fault> {
    unframe(bytes, ANSWER_BYTES, |kind, fields| {
        if kind < reply::FIRST_PUSH {
            Answer::take(kind, fields).map(DirectoryMessage::Answer)
        } else {
            Push::take(kind, fields).map(DirectoryMessage::Push)
        }
    })
}

fn frame(number: u32, kind: u8, bytes: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend([0; LENGTH_BYTES]);
    bytes.push(kind);
    bytes.extend(number.to_be_bytes());
    put(bytes);
    let length = bytes.len() - start - LENGTH_BYTES;
    let length =
        u16::try_from(length).expect("every field has a bound, and all of a message are below 8 KiB");
    bytes[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

fn unframe<T>(
    bytes: &[u8],
    most_bytes: usize,
    take: impl FnOnce(u8, &mut &[u8]) -> Option<T>,
) -> Result<(Frame<T>, usize), Fault> {
    let Some(length) = bytes.first_chunk() else { return Err(Fault::Incomplete) };
    let total = LENGTH_BYTES + usize::from(u16::from_be_bytes(*length));
    if !(HEAD_BYTES..=most_bytes).contains(&total) {
        return Err(Fault::Malformed);
    }
    let Some(body) = bytes.get(LENGTH_BYTES..total) else { return Err(Fault::Incomplete) };
    let [kind, a, b, c, d, ref fields @ ..] = *body else { return Err(Fault::Malformed) };
    let mut fields = fields;
    match take(kind, &mut fields) {
        Some(message) if fields.is_empty() => {
            Ok((Frame { number: u32::from_be_bytes([a, b, c, d]), message }, total))
        }
        Some(_) | None => Err(Fault::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Draws bytes from a list, and zeros when it is used up.
    fn drawing(bytes: Vec<u8>) -> impl FnMut() -> u8 {
        let mut bytes = bytes.into_iter();
        move || bytes.next().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(number: u32, kind: u8, drawn: Vec<u8>, surplus: Vec<u8>) {
            let mut draw = drawing(drawn);
            if let Some(message) = Request::draw(kind, &mut draw) {
                let mut bytes = Vec::new();
                let frame = Frame { number, message };
                encode_request(&frame, &mut bytes);
                let length = bytes.len();
                for part in 0..length {
                    prop_assert_eq!(decode_request(&bytes[..part]), Err(Fault::Incomplete));
                }
                bytes.extend(&surplus);
                prop_assert_eq!(decode_request(&bytes), Ok((frame, length)));
            }
            let said = if kind < reply::FIRST_PUSH {
                Answer::draw(kind, &mut draw).map(DirectoryMessage::Answer)
            } else {
                Push::draw(kind, &mut draw).map(DirectoryMessage::Push)
            };
            if let Some(message) = said {
                let mut bytes = Vec::new();
                let frame = Frame { number, message };
                encode_said(&frame, &mut bytes);
                let length = bytes.len();
                bytes.extend(&surplus);
                prop_assert_eq!(decode_said(&bytes), Ok((frame, length)));
            }
        }

        #[test]
        fn greetings_come_back(version in 1u8.., surplus: Vec<u8>) {
            let mut bytes = encode_greeting(version).to_vec();
            for part in 0..GREETING_BYTES {
                prop_assert_eq!(decode_greeting(&bytes[..part]), Err(Fault::Incomplete));
            }
            bytes.extend(surplus);
            prop_assert_eq!(decode_greeting(&bytes), Ok(version));
        }
    }

    #[test]
    fn every_kind_is_drawn() {
        let mut draw = || 1;
        let kinds = |drawn: &mut dyn FnMut(u8) -> bool| (0..=255).filter(|&kind| drawn(kind)).count();
        assert_eq!(kinds(&mut |kind| Request::draw(kind, &mut draw).is_some()), Request::KINDS);
        assert_eq!(kinds(&mut |kind| Answer::draw(kind, &mut || 1).is_some()), Answer::KINDS);
        assert_eq!(kinds(&mut |kind| Push::draw(kind, &mut || 1).is_some()), Push::KINDS);
    }

    #[test]
    fn the_bytes_are_these() {
        assert_eq!(encode_greeting(VERSION), *b"KCHAT\x01\0\0");
        for wrong in [&b"KCHAT\0\0\0"[..], b"KCHAT\x01\0\x01", b"HTTP"] {
            assert_eq!(decode_greeting(wrong), Err(Fault::Malformed));
        }
        let mut bytes = Vec::new();
        encode_request(&Frame { number: 0x0102, message: Request::Watch { name: "bob".into() } }, &mut bytes);
        assert_eq!(bytes, *b"\0\x09\x09\0\0\x01\x02\x03bob");
        let contact = Contact {
            key: [7; 32],
            transport: kendall_talk::PeerTransport::Quic,
            addresses: Addresses::new(vec!["1.2.3.4:5".parse().unwrap()]),
        };
        bytes.clear();
        encode_request(&Frame { number: 1, message: Request::Accept { call: 9, contact } }, &mut bytes);
        let expected =
            [&b"\0\x36\x0e\0\0\0\x01\0\0\0\0\0\0\0\x09"[..], &[7; 32], b"\x01\x01\x04\x01\x02\x03\x04\0\x05"];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn frames_beyond_the_bounds_are_malformed_at_once() {
        assert_eq!(decode_request(&[2, 0]), Err(Fault::Malformed), "512 bytes and the length");
        assert_eq!(decode_request(&[1, 254]), Err(Fault::Incomplete));
        assert_eq!(decode_request(&[0, 4]), Err(Fault::Malformed), "no kind and number");
        assert_eq!(decode_request(&[0, 5, 0, 0, 0, 0, 0]), Err(Fault::Malformed), "kind 0");
        let too_much = [0, 10, 9, 0, 0, 1, 2, 3, b'b', b'o', b'b', 0];
        assert_eq!(decode_request(&too_much), Err(Fault::Malformed), "a byte after the last field");
        assert_eq!(decode_said(&[0x20, 0]), Err(Fault::Malformed), "8 KiB and the length");
    }
}
