//! What must hold for any bytes that a server or a client of the system receives.

use kendall_load::{AnswerRead, Dialog, Request, Session, SessionRead};
use kendall_testbed::fuzz::{Target, fed, however_cut};

use crate::client::{Client, SessionClient};
use crate::protocol::{self, session};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "hold-request", seeds: request_seeds, run: request },
    Target { name: "hold-answer", seeds: answer_seeds, run: answer },
];

/// Bytes are a request, and the opening or a request of a session, in one way each.
fn request(input: &[u8]) {
    if let Ok(nonce) = protocol::decode_request(input) {
        assert_eq!(protocol::encode_request(nonce), input[..protocol::REQUEST_BYTES]);
    }
    if let Ok(user) = session::decode_opening(input) {
        assert_eq!(session::encode_opening(user), input[..session::OPENING_BYTES]);
    }
    if let Ok(request) = session::decode_request(input) {
        assert_eq!(session::encode_request(request), input[..session::REQUEST_BYTES]);
    }
}

fn request_seeds() -> Vec<Vec<u8>> {
    let request = session::Request { nonce: 3, to: 5 };
    vec![
        protocol::encode_request(7).to_vec(),
        session::encode_opening(5).to_vec(),
        session::encode_request(request).to_vec(),
    ]
}

/// Both clients read answers to the same end, however they are cut.
fn answer(input: &[u8]) {
    however_cut(input, |pieces| {
        let mut client = Client::default();
        client.begin(0, &Request::new(0, protocol::encode_request(7).to_vec().into()));
        fed(pieces, |bytes| match client.read(bytes) {
            AnswerRead::More { used } => (used, None),
            AnswerRead::Done { used, outcome, reuse } => (used, Some((outcome, reuse))),
        })
    });
    however_cut(input, |pieces| {
        let (mut client, mut answers) = (SessionClient::new(5), Vec::new());
        let end = fed(pieces, |bytes| {
            let mut from = 0;
            loop {
                let read = client.read(&bytes[from..]);
                match read {
                    SessionRead::More => return (from, None),
                    SessionRead::Invalid => return (from, Some("invalid")),
                    SessionRead::Opened { used }
                    | SessionRead::Answer { used, .. }
                    | SessionRead::Unasked { used, .. } => from += used,
                }
                answers.push(read);
            }
        });
        (answers, end)
    });
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let answers = [
        session::Answer { nonce: 5, fate: session::Fate::Present },
        session::Answer { nonce: 1, fate: session::Fate::Held { from: 5 } },
        session::Answer { nonce: 2, fate: session::Fate::Unreached { from: 5 } },
        session::Answer { nonce: 3, fate: session::Fate::Refused },
    ];
    vec![
        [&[3][..], &protocol::encode_answer(7)].concat(),
        [vec![7], answers.map(session::encode_answer).concat()].concat(),
    ]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
