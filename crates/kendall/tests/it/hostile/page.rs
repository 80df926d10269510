//! Hostile requests to the page of `kendall web`: nothing is served from outside its folder, or without its token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::fixtures::Fixtures;
use super::secrets::SECRET;
use super::server::Server;
use super::world::{GUARDED, contains};
use kendall_testbed::hostile::{Draw, campaign, damaged};

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get",
    "G\u{0}T", "", "GET GET", "PRI",
];

/// Places of the site, as files of it lie: results is `web`.
const PLACES: &[&str] = &[
    "/",
    "/list",
    "/list?q=x&page=99999999999999999999",
    "/runs/x/1/",
    "/runs/x/1/report.html",
    "/runs/x/1/answer.json",
    "/events/x/1",
    "/picture/x/1",
    "/stop/x/1",
    "/resume/x/1",
    "/compare?a=x/1&b=x/1",
    "/compare?run=x/1&run=../../guard",
    "/assets/0/page.css",
    "/favicon.ico",
    "/runs/x/1/trials/",
    "http://127.0.0.1/",
    "*",
    "127.0.0.1:80",
    "",
    "/runs/x/1/experiment.toml",
    "/runs/x/1/manifest.json",
];

/// Ways out of a folder.
const OUT: &[&str] = &[
    "../guard/file",
    "../../guard/file",
    "../../../guard/file",
    "..%2f..%2fguard%2ffile",
    "%2e%2e/%2e%2e/guard/file",
    "..%5c..%5cguard",
    "....//....//guard/file",
    "%252e%252e%252fguard%252ffile",
    "..;/guard/file",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "%00",
    "report.html%00.txt",
    "file%0d%0aX: y",
    "~",
    ".",
    "link",
    "leading/file",
    "a/../../../../guard/file",
    "\u{ff0e}\u{ff0e}/guard/file",
    "%c0%ae%c0%ae/guard/file",
    "?token=",
    "%",
    "%zz",
    "report.html/../../../../guard/file",
];

const HEADERS: &[&str] = &[
    "host: evil.example",
    "host: 127.0.0.1\r\nhost: evil.example",
    "host:",
    "host: 127.0.0.1@evil.example",
    "host: [::1",
    "host: 127.0.0.1:99999",
    "host : 127.0.0.1",
    "content-length: -1",
    "content-length: 99999999999999999999",
    "content-length: 5\r\ncontent-length: 6",
    "transfer-encoding: chunked",
    "transfer-encoding: chunked\r\ncontent-length: 3",
    "transfer-encoding: xchunked",
    "origin: null",
    "origin: http://evil.example",
    "range: bytes=0-1,1-2,2-3,999999999999999999999-",
    "range: bytes=-0",
    "accept-encoding: gzip;q=NaN",
    "if-none-match: *",
    "if-modified-since: Thu, 99 Foo 99999 99:99:99 GMT",
    "upgrade: h2c\r\nconnection: upgrade",
    "expect: 100-continue",
    "x: \u{0}",
    "\u{e9}: x",
    "no colon",
    " folded: x\r\n y",
    "cookie: kendall-80=; kendall-81",
    "last-event-id: -1",
    "last-event-id: 99999999999999999999",
    "authorization: Basic x",
    "accept: text/html",
    "connection: close",
];

#[test]
fn no_request_makes_the_page_fail_or_leak() {
    let fixtures = Fixtures::with_records();
    let folder = fixtures.path().join("web/x");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(fixtures.path().join("run"), folder.join("1")).unwrap();
    let server =
        Server::start(fixtures.path(), &["web", "web", "--listen", "127.0.0.1:0", "--token-file", "token"]);
    let run = server.world().here().join("web/x/1");
    std::os::unix::fs::symlink("../../../../guard/file", run.join("link")).unwrap();
    std::os::unix::fs::symlink("../../../../guard", run.join("leading")).unwrap();
    let (url, token) = server.address.split_once("?token=").unwrap();
    let (address, token) =
        (url.trim_start_matches("http://").trim_end_matches('/').to_owned(), token.to_owned());
    assert!(token.starts_with(SECRET));
    let before = server.world().snapshot();
    campaign("page", 320, |number, draw| {
        let with_token = number % 2 == 0;
        let request = request(&address, with_token.then_some(&token), draw);
        let answer = answered(&address, &request);
        let shown = || String::from_utf8_lossy(&request[..request.len().min(400)]).into_owned();
        server.check()?;
        if contains(&answer, GUARDED.as_bytes()) || contains(&answer, b"root:x:0") {
            return Err(format!("a file outside the folder is served to {}", shown()));
        }
        if !answer.is_empty() && !answer.starts_with(b"HTTP/1.") {
            return Err(format!("the answer is not of HTTP to {}", shown()));
        }
        let status =
            answer.get(9..12).map(|status| String::from_utf8_lossy(status).into_owned()).unwrap_or_default();
        let head_ends = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
        if !with_token
            && (status.starts_with('2') && status != "200"
                || contains(&answer, b"How long?")
                || contains(&answer, token.as_bytes()))
        {
            return Err(format!("status {status} and content without the token to {}", shown()));
        }
        // An error is not empty, except to HEAD.
        if status.starts_with(['4', '5']) && answer.len() == head_ends && answer.len() < 12 {
            return Err(format!("status {status} without an answer to {}", shown()));
        }
        if status == "500" { Err(format!("status 500 to {}", shown())) } else { Ok(()) }
    });
    let sound = format!(
        "GET / HTTP/1.1\r\nhost: {address}\r\ncookie: {}\r\nconnection: close\r\n\r\n",
        cookie(&address, &token)
    );
    let answer = String::from_utf8(answered(&address, sound.as_bytes())).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("How long?"), "{answer}");
    let guarded = |name: &str| server.world().snapshot().get(std::path::Path::new(name)).cloned();
    assert_eq!(guarded("guard/file"), before.get(std::path::Path::new("guard/file")).cloned());
    server.stop().unwrap();
}

fn cookie(address: &str, token: &str) -> String {
    format!("kendall-{}={token}", address.rsplit(':').next().unwrap())
}

/// A request by the grammar of HTTP, in which something is hostile.
fn request(address: &str, token: Option<&String>, draw: &mut Draw) -> Vec<u8> {
    let mut target = draw.pick(PLACES).to_owned();
    match draw.below(6) {
        0..3 => {
            target = draw
                .pick(&[
                    "/runs/x/1/",
                    "/runs/",
                    "/",
                    "/events/",
                    "/picture/x/",
                    "/assets/",
                    "/resume/x/",
                    "/runs/x/1/trials/",
                ])
                .to_owned();
            target += draw.pick(OUT);
        }
        3 => {
            target += &draw.pick(&["a", "%41", "/..", "?a=b&", "é"]).repeat([50, 5000, 60_000][draw.below(3)])
        }
        _ => {}
    }
    let version = draw.pick(&[
        "HTTP/1.1",
        "HTTP/1.1",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/2.0",
        "HTTP/9.9",
        "HTTP/1.1 x",
        "",
        "http/1.1",
    ]);
    let mut head = format!("{} {target} {version}\r\n", draw.pick(METHODS));
    if draw.percent(80) {
        head += &format!("host: {address}\r\n");
    }
    if let Some(token) = token {
        head += &format!("cookie: {}\r\norigin: http://{address}\r\n", cookie(address, token));
    } else if draw.percent(30) {
        head += &format!(
            "cookie: {}\r\n",
            cookie(address, draw.pick(&["", "x", "s3cret-of-fault", "s3cret-of-faults-of-the-pagf"]))
        );
    }
    for _ in 0..draw.below(4) {
        head += draw.pick(HEADERS);
        head += "\r\n";
    }
    if draw.percent(10) {
        head += &"x-long: ".repeat(1 + draw.below(3)).replace(": ", "");
        head += &format!(": {}\r\n", "y".repeat([1000, 100_000, 1_000_000][draw.below(3)]));
    }
    if draw.percent(10) {
        head += &"a: b\r\n".repeat([99, 101, 20_000][draw.below(3)]);
    }
    let mut request = head.into_bytes();
    if draw.percent(95) {
        request.extend(b"\r\n");
    }
    if draw.percent(20) {
        request.extend(draw.bytes(100));
    }
    if draw.percent(25) { damaged(&request, draw) } else { request }
}

/// What comes back until the server has nothing more to say.
fn answered(address: &str, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    while answer.len() < 4 << 20 {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => answer.extend(&piece[..bytes]),
        }
    }
    answer
}
