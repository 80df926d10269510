//! The client's side of one connection: one request, one answer, which it checks.

use kendall_load::{AnswerRead, Dialog, Request as LoadRequest, Reuse};
use kendall_record::Outcome;

use crate::protocol::{ANSWER_BYTES, Request, decode_answer};

/// A client with one connection. It is good for one request, after which the server closes it.
#[derive(Debug, Default)]
pub struct Client {
    asked: Option<Request>,
}

impl Dialog for Client {
    fn begin(&mut self, _index: u64, request: &LoadRequest) {
        self.asked = Request::decode(&request.bytes);
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(&answer) = bytes.first_chunk::<ANSWER_BYTES>() else {
            return AnswerRead::More { used: 0 };
        };
        let right = self.asked.is_some_and(|asked| asked.is_answered_by(decode_answer(answer)));
        let outcome = if right { Outcome::Answered } else { Outcome::Wrong };
        AnswerRead::Done { used: ANSWER_BYTES, outcome, reuse: Reuse::Close }
    }
}
