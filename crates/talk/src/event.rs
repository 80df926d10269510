//! What the users of a conversation learn, and what is refused.

use std::path::PathBuf;

use crate::protocol::{MOST_TEXT, Outcome, VERSION};

/// Messages that wait to be acknowledged, at most.
pub(crate) const MOST_WAITING: usize = 1024;

/// Files that a side has offered and that are not settled, at most.
pub const MOST_FILES: usize = 8;

/// A file of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileId {
    /// One that this side has offered, by its number.
    Own(u64),
    /// One that the peer has offered.
    Peer(u64),
}

/// What the user learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection carries the talk.
    Connected {
        /// The last of our messages that the peer's program has.
        delivered: u64,
    },
    /// The peer wrote this. Each message comes once, in order.
    Message {
        /// Its number.
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
    /// The peer's user has seen all messages up to this one.
    Read(u64),
    /// The peer is typing.
    Typing,
    /// The peer has ended the talk.
    Bye,
    /// The peer offers a file.
    Offered {
        /// Its number.
        file: u64,
        /// What the peer calls it: any text, see [`safe_name`](crate::safe_name).
        name: String,
        /// Its bytes.
        size: u64,
    },
    /// A file is offered to the peer.
    Offering {
        /// Its number.
        file: u64,
        /// Its name.
        name: String,
        /// Its bytes.
        size: u64,
    },
    /// This many bytes of a file have arrived.
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
        /// What its receiver says of it.
        outcome: Outcome,
    },
    /// A file of the peer's is whole and has this path.
    Kept {
        /// Its number.
        file: u64,
        /// Where it is.
        path: PathBuf,
    },
    /// This side cannot read or write a file, which ends it for both.
    FileFailed {
        /// The file.
        file: FileId,
        /// Why.
        why: String,
    },
    /// Bytes of a file that was taken; [`converse`](crate::converse) writes them, and reports [`Event::Progress`].
    Piece {
        /// Its number.
        file: u64,
        /// Those that follow the last ones.
        bytes: Vec<u8>,
    },
    /// All bytes of a file have come; [`converse`](crate::converse) compares their BLAKE3, and reports [`Event::Kept`].
    Sum {
        /// Its number.
        file: u64,
        /// The sender's digest.
        digest: [u8; 32],
    },
}

/// A message or a file was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Its text is too long.
    #[error("a message has at most {MOST_TEXT} bytes, this one has {0}: send it in parts, or as a file")]
    TooLong(usize),
    /// Too many wait.
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
    /// Another version.
    #[error("the peer speaks version {0} of the protocol, this program version {VERSION}")]
    Version(u8),
    /// Another talk.
    #[error("the peer's connection belongs to another talk")]
    OtherTalk,
    /// A frame before the Hello, or a second Hello.
    #[error("the peer sent a frame out of turn")]
    OutOfTurn,
    /// A message with a gap before it, or one that came before.
    #[error("the peer sent message {found} in place of {expected}")]
    Number {
        /// What it sent.
        found: u64,
        /// What had to come.
        expected: u64,
    },
    /// It acknowledges what was never sent.
    #[error("the peer acknowledges message {0}, which it was never sent")]
    NeverSent(u64),
    /// It speaks of a file that there is not, or leaves out a number.
    #[error("the peer speaks of file {0}, which was not offered")]
    NoFile(u64),
    /// It offers too many at once.
    #[error("the peer offers more than {MOST_FILES} files at once")]
    TooManyFiles,
    /// Bytes of a file that were not wanted, or a wish that makes no sense.
    #[error("the peer sends or wants bytes of file {file} from {offset} on, out of turn")]
    Piece {
        /// The file.
        file: u64,
        /// Where they begin.
        offset: u64,
    },
}
