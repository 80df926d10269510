//! The client's side of a connection.

use kendall_load::{AnswerRead, Dialog, Request, Reuse};
use kendall_record::Outcome;

use crate::protocol::{ANSWER_BYTES, Answer, decode_answer, decode_request};

/// One connection of a client, which carries one request after the other.
#[derive(Debug, Default)]
pub struct Client {
    asked: u64,
}

impl Dialog for Client {
    fn begin(&mut self, _index: u64, request: &Request) {
        self.asked = decode_request(&request.bytes).unwrap_or(0);
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(&answer) = bytes.first_chunk::<ANSWER_BYTES>() else { return AnswerRead::More { used: 0 } };
        let (outcome, reuse) = match decode_answer(answer, self.asked) {
            Answer::Held => (Outcome::Answered, Reuse::Keep),
            Answer::Refused => (Outcome::Refused, Reuse::Keep),
            Answer::Wrong => (Outcome::Wrong, Reuse::Close),
        };
        AnswerRead::Done { used: ANSWER_BYTES, outcome, reuse }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{REFUSED, encode_answer, encode_request};

    #[test]
    fn each_answer_has_its_outcome_and_leaves_the_connection_as_it_should() {
        let mut client = Client::default();
        let request = Request::new(0, encode_request(7).to_vec().into());
        let mut said = |answer: &[u8]| {
            client.begin(0, &request);
            client.read(answer)
        };
        let done = |outcome, reuse| AnswerRead::Done { used: 8, outcome, reuse };
        assert_eq!(said(&encode_answer(7)), done(Outcome::Answered, Reuse::Keep));
        assert_eq!(said(&REFUSED), done(Outcome::Refused, Reuse::Keep));
        assert_eq!(said(&encode_answer(8)), done(Outcome::Wrong, Reuse::Close));
        assert_eq!(said(&encode_answer(7)[..7]), AnswerRead::More { used: 0 });
    }
}
