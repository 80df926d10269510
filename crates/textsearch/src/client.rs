//! The client's side of a connection.

use kendall_load::{AnswerRead, Dialog, Request, Reuse};
use kendall_record::Outcome;

use crate::protocol::{AnswerKind, AnswerProgress, AnswerReader, Dialect};

/// One connection of a client, which carries one request after the other. Rows are read as they arrive, and none is
/// kept.
#[derive(Debug)]
pub struct Client {
    dialect: Dialect,
    answer: AnswerReader,
}

impl Client {
    /// A connection that speaks this dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, answer: dialect.reader() }
    }
}

impl Dialog for Client {
    fn begin(&mut self, _index: u64, _request: &Request) {
        self.answer = self.dialect.reader();
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let AnswerProgress { used_bytes: used, ended } = self.answer.take(bytes);
        let (outcome, reuse) = match ended {
            None => return AnswerRead::More { used },
            Some(AnswerKind::Rows) => (Outcome::Answered, Reuse::Keep),
            Some(AnswerKind::Refused) => (Outcome::Refused, Reuse::Keep),
            Some(AnswerKind::Wrong) => (Outcome::Wrong, Reuse::Close),
        };
        AnswerRead::Done { used, outcome, reuse }
    }

    /// A truncated answer is not an answer.
    fn closed(&mut self) -> Outcome {
        if self.answer.has_begun() { Outcome::Wrong } else { Outcome::Refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_outcome_and_a_part_of_one_is_wrong() {
        for dialect in Dialect::ALL {
            let mut client = Client::new(dialect);
            let request = Request::new(0, dialect.encode_request(";a").unwrap().into());
            let mut said = |answer: Vec<u8>| {
                client.begin(0, &request);
                let reading = client.read(&answer);
                (reading, answer.len())
            };
            let (reading, used) = said(dialect.encode_answer("1@@@a\n"));
            assert_eq!(reading, AnswerRead::Done { used, outcome: Outcome::Answered, reuse: Reuse::Keep });
            let (reading, used) = said(dialect.encode_error("no"));
            assert_eq!(reading, AnswerRead::Done { used, outcome: Outcome::Refused, reuse: Reuse::Keep });
            let mut part = dialect.encode_answer("1@@@a\n");
            part.pop();
            assert!(matches!(said(part).0, AnswerRead::More { .. }));
            assert_eq!(client.closed(), Outcome::Wrong);
            client.begin(0, &request);
            assert_eq!(client.closed(), Outcome::Refused);
        }
    }
}
