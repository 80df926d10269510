//! The wire, in two dialects. Pure functions on bytes: whoever drives them owns the socket.
//!
//! A request is `types;pattern` in one line: types are integers with commas between them, none means all, and the pattern is all
//! that follows the first semicolon. An answer is rows, each ended by a line feed, and then an empty line.
//!
//! * [`Lines`](Dialect::Lines), as the statement of the course has it: a request ends with a line feed, an answer is sent as it is
//!   found and may have any length.
//! * [`Utf`](Dialect::Utf), as programs that use Java's `writeUTF` have it: a request and an answer are one message each, of two
//!   bytes for its length and then [modified UTF-8](utf). A message has 65,535 bytes at most.
//!
//! Neither dialect has a word for what goes wrong, so this is what stands for it:
//!
//! | what cannot be carried | `lines` | `utf` |
//! | --- | --- | --- |
//! | a refused pattern or request, a server without room, a limit that was reached before the first row | the one row `error@@@` and why, and the empty line; no row of a file begins so, since `error` is no integer | the same, in its message |
//! | a limit that is reached when rows have been sent already | the row `error@@@` and why, no empty line, and the connection is reset, so that the part is not taken for the whole | cannot be: nothing is sent before all is found |
//! | an answer beyond 65,535 bytes | is carried | [`TOO_BIG`], the words of the old servers |
//! | an empty sentence, where rows are sentences alone | a blank in its place, since an empty line is the end | the same |
//!
//! A connection carries one request after the other, in both dialects. A carriage return or a line feed at the end of a
//! request's text is left off.

pub mod utf;

use std::str::FromStr;

use memchr::{memchr, memmem};

/// The longest request, with what frames it.
pub const REQUEST_BYTES: usize = utf::LENGTH_BYTES + utf::MESSAGE_BYTES;
/// What ends an answer, behind its last row.
pub const END: u8 = b'\n';
/// What a row begins with that says why there is no answer.
pub const ERROR: &[u8] = b"error@@@";
/// What stands for an answer that is longer than a message of [`Dialect::Utf`].
pub const TOO_BIG: &str = "request may be too big \n\n";

/// How requests and answers are framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Lines of text.
    #[default]
    Lines,
    /// Messages as Java's `writeUTF` writes them.
    Utf,
}

/// The beginning of some bytes, as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// How many bytes it took.
    pub used_bytes: usize,
    /// What stands in the frame.
    pub text: Result<String, NotText>,
}

/// A complete request whose bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not text: {0}")]
pub struct NotText(&'static str);

/// A request that a dialect cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotCarry {
    /// It has a line feed, which ends a request.
    #[error("a request cannot have a line feed in it; write \\n in the pattern")]
    LineFeed,
    /// It is too long.
    #[error("a request of more than {} bytes cannot be sent; make it shorter", utf::MESSAGE_BYTES)]
    TooLong,
}

impl Dialect {
    /// Both, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Lines, Self::Utf];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Utf => "utf",
        }
    }

    /// A request as it goes over the wire.
    ///
    /// # Errors
    /// Where the dialect cannot carry it.
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

    /// The request that `bytes` begin with; `None` where more are to come.
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

    /// The answer that says why there is none.
    pub fn encode_error(self, words: &str) -> Vec<u8> {
        let mut row = error_row(words);
        row.push(char::from(END));
        match self {
            Self::Lines => row.into_bytes(),
            Self::Utf => utf::encode(&row).expect("it is cut to fit"),
        }
    }

    /// An answer with these rows, each ended by a line feed. One that is too long becomes the words that say so.
    pub fn encode_answer(self, rows: &str) -> Vec<u8> {
        match self {
            Self::Lines => [rows.as_bytes(), &[END]].concat(),
            Self::Utf => utf::encode(&format!("{rows}\n"))
                .unwrap_or_else(|| utf::encode(TOO_BIG).expect("it is short")),
        }
    }

    /// Begins to read an answer.
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

/// The row that says why there is no answer, or no more of it.
pub fn error_row(words: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut row = String::from_utf8_lossy(ERROR).into_owned();
    row.extend(words.chars().take(ERROR_CHARACTERS).map(plain));
    row.push('\n');
    row
}

/// Puts a blank in the place of empty lines among rows that begin at `from`, where a line begins.
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

/// Reads an answer as its bytes come, and keeps none of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerReader {
    /// Of [`Dialect::Lines`].
    Lines {
        /// What the last byte was.
        at: At,
    },
    /// Of [`Dialect::Utf`]: the message so far, which has 65,537 bytes at most.
    Utf {
        /// Its bytes, those of its length included.
        message: Vec<u8>,
    },
}

/// Where in an answer of lines the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It is the first, or follows this many bytes that may become an error.
    Begin,
    /// It is the first of a row.
    LineStart,
    /// It is within a row.
    Within,
    /// As before, but this row says why there is no answer.
    Error,
    /// It is what ends the answer, or more of why there is none.
    ErrorEnd,
}

/// What an answer is, as far as it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How many bytes were taken; those left are to be shown again, with more.
    pub used_bytes: usize,
    /// What it is, once it is complete.
    pub ended: Option<Ended>,
}

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Rows, and the empty line.
    Rows,
    /// Words that say why there are no rows.
    Refused,
    /// Not an answer.
    Wrong,
}

impl AnswerReader {
    /// Takes more bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Taken {
        match self {
            Self::Lines { at } => take_lines(at, bytes),
            Self::Utf { message } => take_message(message, bytes),
        }
    }

    /// Whether a part of the answer has been taken.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Lines { at } => *at != At::Begin,
            Self::Utf { message } => !message.is_empty(),
        }
    }
}

fn take_lines(at: &mut At, bytes: &[u8]) -> Taken {
    if *at == At::Begin {
        match bytes.first() {
            None => return Taken { used_bytes: 0, ended: None },
            Some(&END) => return Taken { used_bytes: 1, ended: Some(Ended::Rows) },
            Some(_) if bytes.starts_with(ERROR) => *at = At::Error,
            Some(_) if ERROR.starts_with(bytes) => return Taken { used_bytes: 0, ended: None },
            Some(_) => *at = At::Within,
        }
    }
    let is_error = matches!(at, At::Error | At::ErrorEnd);
    let ended = if is_error { Ended::Refused } else { Ended::Rows };
    let is_at_start = matches!(at, At::LineStart | At::ErrorEnd);
    if is_at_start && bytes.first() == Some(&END) {
        return Taken { used_bytes: 1, ended: Some(ended) };
    }
    if let Some(end) = memmem::find(bytes, b"\n\n") {
        return Taken { used_bytes: end + 2, ended: Some(ended) };
    }
    if let Some(&last) = bytes.last() {
        *at = match (last, is_error) {
            (b'\n', false) => At::LineStart,
            (b'\n', true) => At::ErrorEnd,
            (_, false) => At::Within,
            (_, true) => At::Error,
        };
    }
    Taken { used_bytes: bytes.len(), ended: None }
}

fn take_message(message: &mut Vec<u8>, bytes: &[u8]) -> Taken {
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
            return Taken { used_bytes, ended: None };
        }
        if wanted > utf::LENGTH_BYTES || message[..] == [0, 0] {
            break;
        }
    }
    let body = &message[utf::LENGTH_BYTES..];
    let ended = if body.starts_with(ERROR) || body == TOO_BIG.as_bytes() {
        Ended::Refused
    } else if body == b"\n" || body.ends_with(b"\n\n") {
        Ended::Rows
    } else {
        Ended::Wrong
    };
    Taken { used_bytes, ended: Some(ended) }
}

#[cfg(test)]
mod tests;
