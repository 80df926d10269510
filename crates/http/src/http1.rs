//! HTTP/1.1 (RFC 9112) for a client, as a pure state machine: bytes in, outcomes of answers out.
//!
//! No I/O, no clock, and no allocation for an answer. An ambiguous answer is wrong, and its connection is closed: an
//! answer without a definite end cannot be measured.

use std::mem::MaybeUninit;
use std::sync::Arc;

use httparse::{Header, Status};
use kendall_load::{AnswerRead, Dialog, Request, Reuse, UNREAD_AT_MOST_BYTES};
use kendall_record::Outcome;

use crate::chunked::{ChunkProgress, Chunks};
use crate::expect::AnswerCheck;
use crate::requests::Requests;

/// The most lines of a head.
const MOST_HEADERS: usize = 128;
/// The most interim answers (1xx) before an answer.
const MOST_INTERIMS: u32 = 16;

/// The HTTP/1.1 dialog of one connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    requests: Arc<Requests>,
    /// The index of the current request.
    template: usize,
    state: State,
    check: AnswerCheck,
    interims: u32,
    reuse: Reuse,
    /// The status of the answer, once it is complete.
    status: Option<u16>,
}

#[derive(Debug)]
enum State {
    /// No request was sent.
    Idle,
    /// In the head, whose first bytes, this many, hold no end.
    Head { searched: usize },
    /// In a body of which this many bytes are missing.
    Sized { left: u64 },
    /// In a chunked body.
    Chunked(Chunks),
    /// In a body that ends with the connection.
    UntilClosed,
}

/// The number of bytes that one step consumed.
enum Step {
    /// The step consumed this many bytes; there may be another step.
    On(usize),
    /// The step consumed this many bytes; more must follow.
    More(usize),
    /// The step consumed this many bytes, which complete the answer.
    Done(usize),
    /// The body is longer than expected; the connection is closed instead of reading the rest.
    TooLong,
    /// The bytes are not an answer.
    Broken,
}

/// Where a body ends (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Sized(u64),
    Chunked,
    UntilClosed,
}

/// The relevant parts of a head.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    length: usize,
    status: u16,
    framing: Framing,
    reuse: Reuse,
}

impl Http1 {
    pub(crate) fn new(requests: Arc<Requests>) -> Self {
        let (state, check) = (State::Idle, AnswerCheck::default());
        Self { requests, template: 0, state, check, interims: 0, reuse: Reuse::Close, status: None }
    }

    fn step(&mut self, bytes: &[u8]) -> Step {
        let expect = self.requests.expect(self.template);
        let step = match &mut self.state {
            // An answer before any request does not answer ours.
            State::Idle => Step::Broken,
            State::Head { searched } => match ends_at(bytes, searched) {
                _ if bytes.is_empty() => Step::More(0),
                None if bytes.len() > UNREAD_AT_MOST_BYTES => Step::Broken,
                None => Step::More(0),
                Some(length) if length > UNREAD_AT_MOST_BYTES => Step::Broken,
                Some(length) => self.head(&bytes[..length]),
            },
            State::Sized { left } => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                self.check.body(expect, &bytes[..here]);
                *left -= here as u64;
                if *left == 0 { Step::Done(here) } else { Step::More(here) }
            }
            State::Chunked(chunks) => match chunks.take(bytes, |body| self.check.body(expect, body)) {
                ChunkProgress::All => Step::More(bytes.len()),
                ChunkProgress::Ended(length) => Step::Done(length),
                ChunkProgress::Malformed => Step::Broken,
            },
            State::UntilClosed => {
                self.check.body(expect, bytes);
                Step::More(bytes.len())
            }
        };
        match step {
            Step::More(_) if self.check.is_too_long(self.requests.expect(self.template)) => Step::TooLong,
            step => step,
        }
    }

    /// Parses a complete head.
    fn head(&mut self, bytes: &[u8]) -> Step {
        let Some(head) = Head::read(bytes) else { return Step::Broken };
        if let 100..200 = head.status {
            self.interims += 1;
            self.state = State::Head { searched: 0 };
            // No request asked to switch protocols.
            return if head.status == 101 || self.interims > MOST_INTERIMS {
                Step::Broken
            } else {
                Step::On(head.length)
            };
        }
        self.check = AnswerCheck::head(self.requests.expect(self.template), head.status);
        let bodiless = self.requests.is_head(self.template) || matches!(head.status, 204 | 304);
        let framing = if bodiless { Framing::Sized(0) } else { head.framing };
        self.reuse = if framing == Framing::UntilClosed { Reuse::Close } else { head.reuse };
        self.state = match framing {
            Framing::Sized(0) => return Step::Done(head.length),
            Framing::Sized(left) => State::Sized { left },
            Framing::Chunked => State::Chunked(Chunks::new()),
            Framing::UntilClosed => State::UntilClosed,
        };
        Step::On(head.length)
    }

    fn judge(&mut self) -> Outcome {
        self.state = State::Idle;
        self.status = Some(self.check.status());
        self.check.judge(self.requests.expect(self.template))
    }
}

impl Dialog for Http1 {
    fn begin(&mut self, _index: u64, request: &Request) {
        self.template = request.class as usize;
        self.interims = 0;
        self.check = AnswerCheck::default();
        self.status = None;
        self.state = State::Head { searched: 0 };
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let mut used = 0;
        loop {
            match self.step(&bytes[used..]) {
                Step::On(taken) => used += taken,
                Step::More(taken) => return AnswerRead::More { used: used + taken },
                Step::Done(taken) => {
                    used += taken;
                    return AnswerRead::Done { used, outcome: self.judge(), reuse: self.reuse };
                }
                Step::TooLong => {
                    let (used, outcome) = (bytes.len(), self.judge());
                    return AnswerRead::Done { used, outcome, reuse: Reuse::Close };
                }
                Step::Broken => {
                    self.state = State::Idle;
                    return AnswerRead::Done {
                        used: bytes.len(),
                        outcome: Outcome::Wrong,
                        reuse: Reuse::Close,
                    };
                }
            }
        }
    }

    fn closed(&mut self) -> Outcome {
        match self.state {
            State::UntilClosed => self.judge(),
            _ => Outcome::Refused,
        }
    }

    fn status(&self) -> Option<u16> {
        self.status
    }
}

/// The end of a head: behind its empty line. `searched` is the number of bytes that were searched in vain before, and is
/// updated, so that a head that arrives byte by byte is searched once and not once for each byte.
fn ends_at(bytes: &[u8], searched: &mut usize) -> Option<usize> {
    let mut from = *searched;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == b'\n') {
        let next = from + at + 1;
        match bytes[next..] {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            // The end may lie just across; search this line's end again.
            [] | [b'\r'] => {
                *searched = next - 1;
                return None;
            }
            _ => from = next,
        }
    }
    *searched = bytes.len();
    None
}

impl Head {
    /// Parses a complete head; `None` if it is invalid or ambiguous.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
        let Ok(Status::Complete(length)) = parsed else { return None };
        let status = response.code.filter(|&code| code >= 100)?;
        let is_1_1 = response.version == Some(1);
        let (mut sized, mut chunked) = (None, false);
        let (mut keeps, mut closes) = (is_1_1, false);
        for header in response.headers.iter() {
            // Few names have these lengths, so most are skipped quickly.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = content_length(header.value)?;
                    if sized.replace(length).is_some_and(|before| before != length) {
                        return None;
                    }
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    // Requests accept no other coding, and a second line would be a second coding.
                    if chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return None;
                    }
                    chunked = true;
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for option in header.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                        closes |= option.eq_ignore_ascii_case(b"close");
                        keeps |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                _ => {}
            }
        }
        let framing = match (sized, chunked) {
            // RFC 9112, 6.1 and 6.3: both at once indicate request smuggling, and 1.0 has no chunks.
            (Some(_), true) => return None,
            (None, true) if !is_1_1 => return None,
            (None, true) => Framing::Chunked,
            (Some(length), false) => Framing::Sized(length),
            (None, false) => Framing::UntilClosed,
        };
        let reuse = if keeps && !closes { Reuse::Keep } else { Reuse::Close };
        Some(Self { length, status, framing, reuse })
    }
}

/// A length, or the same length several times (RFC 9112, section 6.3, 5.).
fn content_length(value: &[u8]) -> Option<u64> {
    let mut length = None;
    for part in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = std::str::from_utf8(part).ok()?.parse::<u64>().ok()?;
        if length.replace(value).is_some_and(|before| before != value) {
            return None;
        }
    }
    length
}

#[cfg(test)]
mod tests;
