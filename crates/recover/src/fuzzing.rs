//! What must hold for any bytes that a server or a client of the system receives, and for any list of words.

use kendall_load::{AnswerRead, Dialog, Request};
use kendall_record::Outcome;
use kendall_testbed::fuzz::{Target, fed, however_cut};

use crate::client::{Client, Pattern};
use crate::protocol::{Dialect, Head, NoHead, decode_answer, encode_answer};
use crate::search::Hash;
use crate::words::Words;
use crate::words::rules::Rule;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "recover-request", seeds: request_seeds, run: request },
    Target { name: "recover-answer", seeds: answer_seeds, run: answer },
    Target { name: "recover-words", seeds: word_seeds, run: words },
];

/// What is read as a request is written and read again alike, and a part of it is incomplete.
fn request(input: &[u8]) {
    for dialect in Dialect::ALL {
        if let Ok((head, used)) = Head::decode(input, dialect) {
            let bytes = head.encode(dialect);
            assert_eq!(bytes.len(), used);
            assert_eq!(Head::decode(&input[..used - 1], dialect), Err(NoHead::Incomplete));
            assert_eq!(Head::decode(&bytes, dialect), Ok((head, used)));
        }
        if let Ok((id, length)) = decode_answer(input, dialect) {
            assert_eq!(encode_answer(dialect, id, length), input[..dialect.answer_head_bytes()]);
        }
    }
}

fn request_seeds() -> Vec<Vec<u8>> {
    let hashes = [Hash::Sha1([1; 20]), Hash::Sha256([2; 32]), Hash::Md5([3; 16])];
    let head = |hash| Head { id: 0, hash, lengths: 2..=5, file_bytes: 32 }.encode(Dialect::Course);
    hashes.map(head).to_vec()
}

/// The client reads an answer to the same end, however it is cut.
fn answer(input: &[u8]) {
    however_cut(input, |pieces| {
        let mut client = Client::new(Dialect::WithId, expected());
        client.begin(5, &Request::new(0, Vec::new().into()));
        let end = fed(pieces, |bytes| {
            let mut from = 0;
            // A head may be read alone, though more is there.
            loop {
                match client.read(&bytes[from..]) {
                    AnswerRead::More { used: 0 } => return (from, None),
                    AnswerRead::More { used } => from += used,
                    AnswerRead::Done { used, outcome, .. } => return (from + used, Some(outcome)),
                }
            }
        });
        // A wrong answer is dropped as far as it has arrived.
        end.map(|(used, outcome)| if outcome == Outcome::Wrong { (0, outcome) } else { (used, outcome) })
    });
}

fn expected() -> Pattern {
    Pattern { piece: b"some text".to_vec().into(), length: 20 }
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let file: Vec<u8> = b"some text".iter().copied().cycle().take(20).collect();
    vec![[vec![4], encode_answer(Dialect::WithId, 5, 20), file].concat()]
}

/// Each line is a word or counted as skipped. A word is found by its length, and rules keep the lengths they announce.
fn words(input: &[u8]) {
    let words = Words::of(input.to_vec());
    let lines = input.split(|byte| *byte == b'\n').filter(|line| !matches!(*line, b"" | b"\r"));
    let skipped = words.skipped();
    assert_eq!(words.len() + skipped.not_text + skipped.too_long, lines.count());
    assert_eq!(words.of_length(1, Words::LONGEST).len(), words.len());
    for (number, word) in words.iter().take(20).enumerate() {
        assert!((1..=Words::LONGEST).contains(&word.len()) && std::str::from_utf8(word).is_ok());
        assert!(words.of_length(word.len(), word.len()).contains(&(number as u32)));
        for rule in Rule::all() {
            let mut password = Vec::new();
            rule.apply(word, &mut password, |candidate| {
                let of = rule.words_for(candidate.len(), candidate.len());
                assert!(of.is_some_and(|(least, most)| (least..=most).contains(&word.len())));
                true
            });
        }
    }
}

fn word_seeds() -> Vec<Vec<u8>> {
    let long = "x".repeat(Words::LONGEST + 1);
    vec![b"passion\r\npassword\n\nx\n11111".to_vec(), format!("{long}\n{}\nä", &long[1..]).into(), vec![0xff]]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
