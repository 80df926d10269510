//! The generator's side of a connection: one request, and one answer, all of whose bytes are checked.

use bytes::Bytes;
use kendall_load::{AnswerRead, Dialog, Request, Reuse};
use kendall_record::Outcome;

use crate::protocol::{Dialect, NoHead, decode_answer};

/// A plain file that repeats one piece.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The repeated piece; not empty.
    pub piece: Bytes,
    /// The length of the file; the last repetition may be cut.
    pub length: u64,
}

impl Pattern {
    /// Whether the file has these bytes at this position.
    fn has(&self, mut place: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let rest = &self.piece[(place % self.piece.len() as u64) as usize..];
            let length = rest.len().min(bytes.len());
            if rest[..length] != bytes[..length] {
                return false;
            }
            place += length as u64;
            bytes = &bytes[length..];
        }
        true
    }
}

/// One connection of a client. Good for one request, after which the server closes it.
#[derive(Debug)]
pub struct Client {
    dialect: Dialect,
    expected: Pattern,
    id: i32,
    /// The number of bytes of the file that were received, once the head of the answer was.
    come: Option<u64>,
}

impl Client {
    /// A client that expects this file for every request.
    pub fn new(dialect: Dialect, expected: Pattern) -> Self {
        Self { dialect, expected, id: 0, come: None }
    }

    fn done(used: usize, outcome: Outcome) -> AnswerRead {
        AnswerRead::Done { used, outcome, reuse: Reuse::Close }
    }
}

impl Dialog for Client {
    fn begin(&mut self, index: u64, _request: &Request) {
        self.id = id(self.dialect, index);
        self.come = None;
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(come) = self.come else {
            return match decode_answer(bytes, self.dialect) {
                Err(NoHead::Incomplete) => AnswerRead::More { used: 0 },
                Ok(head) if head == (self.id, self.expected.length) => {
                    self.come = Some(0);
                    let used = self.dialect.answer_head_bytes();
                    if self.expected.length == 0 {
                        return Self::done(used, Outcome::Answered);
                    }
                    AnswerRead::More { used }
                }
                Ok(_) | Err(NoHead::Malformed) => Self::done(bytes.len(), Outcome::Wrong),
            };
        };
        let left = usize::try_from(self.expected.length - come).unwrap_or(usize::MAX);
        let taken = &bytes[..bytes.len().min(left)];
        if !self.expected.has(come, taken) {
            return Self::done(bytes.len(), Outcome::Wrong);
        }
        self.come = Some(come + taken.len() as u64);
        if taken.len() == left {
            Self::done(left, Outcome::Answered)
        } else {
            AnswerRead::More { used: taken.len() }
        }
    }
}

/// The number of the request with this index.
pub(crate) fn id(dialect: Dialect, index: u64) -> i32 {
    match dialect {
        Dialect::Course => 0,
        Dialect::WithId => (index & 0x7fff_ffff) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::encode_answer;

    fn read_all(client: &mut Client, answer: &[u8], at_once: usize) -> Option<Outcome> {
        client.begin(5, &Request::new(0, Bytes::new()));
        let (mut unread, mut rest) = (Vec::new(), answer);
        while !rest.is_empty() {
            let (come, later) = rest.split_at(at_once.min(rest.len()));
            unread.extend_from_slice(come);
            rest = later;
            loop {
                match client.read(&unread) {
                    AnswerRead::Done { outcome, .. } => return Some(outcome),
                    AnswerRead::More { used } => {
                        unread.drain(..used);
                        if used == 0 || unread.is_empty() {
                            break;
                        }
                    }
                }
            }
        }
        None
    }

    #[test]
    fn an_answer_is_right_only_if_every_byte_is() {
        let expected = Pattern { piece: Bytes::from_static(b"abc"), length: 8 };
        for dialect in Dialect::ALL {
            let mut client = Client::new(dialect, expected.clone());
            let head = encode_answer(dialect, id(dialect, 5), 8);
            let answer = |file: &[u8]| [&head, file].concat();
            for at_once in [1, 3, 100] {
                let mut outcome = |file| read_all(&mut client, &answer(file), at_once);
                assert_eq!(outcome(b"abcabcab"), Some(Outcome::Answered));
                assert_eq!(outcome(b"abcabcax"), Some(Outcome::Wrong));
                assert_eq!(outcome(b"abcabc"), None);
                let shorter = encode_answer(dialect, id(dialect, 5), 7);
                assert_eq!(read_all(&mut client, &shorter, at_once), Some(Outcome::Wrong));
            }
        }
        let mut client = Client::new(Dialect::WithId, expected);
        assert_eq!(read_all(&mut client, &encode_answer(Dialect::WithId, 6, 8), 9), Some(Outcome::Wrong));
    }
}
