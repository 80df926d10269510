//! The frames of a conversation: a length of four bytes, the kind, then the fields. All integers are big-endian.
//!
//! | kind | frame | fields |
//! | ---: | --- | --- |
//! | 1 | [`Frame::Hello`] | version (1 byte), the talk's name (16), messages received so far (8) |
//! | 2 | [`Frame::Message`] | number (8), Unix time in ms by the sender's clock (8), text in UTF-8 (the rest) |
//! | 3 | [`Frame::Received`] | the last message that arrived (8) |
//! | 4 | [`Frame::Read`] | the last message that was read (8) |
//! | 5 | [`Frame::Typing`] | none |
//! | 6 | [`Frame::Bye`] | none |
//! | 7–12 | [`Frame::File`] | those of [`FileFrame`] |

mod file;

pub use file::{FileFrame, MOST_NAME, MOST_PIECE, Outcome};

/// The version of this protocol, which each side's first frame names.
pub const VERSION: u8 = 2;

/// The longest text of a message, in bytes.
pub const MOST_TEXT: usize = 64 << 10;

/// Bytes of the length in front of a frame.
const PREFIX: usize = 4;

/// The longest frame after its length: a message.
const MOST_FRAME: usize = 1 + 8 + 8 + MOST_TEXT;

/// The name of a talk, drawn by the peer that called. Both know it from the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TalkId(pub [u8; 16]);

/// A frame that one peer sends to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first frame on every connection, from both sides.
    Hello {
        /// The protocol version of the sender.
        version: u8,
        /// The talk that this connection belongs to.
        talk: TalkId,
        /// The last message that the sender has received in it; 0 before the first.
        received: u64,
    },
    /// A message. Numbers begin at 1 and have no gaps.
    Message {
        /// The number of the message.
        number: u64,
        /// The time of the message, as Unix time in milliseconds by the sender's clock.
        sent_ms: u64,
        /// The text; at most [`MOST_TEXT`] bytes.
        text: String,
    },
    /// The sender has received all messages up to this one.
    Received(u64),
    /// The user has read all messages up to this one.
    Read(u64),
    /// The user is typing.
    Typing,
    /// The talk is over.
    Bye,
    /// A frame about a file.
    File {
        /// The file's number.
        file: u64,
        /// The frame about the file.
        frame: FileFrame,
    },
}

/// Bytes that are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length cannot be that of a frame.
    #[error("a frame has {0} bytes; it must have 1 to {MOST_FRAME}")]
    Length(usize),
    /// The kind is not one of this version.
    #[error("a frame has the unknown kind {0}")]
    Kind(u8),
    /// The fields are too short or too long for the kind.
    #[error("a frame of kind {kind} cannot have {bytes} bytes of fields")]
    Fields {
        /// The kind.
        kind: u8,
        /// The bytes after it.
        bytes: usize,
    },
    /// The text is not UTF-8.
    #[error("a message or the name of a file is not UTF-8")]
    Text,
}

impl Frame {
    /// Appends the frame.
    ///
    /// # Panics
    /// If a text is longer than [`MOST_TEXT`], a name than [`MOST_NAME`], or a piece has no byte or more than [`MOST_PIECE`].
    pub fn encode(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend([0; PREFIX]);
        match self {
            Self::Hello { version, talk, received } => {
                into.extend([1, *version]);
                into.extend(talk.0);
                into.extend(received.to_be_bytes());
            }
            Self::Message { number, sent_ms, text } => {
                assert!(text.len() <= MOST_TEXT, "the text is too long");
                into.push(2);
                into.extend(number.to_be_bytes());
                into.extend(sent_ms.to_be_bytes());
                into.extend(text.as_bytes());
            }
            Self::Received(number) => {
                into.push(3);
                into.extend(number.to_be_bytes());
            }
            Self::Read(number) => {
                into.push(4);
                into.extend(number.to_be_bytes());
            }
            Self::Typing => into.push(5),
            Self::Bye => into.push(6),
            Self::File { file, frame } => frame.encode(*file, into),
        }
        let length = (into.len() - start - PREFIX) as u32;
        into[start..start + PREFIX].copy_from_slice(&length.to_be_bytes());
    }

    /// The first frame of the bytes and how many it takes, or nothing while it is incomplete.
    ///
    /// # Errors
    /// Says what is wrong with the bytes, as soon as it can be seen.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((length, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(1..=MOST_FRAME).contains(&length) {
            return Err(Malformed::Length(length));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        Ok(Some((Self::from_fields(frame[0], &frame[1..])?, PREFIX + length)))
    }

    fn from_fields(kind: u8, fields: &[u8]) -> Result<Self, Malformed> {
        let wrong = || Malformed::Fields { kind, bytes: fields.len() };
        let number = || fields.try_into().map(u64::from_be_bytes).map_err(|_| wrong());
        match kind {
            1 => {
                let (version, rest) = fields.split_first().ok_or_else(wrong)?;
                let (talk, received) = rest.split_first_chunk().ok_or_else(wrong)?;
                let received = received.try_into().map_err(|_| wrong())?;
                Ok(Self::Hello {
                    version: *version,
                    talk: TalkId(*talk),
                    received: u64::from_be_bytes(received),
                })
            }
            2 => {
                let (number, rest) = fields.split_first_chunk().ok_or_else(wrong)?;
                let (sent_ms, text) = rest.split_first_chunk().ok_or_else(wrong)?;
                Ok(Self::Message {
                    number: u64::from_be_bytes(*number),
                    sent_ms: u64::from_be_bytes(*sent_ms),
                    text: std::str::from_utf8(text).map_err(|_| Malformed::Text)?.to_owned(),
                })
            }
            3 => number().map(Self::Received),
            4 => number().map(Self::Read),
            5 | 6 if !fields.is_empty() => Err(wrong()),
            5 => Ok(Self::Typing),
            6 => Ok(Self::Bye),
            _ if file::KINDS.contains(&kind) => {
                FileFrame::decode(kind, fields).map(|(file, frame)| Self::File { file, frame })
            }
            _ => Err(Malformed::Kind(kind)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn frames() -> impl Strategy<Value = Frame> {
        prop_oneof![
            (any::<u8>(), any::<[u8; 16]>(), any::<u64>())
                .prop_map(|(version, talk, received)| Frame::Hello { version, talk: TalkId(talk), received }),
            (any::<u64>(), any::<u64>(), ".{0,40}").prop_map(|(number, sent_ms, text)| Frame::Message {
                number,
                sent_ms,
                text
            }),
            any::<u64>().prop_map(Frame::Received),
            any::<u64>().prop_map(Frame::Read),
            Just(Frame::Typing),
            Just(Frame::Bye),
            (1_u64..6, file_frames()).prop_map(|(file, frame)| Frame::File { file, frame }),
        ]
    }

    fn file_frames() -> impl Strategy<Value = FileFrame> {
        let outcome = prop_oneof![
            Just(Outcome::Whole),
            Just(Outcome::Refused),
            Just(Outcome::Failed),
            Just(Outcome::Withdrawn)
        ];
        prop_oneof![
            (0_u64..300, ".{0,40}").prop_map(|(size, name)| FileFrame::Offer { size, name }),
            (0_u64..300, 0_u64..300).prop_map(|(from, through)| FileFrame::Want { from, through }),
            (0_u64..300, proptest::collection::vec(any::<u8>(), 1..40))
                .prop_map(|(offset, bytes)| FileFrame::Piece { offset, bytes }),
            any::<[u8; 32]>().prop_map(FileFrame::Sum),
            Just(FileFrame::Withdraw),
            outcome.prop_map(FileFrame::Settle),
        ]
    }

    proptest! {
        #[test]
        fn frames_are_decoded_as_they_were_encoded(frame in frames(), rest: Vec<u8>) {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            let length = bytes.len();
            for part in 0..length {
                prop_assert_eq!(Frame::decode(&bytes[..part]), Ok(None));
            }
            bytes.extend(rest);
            prop_assert_eq!(Frame::decode(&bytes), Ok(Some((frame, length))));
        }

        #[test]
        fn whatever_is_decoded_is_encoded_to_the_same_bytes(bytes: Vec<u8>, length in 0_u32..40) {
            let bytes = [&length.to_be_bytes()[..], &bytes].concat();
            if let Ok(Some((frame, taken))) = Frame::decode(&bytes) {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert_eq!(&again, &bytes[..taken]);
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error_at_once() {
        let decode = |length: u32, bytes: &[u8]| Frame::decode(&[&length.to_be_bytes()[..], bytes].concat());
        assert_eq!(decode(0, &[]), Err(Malformed::Length(0)));
        assert_eq!(decode(u32::MAX, &[]), Err(Malformed::Length(u32::MAX as usize)));
        assert_eq!(decode(1, &[13]), Err(Malformed::Kind(13)));
        assert_eq!(
            decode(10, &[12, 0, 0, 0, 0, 0, 0, 0, 1, 4]),
            Err(Malformed::Fields { kind: 12, bytes: 9 })
        );
        assert_eq!(decode(17, &[&[9][..], &[0; 16]].concat()), Err(Malformed::Fields { kind: 9, bytes: 16 }));
        assert_eq!(decode(2, &[6, 0]), Err(Malformed::Fields { kind: 6, bytes: 1 }));
        assert_eq!(decode(18, &[&[2; 17][..], &[0xff]].concat()), Err(Malformed::Text));
        let mut longest = Vec::new();
        Frame::Message { number: 1, sent_ms: 2, text: "x".repeat(MOST_TEXT) }.encode(&mut longest);
        assert!(matches!(Frame::decode(&longest), Ok(Some(_))));
    }
}
