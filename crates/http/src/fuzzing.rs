//! What must hold for any answer of a server, and for any file of requests, URL, pattern and expectation of a user.

use std::sync::Arc;

use kendall_load::{AnswerRead, Dialog, Request, Reuse};
use kendall_record::Outcome;
use kendall_testbed::fuzz::{Target, fed, however_cut, with_file};

use crate::chunked::{ChunkProgress, Chunks};
use crate::expect::{Statuses, Sum, Text};
use crate::http1::Http1;
use crate::options::HttpOptions;
use crate::origin::Origin;
use crate::pattern::{Filler, Pattern, unescaped};
use crate::requests::Requests;
use crate::written::{Written, read_file};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "http-answer", seeds: answer_seeds, run: answer },
    Target { name: "http-chunks", seeds: chunk_seeds, run: chunks },
    Target { name: "http-requests", seeds: request_seeds, run: requests },
    Target { name: "http-texts", seeds: text_seeds, run: texts },
];

/// The dialog reads an answer to the same end, however it is cut, and behind an interim answer, too.
fn answer(input: &[u8]) {
    let Some((&method, input)) = input.split_first() else { return };
    let mut options = HttpOptions::get("http://127.0.0.1:1/");
    options.request.method = Some(["GET", "HEAD"][usize::from(method % 2)].to_owned());
    options.request.expect_text = Some("ok".to_owned());
    let requests = Requests::new(([127, 0, 0, 1], 1).into(), &options, 1).expect("the request is valid");
    let requests = Arc::new(requests);
    however_cut(input, |pieces| {
        let mut dialog = Http1::new(Arc::clone(&requests));
        dialog.begin(0, &Request::new(0, Vec::new().into()));
        let end = fed(pieces, |bytes| match dialog.read(bytes) {
            AnswerRead::More { used } => (used, None),
            AnswerRead::Done { used, outcome, reuse } => (used, Some((outcome, reuse))),
        });
        match end {
            // An invalid answer is dropped as far as it has arrived.
            Some((_, (Outcome::Wrong, Reuse::Close))) => (None, dialog.status()),
            Some(end) => (Some(end), dialog.status()),
            None => (Some((0, (dialog.closed(), Reuse::Close))), dialog.status()),
        }
    });
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let answers = [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nx: y\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2, 2\r\n\r\nok",
        "HTTP/1.0 200 OK\nconnection: Keep-Alive\ncontent-length: 1\n\nx",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nok until the end",
    ];
    answers.map(|answer| [&[0, 7], answer.as_bytes()].concat()).to_vec()
}

/// The decoder finds the same body and end, however the bytes are cut.
fn chunks(input: &[u8]) {
    however_cut(input, |pieces| {
        let (mut chunks, mut body, mut used) = (Chunks::new(), Vec::new(), 0);
        for piece in pieces {
            match chunks.take(piece, |bytes| body.extend_from_slice(bytes)) {
                ChunkProgress::All => used += piece.len(),
                ChunkProgress::Ended(length) => return (body, Some(used + length)),
                // The body before the fault depends on the cut.
                ChunkProgress::Malformed => return (Vec::new(), None),
            }
        }
        assert!(body.len() <= used);
        (body, Some(used))
    });
}

fn chunk_seeds() -> Vec<Vec<u8>> {
    [
        "\x05\x35;name=\"a b\"\r\nhello\r\nA \r\n, world...\r\n000\r\nx-sum: 1\r\ny:\r\n\r\nHTTP",
        "\x010\r\n\r\n",
    ]
    .map(Vec::from)
    .to_vec()
}

/// A file of requests has requests that can be sent, or an error that names its line.
fn requests(input: &[u8]) {
    with_file("requests", input, |path| match read_file(path, &Written::default()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(written) => {
            assert!(!written.is_empty() && written.len() <= input.len());
            if written.iter().any(|(written, _)| written.body_file.is_some()) {
                return;
            }
            let mut options = HttpOptions::get("http://127.0.0.1:1/");
            options.requests_file = Some(path.to_owned());
            let Ok(requests) = Requests::new(([127, 0, 0, 1], 1).into(), &options, 1) else { return };
            for index in [0, 9, u64::MAX] {
                assert!(!requests.http1(requests.which(index), index, Reuse::Keep).is_empty());
            }
        }
    });
}

fn request_seeds() -> Vec<Vec<u8>> {
    vec![
        b"[[request]]\npath = \"a/{index}\"\nmethod = \"POST\"\nbody = \"{ 1 }\"\nweight = 2\nheaders.x = \"{random:5}\"\n\
          expect-status = 200\n"
            .to_vec(),
        b"{\"path\": \"/\", \"expect-text\": \"ok\"}\n{\"name\": \"b\", \"headers\": {\"x\": \"{random}\"}}".to_vec(),
    ]
}

/// URLs, hosts, expectations and patterns. A pattern without placeholders stays itself.
fn texts(input: &[u8]) {
    let pattern = Pattern::read(input);
    let mut filled = Vec::new();
    pattern.fill(&mut Filler::new(1, 2), &mut filled);
    assert!(!pattern.is_fixed() || filled == input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok((origin, url)) = Origin::read(text) {
        let again = Origin::read(url.as_str()).map(|(origin, _)| origin).ok();
        assert_eq!(again, Some(origin));
        assert!(unescaped(url.as_str()).len() <= url.as_str().len());
    }
    let _ = (text.parse::<Statuses>(), text.parse::<Text>(), text.parse::<Sum>());
}

fn text_seeds() -> Vec<Vec<u8>> {
    ["http://[::1]:80/{index}?a={random:7}#x", "example.org:80", "200,204,300-399", "ok", &"ab".repeat(32)]
        .map(Vec::from)
        .to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
