//! The errors of text search, with messages for the user.

use std::io;
use std::path::PathBuf;

/// The reason why a database cannot be opened, or a request not be answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The data file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The data file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The data file is a folder, a pipe or the like.
    #[error("{} is not a regular file: its size must be known and constant; copy its contents to a file", .0.display())]
    NotAFile(PathBuf),
    /// The data file got shorter while it was read.
    #[error("{} changed while it was read; open it again when its writer is done", .0.display())]
    Changed(PathBuf),
    /// A line is longer than the limit.
    #[error("{}: the line at byte {at_byte} is longer than {limit_bytes} bytes; shorten it, or check that this is a text file", path.display())]
    LineTooLong {
        /// The data file.
        path: PathBuf,
        /// Where the line is, from the start of the file.
        at_byte: u64,
        /// The longest line that is accepted.
        limit_bytes: usize,
    },
    /// The file has more lines than can be numbered.
    #[error("{} has more than {} lines; divide it", path.display(), u32::MAX)]
    TooManyLines {
        /// The data file.
        path: PathBuf,
    },
    /// The reader no longer wants the database.
    #[error("reading the data was stopped because the server ends")]
    Stopped,
    /// The system has no memory of this size.
    #[error("cannot take {bytes} bytes of memory for the text: {reason}")]
    Memory {
        /// The requested size.
        bytes: usize,
        /// The system's message.
        reason: io::Error,
    },
    /// The request lacks the semicolon between types and pattern.
    #[error("no `;` in the request: write TYPES;PATTERN, as in `1,2;this man`, or `;this man` for all types")]
    NoSemicolon,
    /// A type is not an integer.
    #[error(
        "`{word}` is not a type: types are integers from {} to {}, with commas between them",
        i32::MIN,
        i32::MAX
    )]
    BadType {
        /// The text in its place.
        word: String,
    },
    /// A pattern that is rejected.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The search gave up on a sentence.
    #[error(
        "the pattern takes more than {steps} steps on one sentence: make it simpler, or allow more steps"
    )]
    TooManySteps {
        /// The limit.
        steps: u32,
    },
    /// The pattern uses Unicode words, and is too large for a long sentence.
    #[error(
        "the pattern is too large for a sentence of {bytes} bytes with letters beyond ASCII: write it without `\\b` and `\\B`, or \
         make it simpler"
    )]
    TooLarge {
        /// The length of the sentence.
        bytes: usize,
    },
    /// The backtracking library failed for another reason.
    #[error("the pattern failed on a sentence: {reason}")]
    Backtracking {
        /// The library's message.
        reason: String,
    },
}

/// The reason why a pattern is rejected, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is rejected at character {at}: {reason}")]
pub struct PatternError {
    /// The number of the character, from 1.
    pub at: usize,
    /// The error, and how to fix it.
    pub reason: String,
}
