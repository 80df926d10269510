//! The client's side of a connection, and of a session.

use bytes::Bytes;
use kendall_load::{AnswerRead, Dialog, Opening, OpeningReply, Request, Reuse, Session, SessionRead};
use kendall_record::Outcome;

use crate::protocol::session::{self, Fate};
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

/// The client's side of a user's session, which receives the answers to requests of any user.
#[derive(Debug)]
pub struct SessionClient {
    user: u32,
}

impl SessionClient {
    /// The session of the user with this number.
    pub fn new(user: u32) -> Self {
        Self { user }
    }
}

impl Session for SessionClient {
    fn opening(&mut self) -> Opening {
        let bytes = Bytes::copy_from_slice(&session::encode_opening(u64::from(self.user)));
        Opening { bytes, reply: OpeningReply::Expected }
    }

    fn read(&mut self, bytes: &[u8]) -> SessionRead {
        let Some(&answer) = bytes.first_chunk::<{ session::ANSWER_BYTES }>() else {
            return SessionRead::More;
        };
        let session::Answer { nonce, fate } = session::decode_answer(answer);
        let own = u64::from(self.user);
        let used = session::ANSWER_BYTES;
        let outcome = match fate {
            Fate::Present if nonce == own => return SessionRead::Opened { used },
            Fate::Present => return SessionRead::Invalid,
            Fate::Held { .. } => Outcome::Answered,
            // Both go to the requester: the answer did not reach its user, or there was none.
            Fate::Unreached { from } if from == own => Outcome::Refused,
            Fate::Unreached { .. } => Outcome::Wrong,
            Fate::Refused => Outcome::Refused,
        };
        SessionRead::Answer { used, key: nonce, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{REFUSED, encode_answer, encode_request};

    #[test]
    fn each_answer_has_its_outcome_and_its_effect_on_the_connection() {
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

    fn read_present(client: &mut SessionClient, user: u64) -> SessionRead {
        client.read(&session::encode_answer(session::Answer { nonce: user, fate: Fate::Present }))
    }

    #[test]
    fn an_answer_on_a_session_has_the_outcome_of_its_fate() {
        let mut client = SessionClient::new(7);
        let mut read = |fate| client.read(&session::encode_answer(session::Answer { nonce: 3, fate }));
        for (fate, outcome) in [
            (Fate::Held { from: 7 }, Outcome::Answered),
            (Fate::Held { from: 8 }, Outcome::Answered),
            (Fate::Unreached { from: 7 }, Outcome::Refused),
            (Fate::Unreached { from: 8 }, Outcome::Wrong),
            (Fate::Refused, Outcome::Refused),
        ] {
            assert_eq!(read(fate), SessionRead::Answer { used: 16, key: 3, outcome });
        }
        assert_eq!(read_present(&mut client, 7), SessionRead::Opened { used: 16 });
        assert_eq!(read_present(&mut client, 8), SessionRead::Invalid);
        assert_eq!(client.read(&[0; 15]), SessionRead::More);
        assert_eq!(*client.opening().bytes, session::encode_opening(7));
    }
}
