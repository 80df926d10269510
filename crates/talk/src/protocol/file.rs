//! The frames of files: a number of eight bytes, then the fields.
//!
//! | kind | frame | from | fields |
//! | ---: | --- | --- | --- |
//! | 7 | [`FileFrame::Offer`] | sender | size (8), name in UTF-8 (the rest) |
//! | 8 | [`FileFrame::Want`] | receiver | from (8), through (8) |
//! | 9 | [`FileFrame::Piece`] | sender | offset (8), bytes (the rest) |
//! | 10 | [`FileFrame::Sum`] | sender | BLAKE3 (32) |
//! | 11 | [`FileFrame::Withdraw`] | sender | none |
//! | 12 | [`FileFrame::Settle`] | receiver | outcome (1) |
//!
//! Each side numbers the files that it offers, from 1 on without gaps. Messages go first: a sender puts a piece on the stream
//! where nothing else waits.

use super::Malformed;

/// The longest name of a file, in bytes.
pub const MOST_NAME: usize = 255;

/// The most bytes of a piece.
pub const MOST_PIECE: usize = 32 << 10;

/// A frame about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFrame {
    /// The sender has this file. It repeats the offer on each connection until the receiver has settled it.
    Offer {
        /// The size of the file in bytes.
        size: u64,
        /// The name that the sender gives the file; at most [`MOST_NAME`] bytes.
        name: String,
    },
    /// The receiver takes the file. The first such frame on a connection gives the position of its first byte, later ones
    /// allow more.
    Want {
        /// How many bytes the receiver has.
        from: u64,
        /// Up to where the sender may send.
        through: u64,
    },
    /// Bytes of the file, in order.
    Piece {
        /// The offset of the bytes.
        offset: u64,
        /// At least one, at most [`MOST_PIECE`].
        bytes: Vec<u8>,
    },
    /// All bytes were sent; this is their BLAKE3 hash.
    Sum([u8; 32]),
    /// The sender takes its offer back.
    Withdraw,
    /// The receiver is done with the file.
    Settle(Outcome),
}

/// The outcome of a file at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is complete, and its bytes are those that were sent.
    Whole,
    /// The receiver declines the file, or withdraws from it.
    Refused,
    /// The receiver cannot write it, or its bytes are not those that were sent.
    Failed,
    /// The sender took it back.
    Withdrawn,
}

/// The kinds of frames of files.
pub(super) const KINDS: std::ops::RangeInclusive<u8> = 7..=12;

impl FileFrame {
    /// Appends the kind, the number of the file, and the fields.
    pub(super) fn encode(&self, file: u64, into: &mut Vec<u8>) {
        let mut head = |kind: u8| {
            into.push(kind);
            into.extend(file.to_be_bytes());
        };
        match self {
            Self::Offer { size, name } => {
                assert!(name.len() <= MOST_NAME, "the name is too long");
                head(7);
                into.extend(size.to_be_bytes());
                into.extend(name.as_bytes());
            }
            Self::Want { from, through } => {
                head(8);
                into.extend(from.to_be_bytes());
                into.extend(through.to_be_bytes());
            }
            Self::Piece { offset, bytes } => {
                assert!((1..=MOST_PIECE).contains(&bytes.len()), "the piece has the wrong length");
                head(9);
                into.extend(offset.to_be_bytes());
                into.extend(bytes);
            }
            Self::Sum(digest) => {
                head(10);
                into.extend(digest);
            }
            Self::Withdraw => head(11),
            Self::Settle(outcome) => {
                head(12);
                into.push(*outcome as u8);
            }
        }
    }

    /// The number of the file and what is said of it.
    pub(super) fn decode(kind: u8, fields: &[u8]) -> Result<(u64, Self), Malformed> {
        let wrong = || Malformed::Fields { kind, bytes: fields.len() };
        let (file, rest) = integer(fields).ok_or_else(wrong)?;
        let frame = match kind {
            7 => {
                let (size, name) =
                    integer(rest).filter(|(_, name)| name.len() <= MOST_NAME).ok_or_else(wrong)?;
                let name = std::str::from_utf8(name).map_err(|_| Malformed::Text)?.to_owned();
                Self::Offer { size, name }
            }
            8 => {
                let (from, rest) = integer(rest).ok_or_else(wrong)?;
                let (through, rest) = integer(rest).ok_or_else(wrong)?;
                rest.is_empty().then_some(Self::Want { from, through }).ok_or_else(wrong)?
            }
            9 => {
                let (offset, bytes) = integer(rest).ok_or_else(wrong)?;
                let is_piece = (1..=MOST_PIECE).contains(&bytes.len());
                is_piece.then(|| Self::Piece { offset, bytes: bytes.to_vec() }).ok_or_else(wrong)?
            }
            10 => Self::Sum(rest.try_into().map_err(|_| wrong())?),
            11 => rest.is_empty().then_some(Self::Withdraw).ok_or_else(wrong)?,
            12 => match rest {
                [0] => Self::Settle(Outcome::Whole),
                [1] => Self::Settle(Outcome::Refused),
                [2] => Self::Settle(Outcome::Failed),
                [3] => Self::Settle(Outcome::Withdrawn),
                _ => return Err(wrong()),
            },
            _ => return Err(Malformed::Kind(kind)),
        };
        Ok((file, frame))
    }
}

/// The integer at the beginning, and what follows it.
fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk().map(|(integer, rest)| (u64::from_be_bytes(*integer), rest))
}
