use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::options::HttpOptions;

/// The outcome of an answer, and the number of bytes it used.
#[derive(Debug, PartialEq)]
enum AnswerEnd {
    Read { used: usize, outcome: Outcome, reuse: Reuse },
    Closed(Outcome),
}

fn dialog(method: &str, text: Option<&str>) -> Http1 {
    let mut options = HttpOptions::get("http://127.0.0.1:1/");
    options.request.method = Some(method.into());
    options.request.expect_text = text.map(str::to_owned);
    dialog_of(&options)
}

fn dialog_of(options: &HttpOptions) -> Http1 {
    let requests = Requests::new(([127, 0, 0, 1], 1).into(), options, 1).unwrap();
    Http1::new(Arc::new(requests))
}

/// Feeds an answer in parts that end at the given positions, as the generator does: unread bytes are passed again.
fn fed(dialog: &mut Http1, bytes: &[u8], cuts: &[usize]) -> AnswerEnd {
    dialog.begin(0, &Request::new(0, Default::default()));
    let (mut from, mut to) = (0, 0);
    let ends = cuts.iter().copied().chain([bytes.len()]);
    for end in ends.filter(|&end| end <= bytes.len()) {
        to = end.max(to);
        match dialog.read(&bytes[from..to]) {
            AnswerRead::More { used } => from += used,
            AnswerRead::Done { used, outcome, reuse } => {
                return AnswerEnd::Read { used: from + used, outcome, reuse };
            }
        }
    }
    AnswerEnd::Closed(dialog.closed())
}

fn whole(bytes: &[u8]) -> AnswerEnd {
    fed(&mut dialog("GET", None), bytes, &[])
}

fn kept(bytes: &str) -> AnswerEnd {
    AnswerEnd::Read { used: bytes.len(), outcome: Outcome::Answered, reuse: Reuse::Keep }
}

/// A broken answer: wrong, whatever follows.
fn is_broken(ended: &AnswerEnd) -> bool {
    matches!(ended, AnswerEnd::Read { outcome: Outcome::Wrong, reuse: Reuse::Close, .. })
}

#[test]
fn answers_end_where_rfc_9112_says() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200\r\ncontent-length: 2, 2\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nx: y\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 500\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 1\r\n\r\nx",
    ] {
        assert_eq!(whole(answer.as_bytes()), kept(answer), "{answer}");
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n";
    assert_eq!(fed(&mut dialog("HEAD", None), head.as_bytes(), &[]), kept(head));
}

#[test]
fn a_connection_is_spent_where_the_server_says_so_or_the_body_ends_with_it() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nconnection: keep-alive, Close\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx",
    ] {
        let spent = AnswerEnd::Read { used: answer.len(), outcome: Outcome::Answered, reuse: Reuse::Close };
        assert_eq!(whole(answer.as_bytes()), spent, "{answer}");
    }
    for answer in ["HTTP/1.1 200 OK\r\n\r\nall of this", "HTTP/1.0 200 OK\r\n\r\n"] {
        assert_eq!(whole(answer.as_bytes()), AnswerEnd::Closed(Outcome::Answered));
    }
}

#[test]
fn an_answer_that_is_cut_off_is_refused() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        assert_eq!(whole(answer.as_bytes()), AnswerEnd::Closed(Outcome::Refused), "{answer}");
    }
}

#[test]
fn an_ambiguous_answer_is_wrong() {
    let status = "HTTP/1.1 200 OK\r\n";
    let lines = "a: b\r\n".repeat(MOST_HEADERS + 1);
    let interims = "HTTP/1.1 102 Processing\r\n\r\n".repeat(MOST_INTERIMS as usize + 1);
    for answer in [
        &format!("{status}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        &format!("{status}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!"),
        &format!("{status}content-length: 5, 6\r\n\r\nhello!"),
        &format!("{status}content-length: +5\r\n\r\nhello"),
        &format!("{status}content-length: 0x5\r\n\r\nhello"),
        &format!("{status}content-length:\r\n\r\n"),
        &format!("{status}content-length: 18446744073709551616\r\n\r\n"),
        &format!("{status}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        &format!("{status}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        &format!("{status}transfer-encoding : chunked\r\n\r\n0\r\n\r\n"),
        &format!("{status}a: b\r\n folded: c\r\n\r\n"),
        &format!("{status}{lines}\r\n"),
        &interims,
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 099 Low\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "\r\n\r\n\0\0\0",
        "<html></html>\n\n",
    ] {
        let ended = whole(answer.as_bytes());
        assert!(is_broken(&ended), "{answer:.60}: {ended:?}");
    }
}

#[test]
fn a_head_without_end_is_wrong_at_the_limit_and_not_before() {
    let head = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(UNREAD_AT_MOST_BYTES));
    let mut dialog = dialog("GET", None);
    let at = |dialog: &mut Http1, length: usize| fed(dialog, &head.as_bytes()[..length], &[]);
    assert_eq!(at(&mut dialog, UNREAD_AT_MOST_BYTES), AnswerEnd::Closed(Outcome::Refused));
    assert!(is_broken(&at(&mut dialog, UNREAD_AT_MOST_BYTES + 1)));
}

#[test]
fn an_answer_without_a_request_is_wrong_and_bytes_after_an_answer_stay_unread() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
    let twice = answer.repeat(2);
    assert_eq!(whole(twice.as_bytes()), kept(answer));
    let mut dialog = dialog("GET", None);
    assert!(matches!(dialog.read(answer.as_bytes()), AnswerRead::Done { outcome: Outcome::Wrong, .. }));
}

#[test]
fn checks_see_the_body_and_not_how_it_was_framed() {
    let judged = |answer: &str| match fed(&mut dialog("GET", Some("hello")), answer.as_bytes(), &[]) {
        AnswerEnd::Read { outcome, .. } | AnswerEnd::Closed(outcome) => outcome,
    };
    assert_eq!(
        judged("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        Outcome::Answered
    );
    assert_eq!(judged("HTTP/1.1 200 OK\r\nx: hello\r\ncontent-length: 2\r\n\r\nhi"), Outcome::Wrong);
    assert_eq!(judged("HTTP/1.1 200 OK\r\n\r\nhi, hello"), Outcome::Answered);
    assert_eq!(judged("HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello"), Outcome::Wrong);
    assert_eq!(judged("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"), Outcome::Refused);
}

/// A server that never ends its answer does not occupy the client.
#[test]
fn a_body_that_is_longer_than_expected_is_not_read_to_its_end() {
    let mut options = HttpOptions::get("http://127.0.0.1:1/");
    options.request.expect_length = Some(4);
    let mut dialog = dialog_of(&options);
    let given_up = |outcome, used| AnswerEnd::Read { used, outcome, reuse: Reuse::Close };
    for head in ["", "content-length: 1000\r\n", "transfer-encoding: chunked\r\n"] {
        for (status, outcome) in [("200", Outcome::Wrong), ("503", Outcome::Refused)] {
            let chunk = if head.starts_with('t') { "fff\r\n" } else { "" };
            let answer = format!("HTTP/1.1 {status}\r\n{head}\r\n{chunk}hello");
            let ended = fed(&mut dialog, answer.as_bytes(), &[]);
            assert_eq!(ended, given_up(outcome, answer.len()), "{answer}");
        }
    }
    // A complete body leaves the connection usable, and the next answer is checked separately.
    for (body, outcome) in [("hello", Outcome::Wrong), ("hell", Outcome::Answered)] {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let ended = AnswerEnd::Read { used: answer.len(), outcome, reuse: Reuse::Keep };
        assert_eq!(fed(&mut dialog, answer.as_bytes(), &[1, 3]), ended, "{answer}");
    }
}

/// A valid answer, and whether it determines its own end.
fn valid() -> impl Strategy<Value = (Vec<u8>, bool)> {
    let headers = prop::collection::vec("[a-z]{1,9}: [ -~]{0,20}\r\n", 0..6);
    let parts = prop::collection::vec("[ -~\r\n]{1,30}", 0..5);
    (headers, parts, 0..3u8, 0..3usize, "[a-z]{0,3}").prop_map(
        |(headers, parts, framing, interims, trailer)| {
            let headers: String = headers
                .into_iter()
                .filter(|line| {
                    !["connection", "content-length", "transfer-encoding"].iter().any(|n| line.starts_with(n))
                })
                .collect();
            let body = parts.concat();
            let mut text = "HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n".repeat(interims);
            write!(text, "HTTP/1.1 200 OK\r\n{headers}").unwrap();
            match framing {
                0 => write!(text, "content-length: {}\r\n\r\n{body}", body.len()).unwrap(),
                1 => {
                    text += "transfer-encoding: chunked\r\n\r\n";
                    parts.iter().for_each(|part| write!(text, "{:X}; a\r\n{part}\r\n", part.len()).unwrap());
                    text += "0\r\n";
                    if !trailer.is_empty() {
                        write!(text, "{trailer}: 1\r\n").unwrap();
                    }
                    text += "\r\n";
                }
                _ => write!(text, "\r\n{body}").unwrap(),
            }
            (text.into_bytes(), framing < 2)
        },
    )
}

proptest! {
    /// The outcome does not depend on how the network cuts a stream.
    #[test]
    fn cuts_change_nothing(
        (bytes, ends) in valid(), mut cuts in prop::collection::vec(0..600usize, 0..12), extra in "[a-z]{0,5}",
    ) {
        cuts.sort_unstable();
        let every: Vec<usize> = (0..=bytes.len()).collect();
        let expected = if ends {
            AnswerEnd::Read { used: bytes.len(), outcome: Outcome::Answered, reuse: Reuse::Keep }
        } else {
            AnswerEnd::Closed(Outcome::Answered)
        };
        let mut dialog = dialog("GET", None);
        prop_assert_eq!(&fed(&mut dialog, &bytes, &cuts), &expected);
        prop_assert_eq!(&fed(&mut dialog, &bytes, &every), &expected);
        if ends {
            let more = [bytes.as_slice(), extra.as_bytes()].concat();
            prop_assert_eq!(&fed(&mut dialog, &more, &cuts), &expected);
        }
    }

    /// Garbage, and answers with some bytes changed, never panic, never consume more than there is, and end the same
    /// way however they are cut.
    #[test]
    fn garbage_is_survived(
        (mut bytes, _) in valid(), changes in prop::collection::vec((0..600usize, any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..80), at in 0..100usize,
    ) {
        for (place, byte) in changes {
            if let Some(old) = bytes.get_mut(place) {
                *old = byte;
            }
        }
        bytes.splice(at.min(bytes.len())..at.min(bytes.len()), noise);
        let every: Vec<usize> = (0..=bytes.len()).collect();
        let mut dialog = dialog("GET", Some("a"));
        let (at_once, byte_by_byte) = (fed(&mut dialog, &bytes, &[]), fed(&mut dialog, &bytes, &every));
        match (&at_once, &byte_by_byte) {
            // A malformed answer is found as early as possible.
            (one, other) if is_broken(one) => prop_assert!(is_broken(other), "{one:?} {other:?}"),
            (one, other) => prop_assert_eq!(one, other),
        }
        if let AnswerEnd::Read { used, .. } = at_once {
            prop_assert!(used <= bytes.len());
        }
    }
}
