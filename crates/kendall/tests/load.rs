//! `kendall load` and what it leaves, against a real server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use kendall_record::read_trial;
use serde_json::Value;

/// `kendall serve reverse` on a free port, for as long as it is held.
struct Served {
    child: Child,
    address: String,
    /// Its end stops the server.
    stdin: Option<ChildStdin>,
}

impl Served {
    fn new() -> Self {
        let mut child = kendall()
            .args(["serve", "reverse", "--listen", "127.0.0.1:0", "--workers", "1", "--until-stdin-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        let stdin = child.stdin.take();
        Self { child, address, stdin }
    }

    fn url(&self, query: &str) -> String {
        format!("reverse://{}?{query}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}

fn kendall() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kendall"))
}

/// The scenario of the course's milestone, smaller and quicker, all arguments given.
fn load(server: &Served, more: &[&str]) -> Output {
    let url = server.url("difficulty=3000&repeat-percent=21&priority-lambda=1.5");
    let fixed =
        ["--requests", "100", "--arrivals", "constant", "--gap", "2ms", "--timeout", "1h", "--drain", "1h"];
    kendall().arg("load").arg(url).args(fixed).args(more).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// The score by hand, from the rows of the record.
fn score_us(record: &Path) -> u64 {
    let rows = read_trial(record).unwrap();
    let weighted =
        rows.iter().map(|row| u64::from(row.class + 1) * (row.response_ns().unwrap() / 1000) as u64);
    weighted.sum::<u64>() / rows.len() as u64
}

#[test]
fn the_score_and_the_classes_are_those_of_the_record() {
    let (server, folder) = (Served::new(), tempfile::tempdir().unwrap());
    let record = folder.path().join("record");
    let found = json(&load(&server, &["--seed", "3435245", "--json", "--record", record.to_str().unwrap()]));
    let score = &found["score"];
    assert_eq!(score["weighted_response_us"], score_us(&record));
    assert_eq!((&score["right"], &score["without_answer"]), (&Value::from(1.0), &Value::from(0)));
    let classes = score["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 16);
    assert_eq!((&classes[1]["name"], &classes[1]["weight"]), (&Value::from("priority 2"), &Value::from(2.0)));
    let requests: u64 = classes.iter().map(|class| class["requests"].as_u64().unwrap()).sum();
    assert_eq!(requests, 100);

    let again = kendall().args(["report", "--json"]).arg(&record).output().unwrap();
    assert_eq!(json(&again), found);
    let shown = text(&kendall().arg("report").arg(&record).output().unwrap());
    for part in ["right answers            100 %", "score", "priority 2 "] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

/// Run by a shell as it was printed, the command makes the same requests: its classes are as often each.
#[test]
fn the_seed_is_drawn_and_the_printed_command_repeats_the_requests() {
    let server = Served::new();
    let first = json(&load(&server, &["--json"]));
    let seeds = [&first, &json(&load(&server, &["--json"]))].map(|found| found["seed"].as_u64().unwrap());
    assert_ne!(seeds[0], seeds[1]);
    let command = first["again"].as_str().unwrap().strip_prefix("kendall ").unwrap();
    let again = Command::new("sh")
        .args(["-c", &format!("\"$0\" {command} --json"), env!("CARGO_BIN_EXE_kendall")])
        .output()
        .unwrap();
    let again = json(&again);
    assert_eq!((&again["seed"], &again["again"]), (&first["seed"], &first["again"]));
    let counts = |found: &Value| -> Vec<Value> {
        found["score"]["classes"].as_array().unwrap().iter().map(|class| class["requests"].clone()).collect()
    };
    assert_eq!(counts(&again), counts(&first));
}

#[test]
fn requests_without_an_answer_make_the_score_a_lower_bound() {
    let server = Served::new();
    let endless = server.url("difficulty=4611686018427387904");
    let arguments = ["--requests", "3", "--gap", "1us", "--timeout", "100ms"];
    let output = kendall().arg("load").arg(endless).args(arguments).output().unwrap();
    assert!(!output.status.success());
    let shown = String::from_utf8(output.stdout).unwrap();
    let score = shown.lines().find_map(|line| line.strip_prefix("score")).unwrap();
    let at_least_us = score.trim().strip_prefix("at least ").and_then(|rest| rest.split_whitespace().next());
    assert!(at_least_us.unwrap().parse::<u64>().unwrap() >= 100_000, "{shown}");
    assert!(
        shown.contains("right answers            0 %") && shown.contains("in the score the others end"),
        "{shown}"
    );
}
