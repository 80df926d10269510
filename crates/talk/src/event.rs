//! Events that users of a conversation receive, and errors of their commands.

use std::path::PathBuf;

use crate::protocol::{MOST_TEXT, Outcome, VERSION};

/// Messages that wait to be acknowledged, at most.
pub(crate) const MOST_WAITING: usize = 1024;

/// Files that a side has offered and that are not settled, at most.
pub const MOST_FILES: usize = 8;

/// A file of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileId {
    /// A file that this side has offered, by its number.
    Own(u64),
    /// A file that the peer has offered, by its number.
    Peer(u64),
}

/// An event that a user of a conversation receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection carries the talk.
    Connected {
        /// The last of our messages that the peer's program has.
        delivered: u64,
    },
    /// The peer wrote this. Each message comes once, in order.
    Message {
        /// The number of the message.
        number: u64,
        /// Unix time in milliseconds, by the peer's clock.
        sent_ms: u64,
        /// The text.
        text: String,
    },
    /// A message was taken and has this number.
    Queued(u64),
    /// The peer's program has all messages up to this one.
    Delivered(u64),
    /// The peer's user has read all messages up to this one.
    Read(u64),
    /// The peer is typing.
    Typing,
    /// The peer has ended the talk.
    Bye,
    /// The peer offers a file.
    Offered {
        /// The number of the file.
        file: u64,
        /// The name that the peer gave the file: any text, see [`safe_name`](crate::safe_name).
        name: String,
        /// The size of the file in bytes.
        size: u64,
    },
    /// A file is offered to the peer.
    Offering {
        /// The number of the file.
        file: u64,
        /// The name of the file.
        name: String,
        /// The size of the file in bytes.
        size: u64,
    },
    /// More bytes of a file have arrived.
    Progress {
        /// The file.
        file: FileId,
        /// The bytes, from the first on.
        bytes: u64,
    },
    /// One side is done with a file.
    Settled {
        /// The file.
        file: FileId,
        /// The outcome that the receiver reports.
        outcome: Outcome,
    },
    /// A file of the peer's is whole and has this path.
    Kept {
        /// The number of the file.
        file: u64,
        /// The path of the file.
        path: PathBuf,
    },
    /// This side cannot read or write a file, which ends it for both.
    FileFailed {
        /// The file.
        file: FileId,
        /// The reason.
        why: String,
    },
    /// Bytes of a file that was taken; [`converse`](crate::converse) writes them, and reports [`Event::Progress`].
    Piece {
        /// The number of the file.
        file: u64,
        /// The bytes that follow the last ones.
        bytes: Vec<u8>,
    },
    /// All bytes of a file have come; [`converse`](crate::converse) compares their BLAKE3, and reports [`Event::Kept`].
    Sum {
        /// The number of the file.
        file: u64,
        /// The sender's digest.
        digest: [u8; 32],
    },
}

/// A message or a file was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The text of the message is too long.
    #[error("a message has at most {MOST_TEXT} bytes, this one has {0}: send it in parts, or as a file")]
    TooLong(usize),
    /// Too many messages wait for the peer.
    #[error("{MOST_WAITING} messages wait for the peer to come back: try again when some are delivered")]
    Full,
    /// The talk is over.
    #[error("the talk is over")]
    Over,
    /// Too many files are open.
    #[error("{MOST_FILES} files are offered or on their way: try again when one is done")]
    TooManyFiles,
}

/// The peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The peer speaks another version of the protocol.
    #[error(
        "the peer speaks version {0} of the protocol, and this program version {VERSION}; update the older one"
    )]
    Version(u8),
    /// The peer's connection belongs to another talk.
    #[error("the peer's connection belongs to another talk")]
    OtherTalk,
    /// A frame before the Hello, or a second Hello.
    #[error("the peer sent a frame out of turn")]
    OutOfTurn,
    /// A message with a gap before it, or one that came before.
    #[error("the peer sent message {found} in place of {expected}")]
    Number {
        /// The number that the peer sent.
        found: u64,
        /// The number that was expected.
        expected: u64,
    },
    /// The peer acknowledges a message that it was never sent.
    #[error("the peer acknowledged message {0}, which was never sent to it")]
    NeverSent(u64),
    /// The peer names a file that was not offered, or leaves out a number.
    #[error("the peer named file {0}, which was not offered")]
    NoFile(u64),
    /// The peer offers too many files at once.
    #[error("the peer offered more than {MOST_FILES} files at once")]
    TooManyFiles,
    /// Bytes of a file that were not wanted, or a wish that makes no sense.
    #[error("the peer sent or requested bytes of file {file} from {offset} on, out of turn")]
    Piece {
        /// The file.
        file: u64,
        /// The offset of the bytes.
        offset: u64,
    },
}
