//! What must hold for any bytes that a server or a client of the system receives.

use kendall_load::{AnswerRead, Dialog, Request as Sent};
use kendall_testbed::fuzz::{Target, fed, however_cut};

use crate::client::Client;
use crate::protocol::{ANSWER_BYTES, REQUEST_BYTES, Request, decode_answer, encode_answer};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "reverse-request", seeds: request_seeds, run: request },
    Target { name: "reverse-answer", seeds: answer_seeds, run: answer },
];

/// 49 bytes are a request in one way. An answer is in its range and has its digest.
fn request(input: &[u8]) {
    let Some(request) = Request::decode(input) else { return assert!(input.len() < REQUEST_BYTES) };
    assert_eq!(request.encode(), input[..REQUEST_BYTES]);
    if let Some(bytes) = input[REQUEST_BYTES..].first_chunk::<ANSWER_BYTES>() {
        let answer = decode_answer(*bytes);
        assert_eq!(encode_answer(answer), *bytes);
        assert!(!request.is_answered_by(answer) || request.candidates() > 0);
    }
}

fn request_seeds() -> Vec<Vec<u8>> {
    let request = Request { digest: crate::protocol::digest(7), start: 3, end: 9, priority: 2 };
    vec![[&request.encode()[..], &encode_answer(7)].concat()]
}

/// The client reads an answer to the same end, however it is cut.
fn answer(input: &[u8]) {
    however_cut(input, |pieces| {
        let mut client = Client::default();
        client.begin(0, &Sent::new(0, request_seeds().remove(0)[..REQUEST_BYTES].to_vec().into()));
        fed(pieces, |bytes| match client.read(bytes) {
            AnswerRead::More { used } => (used, None),
            AnswerRead::Done { used, outcome, reuse } => (used, Some((outcome, reuse))),
        })
    });
}

fn answer_seeds() -> Vec<Vec<u8>> {
    [7, 0, 8].map(|answer| [&[3][..], &encode_answer(answer)].concat()).to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
