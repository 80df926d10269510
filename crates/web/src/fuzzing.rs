//! What must hold for any address of a page: its query, the names of runs, and the heads of requests.

use axum::extract::Query;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use kendall_evidence::fit::Load;
use kendall_testbed::fuzz::Target;

use crate::door::{Door, Entry, Readers};
use crate::id::RunId;
use crate::what_if::Question;
use crate::what_if::question::AnsweredValues;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "web-question", seeds: question_seeds, run: question },
    Target { name: "web-entry", seeds: entry_seeds, run: entry },
];

/// A question has an address, and the address holds the same question. A run's name leads to no other folder.
fn question(input: &[u8]) {
    let Ok(query) = std::str::from_utf8(input) else { return };
    if let Some(question) = asked(&format!("/what-if?{query}")) {
        let load = question.load(5.0, 1.0);
        assert!(
            matches!(load, Load::Open { rate_per_s } if rate_per_s > 0.0)
                || matches!(load, Load::Closed { users: 1.., .. })
        );
        let address = AnsweredValues::of(&question, load).address();
        assert_eq!(asked(&address).map(|again| again.run), Some(question.run), "{address}");
    }
    if let Some(run) = RunId::parse(query) {
        assert!(!run.to_string().split('/').any(|part| matches!(part, "" | "." | "..")));
        assert_eq!(RunId::parse(&run.to_string()), Some(run));
    }
}

fn asked(address: &str) -> Option<Question> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&address.parse().ok()?).ok()?;
    Question::of(&pairs).ok()
}

fn question_seeds() -> Vec<Vec<u8>> {
    [
        "run=web%2Fa/2026-11-21T16-30-00Z&group=a%3D1&rate=50&law=E2&servers=3",
        "law=H2&scv=3&service=20ms&users=10&think=1s&discipline=ps&delay=5ms&more-delay=1ms&duration=1m&curve=on",
        "sweep/2026-11-21T16-30-00Z",
    ]
    .map(Vec::from)
    .to_vec()
}

/// A request that starts a program is let in with the token only. The lines are query, Host, Origin and Cookie.
fn entry(input: &[u8]) {
    const TOKEN: &str = "a-token-of-a-page";
    let door = Door::new(([127, 0, 0, 1], 8080).into(), TOKEN.to_owned(), Readers::All);
    let mut lines = input.split(|byte| *byte == b'\n');
    let query = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let mut headers = HeaderMap::new();
    for (name, line) in [header::HOST, header::ORIGIN, header::COOKIE].into_iter().zip(lines) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let has_token = input.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes());
    let post = door.entry(&Method::POST, query, &headers);
    assert!(has_token || matches!(post, Entry::Refused(..)), "{post:?}");
    let get = door.entry(&Method::GET, query, &headers);
    assert!(headers.contains_key(header::HOST) || matches!(get, Entry::Refused(..)), "{get:?}");
}

fn entry_seeds() -> Vec<Vec<u8>> {
    [
        "a=b&token=a-token-of-a-page\n127.0.0.1:8080\nhttp://127.0.0.1:8080",
        "\nlocalhost:8080\nhttp://localhost:8080\na=b; kendall-8080=a-token-of-a-page",
        "\n[::1]\nnull",
    ]
    .map(Vec::from)
    .to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
