//! Text search from the command line: files are made and asked, served, loaded and measured.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "sentences"
question = "What is a table for each type worth?"
repeats = 2
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "textsearch"
data-rows = 20000
layout = ["flat", "by-type"]
cache = 0
workers = 1
threads = 1

[workload]
mix = "literal=3,class,none"
patterns = 50
popularity = 1

[load]
rate = 60
duration = "800ms"

[[model]]
station = "M/G/1"
"#;

fn kendall(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.current_dir(folder).env("XDG_CACHE_HOME", folder.join("caches")).env_remove("NO_COLOR");
    command
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    kendall(folder).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let serve = ["serve", "textsearch", "--listen", "127.0.0.1:0"];
        let mut child = kendall(folder).args(serve).args(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.split_whitespace().last().unwrap().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_file_is_made_and_asked_from_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(&output(folder, &["textsearch", "generate", "made.txt", "--rows", "3000", "--types", "4"]));
    let text = fs::read_to_string(folder.join("made.txt")).unwrap();
    assert_eq!(text.lines().count(), 3000);
    for layout in ["flat", "by-type", "indexed"] {
        let ask = |request: &str, more: &[&str]| {
            let query = ["textsearch", "query", "made.txt", request, "--layout", layout];
            said(&output(folder, &[&query[..], more].concat()))
        };
        let wanted: String = text
            .split_inclusive('\n')
            .filter(|row| row.contains("the ") && (row.starts_with("1@@@") || row.starts_with("3@@@")))
            .collect();
        assert!(!wanted.is_empty());
        assert_eq!(ask("3,1;the ", &[]), wanted);
        assert_eq!(ask("3,1;the ", &["--count"]), format!("{}\n", wanted.lines().count()));
        let coloured = ask("3,1;the ", &["--colour", "always"]);
        assert!(coloured.contains("\u{1b}[1;31mthe \u{1b}[0m"));
        assert_eq!(coloured.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", ""), wanted);
        let sentences = ask("3,1;the ", &["--answer", "sentence"]);
        assert_eq!(sentences, wanted.replace("1@@@", "").replace("3@@@", ""));
    }
    for (arguments, words) in [
        (["made.txt", ";(a"], "rejected at character"),
        (["made.txt", "a"], "no `;`"),
        (["nowhere.txt", ";a"], "cannot read nowhere.txt"),
    ] {
        let output = output(folder, &[&["textsearch", "query"][..], &arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(words), "{error}");
    }
}

#[test]
fn an_index_is_made_checked_and_used_and_the_plan_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(&output(folder, &["textsearch", "generate", "made.txt", "--rows", "20000"]));
    let index = |more: &[&str]| output(folder, &[&["textsearch", "index", "made.txt"], more].concat());
    let explained = || {
        let query = ["textsearch", "query", "made.txt", ";Shakespeare", "--count", "--explain"];
        String::from_utf8(output(folder, &query).stderr).unwrap()
    };
    let error = index(&["--check"]).stderr;
    assert!(String::from_utf8_lossy(&error).contains("covers 0 of 20000 rows"), "{error:?}");
    let without = explained();
    assert!(
        without.contains("plan: literals") && without.contains("0 of these rows are indexed"),
        "{without}"
    );
    assert!(said(&index(&[])).contains("the index of 20000 rows is made in"));
    assert!(said(&index(&["--check"])).contains("is there, and read in"));
    let with = explained();
    assert!(with.contains("plan: index") && with.contains("20000 of these rows are indexed"), "{with}");
    let rows = fs::read_to_string(folder.join("made.txt")).unwrap();
    fs::write(folder.join("made.txt"), rows.replace("the", "tho")).unwrap();
    assert!(!index(&["--check"]).status.success(), "it is of other rows");
    fs::write(folder.join("made.txt.index"), "something else").unwrap();
    assert!(String::from_utf8_lossy(&index(&[]).stderr).contains("is not an index and was left unchanged"));
}

#[test]
fn a_server_answers_is_loaded_and_stops_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("data.txt"), "1@@@this man is \n2@@@no other man \n").unwrap();
    for protocol in ["lines", "utf"] {
        let mut server = Server::start(folder, &["--data", "data.txt", "--protocol", protocol]);
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (request, answer) = match protocol {
            "lines" => ("1;man\n", "1@@@this man is \n\n"),
            _ => ("\0\u{5}1;man", "\0\u{12}1@@@this man is \n\n"),
        };
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = vec![0; answer.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), answer);
        drop(stream);
        let url = format!("textsearch://{}?protocol={protocol}&types=2&mix=literal,all", server.address);
        let load = output(folder, &["load", &url, "--rate", "100", "--requests", "100", "--json"]);
        let load: Value = serde_json::from_str(&said(&load)).unwrap();
        assert_eq!(load["score"]["right"], 1.0, "{}", load["score"]);
        assert_eq!(load["run"]["ended"], serde_json::json!([100, 0, 0, 0, 0]));
        kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
        assert!(server.child.wait().unwrap().success());
    }
    let error = output(folder, &["serve", "textsearch", "--listen", "127.0.0.1:0"]).stderr;
    assert!(String::from_utf8_lossy(&error).contains("no data to search"));
    let priority = ["serve", "textsearch", "--data", "data.txt", "--discipline", "priority"];
    assert!(String::from_utf8_lossy(&output(folder, &priority).stderr).contains("requests have no priority"));
    let both = ["serve", "textsearch", "--data", "data.txt", "--data-rows", "5", "--listen", "127.0.0.1:0"];
    assert!(String::from_utf8_lossy(&output(folder, &both).stderr).contains("exclude each other"));
}

#[test]
fn an_experiment_goes_through_and_makes_its_data_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("sentences.toml"), EXPERIMENT).unwrap();
    let report: Value =
        serde_json::from_str(&said(&output(folder, &["run", "sentences.toml", "--json"]))).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        let measured = point["measured"]["response"]["mean_s"]["value"].as_f64().unwrap();
        let service = point["service"]["mean_s"].as_f64().unwrap();
        assert!(service > 0.0 && measured > service, "{measured}, {service}");
    }
    for trial in report["trials"].as_array().unwrap() {
        assert!(trial["counts"]["sent"].as_u64().unwrap() > 0);
        assert_eq!(trial["counts"]["sent"], trial["counts"]["answered"], "{trial}");
    }
    let made: Vec<_> = fs::read_dir(folder.join("caches/kendall/textsearch"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".txt"))
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
}
