//! Secrets in every place that takes them, while something else goes wrong: what is printed or kept has none.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::fixtures::Fixtures;
use super::judge::try_in;
use kendall_testbed::hostile::{Draw, campaign, damaged_text};

/// Every secret of the campaign begins like this.
pub(super) const SECRET: &str = "s3cret-of-faults";

/// A load with secrets in `{URL}` and options.
const LOADS: &[&[&str]] = &[
    &["{URL}", "--header=Authorization: Bearer {SECRET}"],
    &["{URL}", "--header=x-api-key:{SECRET}"],
    &["{URL}", "--header=Cookie: a=1; session={SECRET}"],
    &["{URL}", "--header=X-Customer: {SECRET}", "--secret=x-customer"],
    &["{URL}", "--header=@headers"],
    &["{URL}", "--header=X-Id: ${KENDALL_TEST_TOKEN}"],
    &["{URL}?page=1&token={SECRET}"],
    &["{URL}?voucher={SECRET}&page=2", "--secret=voucher"],
    &["{URL}", "--body=${KENDALL_TEST_TOKEN}"],
    &["{URL}", "--otlp=http://user:{SECRET}@127.0.0.1:1/"],
    &["{URL}", "--otlp=http://127.0.0.1:1/?token={SECRET}"],
    // No address that can be sent to.
    &["{URL}", "--otlp=https://user:{SECRET}@127.0.0.1:1/"],
    &["{URL}", "--remote-write=http://user:{SECRET}@127.0.0.1:1/write"],
    &["{USER}"],
    &["{URL}", "--header=Authorization Bearer {SECRET}"],
    &["{URL}", "--header=Authorization: {SECRET}\u{1}\u{7f}"],
    &["{URL}", "--header=Autho rization: {SECRET}"],
    &["{URL}", "--header=Authorization: {SECRET}\r\nX: y"],
    &["{URL}", "--header=Authorization: {SECRET}", "--header=Authorization: {SECRET}2"],
    &["{URL}?token={SECRET}&token={SECRET}2", "--header=X-Api-Key: é{SECRET}"],
    &["{URL}", "--header=X-Auth-Token: {SECRET} {random} {index}"],
];

/// What goes wrong beside the secret.
const BESIDE: &[&[&str]] = &[
    &[],
    &["--record=out"],
    &["--record=out", "--export=json", "--export=csv"],
    &["--json"],
    &["--log=trace"],
    &["--log=debug", "--record=out"],
    &["--expect-text=none"],
    &["--expect-status=204"],
    &["--expect=p99<1ns"],
    &["--junit=out", "--expect=errors<1%"],
    &["--rate=NaN"],
    &["--none"],
    &["--http=2"],
    &["--http=3"],
    &["--http=9"],
    &["--method=G T"],
    &["--requests-file=table.csv"],
    &["--record=folder"],
    &["--body-file=none"],
    &["--ca=notes"],
    &["--header=@none"],
    &["--header=@binary"],
    &["--header=X: ${NONE}"],
    &["--connections=0"],
];

/// A line of an experiment or of a file of requests with a secret.
const LINES: &[(&str, &str)] = &[
    ("x.toml", "header = \"Authorization: Bearer {SECRET}\""),
    ("x.toml", "header = '''\nX-Api-Key: {SECRET}\nX: y'''"),
    ("x.toml", "header = \"Authorization: Bearer {SECRET}"),
    ("x.toml", "header = [\"Authorization: {SECRET}\"]"),
    ("x.toml", "header = \"Authorization {SECRET}\""),
    ("x.toml", "url = \"{URL}?token={SECRET}\""),
    ("x.toml", "url = \"{USER}\""),
    ("x.toml", "url = \"http://127.0.0.1:99999/?token={SECRET}\""),
    ("x.toml", "header = \"X-Customer: {SECRET}\"\nsecret = \"x-customer\""),
    ("requests.toml", "headers = { Authorization = \"{SECRET}\" }"),
    ("requests.toml", "headers = { Authorization = \"{SECRET} }"),
    ("requests.toml", "path = \"/?token={SECRET}\""),
    ("requests.jsonl", "{\"path\":\"/\",\"headers\":{\"Cookie\":\"a={SECRET}\"}}"),
    ("requests.jsonl", "{\"path\":\"/\",\"headers\":{\"Cookie\":\"a={SECRET}\"}"),
];

/// Files of passwords and tokens, and the commands that read them.
const FILES: &[(&str, &str, &str)] = &[
    ("token", "{SECRET} \u{1b}[2J !", "web folder --listen=127.0.0.1:0 --token-file=token"),
    ("token", "{SECRET}\n{SECRET}", "web folder --listen=127.0.0.1:99999 --token-file=token"),
    ("token", "{SECRET}é", "web folder --listen=127.0.0.1:0 --token-file=token"),
    ("password", "{SECRET}", "chat register ann --server=127.0.0.1:1 --password-file=password"),
    ("password", "{SECRET}", "chat register ann --server=none:x --password-file=password --log=trace"),
    ("password", "{SECRET}", "chat register {INDEX}\u{1b}[2J --server=127.0.0.1:1 --password-file=password"),
    ("password", "{SECRET}", "chat contacts --password-file=password"),
    ("notes", "x", "recover encrypt notes --password={SECRET} --out=out"),
    ("notes", "x", "recover encrypt none --password={SECRET}"),
    ("headers", "Authorization {SECRET}", "load {URL} --rate=20 --requests=1 --quiet --header=@headers"),
    (
        "headers",
        "X-Api-Key: {SECRET}\n\u{0}: {SECRET}",
        "load {URL} --rate=20 --requests=1 --quiet --header=@headers",
    ),
];

#[test]
fn no_secret_is_printed_or_kept() {
    let fixtures = Fixtures::new();
    let servers = [serve(sound), serve(echoing), serve(broken)];
    campaign("secrets", 150, |number, draw| {
        let world = fixtures.world();
        let host = match draw.below(servers.len() + 1) {
            3 => "127.0.0.1:1".into(),
            which => servers[which].to_string(),
        };
        let fill = |text: &str| {
            let text = text
                .replace("{URL}", &format!("http://{host}/"))
                .replace("{SECRET}", &format!("{SECRET}-{number}"));
            text.replace("{USER}", &format!("http://user:{SECRET}-{number}@{host}/"))
                .replace("{INDEX}", &number.to_string())
        };
        let words = |line: &str| -> Vec<String> { line.split(' ').map(&fill).collect() };
        let arguments: Vec<String> = match draw.below(10) {
            0..5 => {
                let mut arguments =
                    words(["load", "load", "peak --slo=p99<1s --duration=100ms"][draw.below(3)]);
                if arguments[0] == "load" {
                    arguments.extend(words("--rate=40 --requests=4 --quiet"));
                }
                let load = LOADS[number as usize % LOADS.len()];
                let beside = BESIDE[draw.below(BESIDE.len())];
                arguments.extend(load.iter().chain(beside).map(|word| fill(word)));
                arguments
            }
            5..8 => {
                let (file, line) = LINES[number as usize % LINES.len()];
                let path = world.here().join(file);
                fs::write(&path, fill(&with_line(file, line, draw))).unwrap();
                match file {
                    "x.toml" => words(
                        ["plan x.toml", "run x.toml --results=out", "run x.toml --results=out --log=trace"]
                            [draw.below(3)],
                    ),
                    _ => words(&format!(
                        "load {{URL}} --rate=40 --requests=4 --quiet --record=out --requests-file={file}"
                    )),
                }
            }
            _ => {
                let (file, content, command) = FILES[number as usize % FILES.len()];
                fs::write(world.here().join(file), fill(content)).unwrap();
                words(command)
            }
        };
        try_in(&world, arguments.into_iter().map(OsString::from).collect(), true).map(drop)
    });
}

/// An experiment with HTTP or a file of requests, with a line that has a secret; something else in it may be damaged.
fn with_line(file: &str, line: &str, draw: &mut Draw) -> String {
    let (before, after) = match file {
        "x.toml" => (
            "name = \"x\"\nquestion = \"?\"\nrepeats = 1\n[system]\nname = \"http\"\n[workload]\n",
            "\n[load]\nrate = 50\nduration = \"200ms\"\nwarmup = \"0s\"\n",
        ),
        "requests.toml" => ("[[request]]\nname = \"one\"\nweight = 2\n", "\n[[request]]\npath = \"/two\"\n"),
        _ => ("{\"path\":\"/one\"}\n", "\n{\"path\":\"/two\"}\n"),
    };
    let url = if file == "x.toml" && !line.starts_with("url") { "url = \"{URL}\"\n" } else { "" };
    let partly_damaged = |text: &str, draw: &mut Draw| match draw.percent(25) {
        true => String::from_utf8_lossy(&damaged_text(text, draw)).into_owned(),
        false => text.to_owned(),
    };
    let before = partly_damaged(before, draw);
    format!("{before}{url}{line}{}", partly_damaged(after, draw))
}

/// A server on threads that live as long as the tests.
fn serve(answer: fn(&str) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(thread::spawn(move || meet(&stream, answer))))
    });
    address
}

fn meet(mut stream: &TcpStream, answer: fn(&str) -> String) {
    let mut head = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        head += &line;
        head += " ";
        if line.is_empty() && stream.write_all(answer(&std::mem::take(&mut head)).as_bytes()).is_err() {
            return;
        }
    }
}

fn sound(_: &str) -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".into()
}

/// Answers with what it was sent.
fn echoing(head: &str) -> String {
    format!(
        "HTTP/1.1 500 {head}\r\nx-head: {head}\r\nlocation: /{head}\r\ncontent-length: {}\r\n\r\n{head}",
        head.len()
    )
}

fn broken(head: &str) -> String {
    format!("HTTP/9.9 {head}\r\n\u{0}{head}")
}
