use std::fs;

use super::*;
use crate::options::Version;

const HERE: ([u8; 4], u16) = ([127, 0, 0, 1], 8080);

fn options(url: &str) -> HttpOptions {
    HttpOptions::get(url)
}

fn requests(options: &HttpOptions) -> Result<Requests, String> {
    Requests::new(HERE.into(), options, 7).map_err(|error| error.to_string())
}

fn sent(options: &HttpOptions, index: u64) -> String {
    let requests = requests(options).unwrap();
    let bytes = requests.http1(requests.which(index), index, options.reuse);
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_get_is_what_a_url_says() {
    let text = sent(&options("http://localhost:{port}/a b?x={index}&y=é#part"), 5);
    let agent = concat!("user-agent: kendall/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        text,
        format!("GET /a%20b?x=5&y=%C3%A9 HTTP/1.1\r\nhost: localhost:8080\r\n{agent}\r\naccept: */*\r\n\r\n")
    );
    assert!(sent(&options("http://[::1]"), 0).starts_with("GET / HTTP/1.1\r\nhost: [::1]\r\n"));
    // The port that a scheme implies is left out.
    assert!(sent(&options("https://a.example:443"), 0).contains("host: a.example\r\n"));
}

#[test]
fn method_headers_and_body_are_as_asked() {
    let mut options = options("http://127.0.0.1:1/");
    options.request.body = Some("{\"n\": {index}}".into());
    options.request.headers =
        [("Host", "b.example"), ("X-Id", "{index}-{random:1}"), ("accept", "text/html")]
            .map(|(a, b)| (a.into(), b.into()))
            .into();
    options.reuse = Reuse::Close;
    let text = sent(&options, 12);
    assert!(text.starts_with("POST / HTTP/1.1\r\n"), "{text}");
    for line in
        ["host: b.example", "x-id: 12-0", "accept: text/html", "content-length: 9", "connection: close"]
    {
        assert_eq!(text.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line}: {text}");
    }
    assert!(text.ends_with("\r\n\r\n{\"n\": 12}"), "{text}");
    options.request.method = Some("PUT".into());
    options.request.body = None;
    assert!(sent(&options, 0).contains("\r\ncontent-length: 0\r\n"));
}

#[test]
fn the_same_request_is_rendered_once() {
    let requests = requests(&options("http://127.0.0.1:1/")).unwrap();
    let [one, other] = [1, 2].map(|index| requests.http1(0, index, Reuse::Keep));
    assert_eq!(one.as_ptr(), other.as_ptr());
}

#[test]
fn other_versions_say_the_same_in_their_words() {
    let mut options = HttpOptions { version: Version::Http2, ..options("https://a.example/x?{index}") };
    options.request.headers = [("host".into(), "b.example".into())].into();
    options.request.body = Some("abc".into());
    let requests = requests(&options).unwrap();
    let (request, body) = requests.filled(0, 3).into_request(requests.origin());
    assert_eq!(request.uri(), "https://b.example/x?3");
    assert!(!request.headers().contains_key("host"));
    assert_eq!((request.headers()["content-length"].as_bytes(), &body[..]), (&b"3"[..], &b"abc"[..]));
}

#[test]
fn invalid_requests_are_rejected() {
    let refused = |change: &dyn Fn(&mut HttpOptions)| {
        let mut options = options("http://127.0.0.1:1/");
        change(&mut options);
        requests(&options).unwrap_err()
    };
    let header = |name: &'static str, value: &'static str| {
        refused(&move |options| drop(options.request.headers.insert(name.into(), value.into())))
    };
    assert!(refused(&|options| options.url = "ftp://a".into()).contains("neither http nor https"));
    assert!(refused(&|options| options.url = "http://me@a".into()).contains("authorization"));
    assert!(refused(&|options| options.url = "127.0.0.1".into()).contains("127.0.0.1"));
    assert!(refused(&|options| options.request.method = Some("GE T".into())).contains("\"GE T\""));
    assert!(refused(&|options| options.request.method = Some("CONNECT".into())).contains("tunnel"));
    assert!(
        refused(&|options| options.request.path = Some("http://b/".into())).contains("all requests of a run")
    );
    assert!(refused(&|options| options.request.body_file = Some("/no/such".into())).contains("/no/such"));
    assert!(
        refused(&|options| options.request.expect_status = Some("20".into()))
            .contains("expect-status must be")
    );
    assert!(header("a b", "c").contains("\"a b\""));
    assert!(header("a", "c\r\nd: e").contains("headers cannot have"));
    assert!(header("Content-Length", "5").contains("kendall sets the header"));
    assert!(header("connection", "close").contains("set reuse"));
}

fn from_file(text: &str) -> Result<Requests, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests");
    fs::write(&path, text).unwrap();
    let mut options = options("http://127.0.0.1:1/base/");
    options.request.headers =
        [("x", "all"), ("y", "all")].map(|(name, value)| (name.into(), value.into())).into();
    options.requests_file = Some(path);
    requests(&options).map_err(|why| why.replace(&format!("{}/", folder.path().display()), ""))
}

const BOTH: [&str; 2] = [
    "[[request]]\nname = 'read'\nweight = 3\npath = 'item/{random:9}'\n\n\
     [[request]]\nmethod = 'POST'\npath = '/buy'\nheaders = { y = 'own' }\nbody = 'x'\nexpect-status = 201\n",
    "{\"name\": \"read\", \"weight\": 3, \"path\": \"item/{random:9}\"}\n\n\
     {\"method\": \"POST\", \"path\": \"/buy\", \"headers\": {\"y\": \"own\"}, \"body\": \"x\", \"expect-status\": \"201\"}\n",
];

#[test]
fn files_of_requests_are_toml_or_json_lines() {
    for text in BOTH {
        let requests = from_file(text).unwrap();
        assert_eq!(requests.shares().collect::<Vec<_>>(), [("read", 0.75), ("POST /buy", 0.25)]);
        let read = String::from_utf8(requests.http1(0, 4, Reuse::Keep).to_vec()).unwrap();
        assert!(read.starts_with("GET /base/item/") && read.contains("\r\ny: all\r\n"), "{read}");
        let buy = String::from_utf8(requests.http1(1, 4, Reuse::Keep).to_vec()).unwrap();
        assert!(
            buy.starts_with("POST /buy ") && buy.contains("\r\nx: all\r\n") && buy.contains("\r\ny: own\r\n"),
            "{buy}"
        );
        assert_eq!(requests.expect(1).statuses, "201".parse().unwrap());
    }
}

#[test]
fn requests_come_with_their_weights_and_depend_on_seed_and_index_alone() {
    let requests = from_file(BOTH[0]).unwrap();
    let n = 20_000;
    let first = (0..n).filter(|&index| requests.which(index) == 0).count() as f64;
    // Within five standard errors of 3 in 4: a false alarm in 1.7 million.
    assert!((first - 0.75 * n as f64).abs() <= 5.0 * (n as f64 * 0.75 * 0.25).sqrt(), "{first}");
    let again = from_file(BOTH[0]).unwrap();
    assert!((0..100).all(|index| requests.which(index) == again.which(index)));
    assert!(
        (0..100).all(|index| requests.http1(0, index, Reuse::Keep) == again.http1(0, index, Reuse::Keep))
    );
}

#[test]
fn every_error_in_a_file_names_its_line() {
    let two = "[[request]]\npath = '/a'\n\n[[request]]\n";
    for (text, line, what) in [
        (&*format!("{two}wieght = 1\n"), 5, "wieght"),
        (&format!("{two}weight = 0\n"), 4, "weight is 0"),
        (&format!("{two}weight = nan\n"), 4, "weight is NaN"),
        (&format!("{two}path = 5\n"), 5, "string"),
        (&format!("{two}path = '/a'\n"), 4, "two requests"),
        (&format!("{two}expect-status = 20\n"), 4, "expect-status must be"),
        (&format!("{two}body-file = 'x'\n"), 4, "an absolute path"),
        (&format!("{two}body = 'a'\nbody-file = '/x'\n"), 4, "remove one of them"),
        (&format!("{two}headers = {{ \"a b\" = '' }}\n"), 4, "\"a b\""),
        (&format!("{two}path = \n"), 5, ""),
        ("[request]\n", 1, ""),
        ("", 1, ""),
        ("request = []", 1, "no request"),
        ("{\"path\": \"/\"}\n{\"path\": 5}\n", 2, "invalid type"),
        ("{\"path\": \"/\"}\n\n{\"path\": \"/\"", 3, "EOF"),
        ("{\"path\": \"/\"}\n{\"pat\": \"/\"}", 2, "pat"),
    ] {
        let fault = from_file(text).unwrap_err();
        assert!(
            fault.starts_with(&format!("requests, line {line}: ")) && fault.contains(what),
            "{text}\n{fault}"
        );
    }
    assert!(from_file("\u{0}").is_err());
}
