//! What can go wrong, worded for the user.

use std::io;
use std::path::PathBuf;

/// Why a database cannot be opened, or a request not be answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The data file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The data file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// It is a folder, a pipe or the like.
    #[error("{} is not a regular file: its size must be known and stay as it is; copy what it has to a file", .0.display())]
    NotAFile(PathBuf),
    /// It got shorter while it was read.
    #[error("{} changed while it was read; open it again when its writer is done", .0.display())]
    Changed(PathBuf),
    /// A line is longer than is held.
    #[error("{}: the line at byte {at_byte} is longer than {limit_bytes} bytes; cut it, or look whether this is a text file", path.display())]
    LineTooLong {
        /// The data file.
        path: PathBuf,
        /// Where the line is, from the start of the file.
        at_byte: u64,
        /// The longest line that is held.
        limit_bytes: usize,
    },
    /// More lines than are numbered.
    #[error("{} has more than {} lines; divide it", path.display(), u32::MAX)]
    TooManyLines {
        /// The data file.
        path: PathBuf,
    },
    /// No memory of this size.
    #[error("cannot take {bytes} bytes of memory for the text: {reason}")]
    Memory {
        /// How much was asked for.
        bytes: usize,
        /// What the system says.
        reason: io::Error,
    },
    /// A request without the mark between types and pattern.
    #[error("no `;` in the request: write TYPES;PATTERN, as in `1,2;this man`, or `;this man` for all types")]
    NoSemicolon,
    /// A type that is no integer.
    #[error(
        "`{word}` is no type: types are integers from {} to {}, with commas between them",
        i32::MIN,
        i32::MAX
    )]
    BadType {
        /// What stands in its place.
        word: String,
    },
    /// A pattern that is refused.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The pattern was given up on some sentence.
    #[error(
        "the pattern takes more than {steps} steps on one sentence: make it simpler, or allow more steps"
    )]
    TooManySteps {
        /// The limit.
        steps: u32,
    },
    /// The pattern asks for words of Unicode, and is too large for a long sentence.
    #[error(
        "the pattern is too large for a sentence of {bytes} bytes with letters beyond ASCII: write it without `\\b` and `\\B`, or \
         make it simpler"
    )]
    TooLarge {
        /// How long the sentence is.
        bytes: usize,
    },
    /// The library that backtracks failed otherwise.
    #[error("the pattern failed on a sentence: {reason}")]
    Backtracking {
        /// What the library says.
        reason: String,
    },
}

/// Why a pattern is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is refused at character {at}: {reason}")]
pub struct PatternError {
    /// Which of its characters, from 1.
    pub at: usize,
    /// What is wrong, and what to do.
    pub reason: String,
}
