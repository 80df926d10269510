//! The wire, in two dialects. Pure functions on bytes: the caller owns the socket.
//!
//! A request is `types;pattern` in one line: types are integers with commas between them, an empty list means all, and the pattern
//! is everything after the first semicolon. An answer is rows, each ended by a line feed, and then an empty line.
//!
//! * [`Lines`](Dialect::Lines), the dialect of the course's statement: a request ends with a line feed, an answer is sent while
//!   it is found and may have any length.
//! * [`Utf`](Dialect::Utf), the dialect of programs that use Java's `writeUTF`: a request and an answer are one message each, of
//!   two bytes for its length and then [modified UTF-8](utf). A message has 65,535 bytes at most.
//!
//! Neither dialect has an error message, so errors are encoded as follows:
//!
//! | condition | `lines` | `utf` |
//! | --- | --- | --- |
//! | a rejected pattern or request, a server without capacity, a limit that was reached before the first row | the one row
//! `error@@@` and the reason, and the empty line; no row of a file begins so, since `error` is not an integer | the same, in its
//! message |
//! | a limit that is reached after rows have been sent | the row `error@@@` and the reason, no empty line, and the connection is
//! reset, so that the client does not take the part for the whole | impossible: nothing is sent before all is found |
//! | an answer beyond 65,535 bytes | is sent | [`TOO_BIG`], the text of the old servers |
//! | an empty sentence, where rows are sentences alone | a blank in its place, since an empty line is the end | the same |
//!
//! A connection carries one request after the other, in both dialects. A carriage return or a line feed at the end of a request's
//! text is removed.

pub mod utf;

use std::str::FromStr;

use memchr::{memchr, memmem};

/// The longest request, with its framing.
pub const REQUEST_BYTES: usize = utf::LENGTH_BYTES + utf::MESSAGE_BYTES;
/// The byte that ends an answer, behind its last row.
pub const END: u8 = b'\n';
/// The beginning of a row that reports an error.
pub const ERROR: &[u8] = b"error@@@";
/// The text in place of an answer that is longer than a message of [`Dialect::Utf`].
pub const TOO_BIG: &str = "request may be too big \n\n";

/// The framing of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Lines of text.
    #[default]
    Lines,
    /// Messages of Java's `writeUTF`.
    Utf,
}

/// A request at the start of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// The number of bytes of the request.
    pub used_bytes: usize,
    /// The text in the frame.
    pub text: Result<String, NotText>,
}

/// A complete request whose bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not text: {0}")]
pub struct NotText(&'static str);

/// A request that a dialect cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotCarry {
    /// The pattern has a line feed, which ends a request.
    #[error("a request cannot have a line feed in it; write \\n in the pattern")]
    LineFeed,
    /// The pattern is too long for a request.
    #[error("a request of more than {} bytes cannot be sent; make it shorter", utf::MESSAGE_BYTES)]
    TooLong,
}

impl Dialect {
    /// Every dialect, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Lines, Self::Utf];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Utf => "utf",
        }
    }

    /// The bytes of a request.
    ///
    /// # Errors
    /// Fails if the dialect cannot carry it.
    pub fn encode_request(self, request: &str) -> Result<Vec<u8>, CannotCarry> {
        if request.contains('\n') {
            return Err(CannotCarry::LineFeed);
        }
        match self {
            Self::Lines if request.len() > utf::MESSAGE_BYTES => Err(CannotCarry::TooLong),
            Self::Lines => Ok([request.as_bytes(), b"\n"].concat()),
            Self::Utf => utf::encode(request).ok_or(CannotCarry::TooLong),
        }
    }

    /// The request that `bytes` begin with; `None` if it is incomplete.
    pub fn decode_request(self, bytes: &[u8]) -> Option<Framed> {
        let (used_bytes, text) = match self {
            Self::Lines => {
                let end = memchr(b'\n', bytes)?;
                let text = str::from_utf8(&bytes[..end]).map(str::to_owned);
                (end + 1, text.map_err(|_| NotText("it is not UTF-8")))
            }
            Self::Utf => {
                let message = utf::message(bytes)?;
                let text = utf::decode(message).ok_or(NotText("it is not the UTF-8 that writeUTF writes"));
                (utf::LENGTH_BYTES + message.len(), text)
            }
        };
        let text = text.map(|mut text| {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
            text
        });
        Some(Framed { used_bytes, text })
    }

    /// The answer that reports an error.
    pub fn encode_error(self, words: &str) -> Vec<u8> {
        let mut row = error_row(words);
        row.push(char::from(END));
        match self {
            Self::Lines => row.into_bytes(),
            Self::Utf => utf::encode(&row).expect("it is cut to fit"),
        }
    }

    /// An answer with these rows, each ended by a line feed. A text that reports the excess replaces an answer that is too long.
    pub fn encode_answer(self, rows: &str) -> Vec<u8> {
        match self {
            Self::Lines => [rows.as_bytes(), &[END]].concat(),
            Self::Utf => utf::encode(&format!("{rows}\n"))
                .unwrap_or_else(|| utf::encode(TOO_BIG).expect("it is short")),
        }
    }

    /// Creates a reader of an answer.
    pub fn reader(self) -> AnswerReader {
        match self {
            Self::Lines => AnswerReader::Lines { at: At::Begin },
            Self::Utf => AnswerReader::Utf { message: Vec::new() },
        }
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.ok_or_else(|| format!("must be lines or utf, not {name:?}"))
    }
}

/// The longest error that is sent, so that three bytes for each character still fit into a message.
const ERROR_CHARACTERS: usize = 10_000;

/// The row that reports why there is no answer, or why it ends early.
pub fn error_row(words: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut row = String::from_utf8_lossy(ERROR).into_owned();
    row.extend(words.chars().take(ERROR_CHARACTERS).map(plain));
    row.push('\n');
    row
}

/// Replaces empty lines by a blank, among rows that begin at `from`, where a line begins.
pub fn fill_empty_rows(rows: &mut Vec<u8>, from: usize) {
    let is_empty = |rows: &[u8]| rows.first() == Some(&b'\n') || memmem::find(rows, b"\n\n").is_some();
    if !is_empty(&rows[from..]) {
        return;
    }
    let plain = rows.split_off(from);
    for row in plain.split_inclusive(|&byte| byte == b'\n') {
        if row == b"\n" {
            rows.push(b' ');
        }
        rows.extend_from_slice(row);
    }
}

/// Reads an answer as its bytes arrive, and keeps none of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerReader {
    /// The reader of [`Dialect::Lines`].
    Lines {
        /// The last byte.
        at: At,
    },
    /// The reader of [`Dialect::Utf`]: the incomplete message, which has 65,537 bytes at most.
    Utf {
        /// The message's bytes, including those of its length.
        message: Vec<u8>,
    },
}

/// The position of the next byte in an answer of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first byte, or the one after this many bytes that may become an error.
    Begin,
    /// The first byte of a row.
    LineStart,
    /// A byte within a row.
    Within,
    /// A byte within a row that reports an error.
    Error,
    /// The end of the answer, or more of the error.
    ErrorEnd,
}

/// The state of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerProgress {
    /// The number of bytes that were consumed; pass the others again, together with more.
    pub used_bytes: usize,
    /// The kind of the answer, once it is complete.
    pub ended: Option<AnswerKind>,
}

/// The kind of a complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Rows, and the empty line.
    Rows,
    /// A message that reports why there are no rows.
    Refused,
    /// Not an answer.
    Wrong,
}

impl AnswerReader {
    /// Reads more bytes.
    pub fn take(&mut self, bytes: &[u8]) -> AnswerProgress {
        match self {
            Self::Lines { at } => take_lines(at, bytes),
            Self::Utf { message } => take_message(message, bytes),
        }
    }

    /// Whether a part of the answer has been read.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Lines { at } => *at != At::Begin,
            Self::Utf { message } => !message.is_empty(),
        }
    }
}

fn take_lines(at: &mut At, bytes: &[u8]) -> AnswerProgress {
    if *at == At::Begin {
        match bytes.first() {
            None => return AnswerProgress { used_bytes: 0, ended: None },
            Some(&END) => return AnswerProgress { used_bytes: 1, ended: Some(AnswerKind::Rows) },
            Some(_) if bytes.starts_with(ERROR) => *at = At::Error,
            Some(_) if ERROR.starts_with(bytes) => return AnswerProgress { used_bytes: 0, ended: None },
            Some(_) => *at = At::Within,
        }
    }
    let is_error = matches!(at, At::Error | At::ErrorEnd);
    let ended = if is_error { AnswerKind::Refused } else { AnswerKind::Rows };
    let is_at_start = matches!(at, At::LineStart | At::ErrorEnd);
    if is_at_start && bytes.first() == Some(&END) {
        return AnswerProgress { used_bytes: 1, ended: Some(ended) };
    }
    if let Some(end) = memmem::find(bytes, b"\n\n") {
        return AnswerProgress { used_bytes: end + 2, ended: Some(ended) };
    }
    if let Some(&last) = bytes.last() {
        *at = match (last, is_error) {
            (b'\n', false) => At::LineStart,
            (b'\n', true) => At::ErrorEnd,
            (_, false) => At::Within,
            (_, true) => At::Error,
        };
    }
    AnswerProgress { used_bytes: bytes.len(), ended: None }
}

fn take_message(message: &mut Vec<u8>, bytes: &[u8]) -> AnswerProgress {
    let mut used_bytes = 0;
    loop {
        let wanted = match message.first_chunk() {
            None => utf::LENGTH_BYTES,
            Some(length) => utf::LENGTH_BYTES + usize::from(u16::from_be_bytes(*length)),
        };
        let part = &bytes[used_bytes..bytes.len().min(used_bytes + wanted - message.len())];
        message.extend_from_slice(part);
        used_bytes += part.len();
        if message.len() < wanted {
            return AnswerProgress { used_bytes, ended: None };
        }
        if wanted > utf::LENGTH_BYTES || message[..] == [0, 0] {
            break;
        }
    }
    let body = &message[utf::LENGTH_BYTES..];
    let ended = if body.starts_with(ERROR) || body == TOO_BIG.as_bytes() {
        AnswerKind::Refused
    } else if body == b"\n" || body.ends_with(b"\n\n") {
        AnswerKind::Rows
    } else {
        AnswerKind::Wrong
    };
    AnswerProgress { used_bytes, ended: Some(ended) }
}

#[cfg(test)]
mod tests;
