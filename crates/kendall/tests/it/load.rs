//! `kendall load` and what it leaves, against a real server.

use std::path::Path;
use std::process::{Command, Output};

use crate::served::{Served, kendall};
use kendall_archive::read_trial;
use serde_json::Value;

fn url(server: &Served, query: &str) -> String {
    format!("reverse://{}?{query}", server.address)
}

/// The scenario of the course's milestone, smaller and quicker, all arguments given.
fn load(server: &Served, more: &[&str]) -> Output {
    let url = url(server, "difficulty=3000&repeat-percent=21&priority-lambda=1.5");
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
    let (server, folder) = (Served::new(&["reverse", "--workers", "1"]), tempfile::tempdir().unwrap());
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

/// Where processors may be kept awake, the command that repeats the load does so as well; elsewhere it says what is missing.
#[test]
fn processors_are_kept_awake_or_it_says_why_not() {
    let server = Served::new(&["reverse", "--workers", "1"]);
    let output = load(&server, &["--seed", "7", "--json", "--keep-awake"]);
    if kendall_lab::Awake::keep().is_ok() {
        let again = json(&output)["again"].as_str().unwrap().to_owned();
        assert!(again.ends_with("--keep-awake --seed 7"), "{again}");
    } else {
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && words.contains("--keep-awake: the processors cannot be kept"),
            "{words}"
        );
    }
}

/// The form of the result is that of one thread, and the command that repeats it names the threads.
#[test]
fn several_threads_send_what_one_sends() {
    let server = Served::new(&["reverse", "--workers", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let rows = |threads: &str| {
        let record = folder.path().join(threads);
        let record_text = record.to_str().unwrap();
        let more = ["--seed", "7", "--json", "--generator-threads", threads, "--record", record_text];
        let found = json(&load(&server, &more));
        assert_eq!(found["run"]["ended"][0], 100, "{found}");
        let number = if threads == "1" { 0 } else { 2 };
        assert_eq!(found["run"]["threads"].as_array().map_or(0, Vec::len), number);
        let again = found["again"].as_str().unwrap();
        assert_eq!(again.contains("--generator-threads 2"), threads == "2", "{again}");
        let rows = read_trial(&record).unwrap();
        assert!(rows.is_sorted_by_key(|row| row.index));
        rows.iter().map(|row| (row.index, row.class, row.scheduled)).collect::<Vec<_>>()
    };
    assert_eq!(rows("2"), rows("1"));
    let refused = load(&server, &["--generator-threads", "3", "--connections", "2"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("--generator-threads: must be at most 2"), "{said}");
}

/// Run by a shell as it was printed, the command makes the same requests: its classes are as often each.
#[test]
fn the_seed_is_drawn_and_the_printed_command_repeats_the_requests() {
    let server = Served::new(&["reverse", "--workers", "1"]);
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
    let server = Served::new(&["reverse", "--workers", "1", "--most-candidates", "18446744073709551615"]);
    let endless = url(&server, "difficulty=4611686018427387904&priority-lambda=1");
    let arguments = ["--requests", "3", "--gap", "1us", "--timeout", "100ms"];
    let output = kendall().arg("load").arg(endless).args(arguments).output().unwrap();
    assert!(!output.status.success());
    let shown = String::from_utf8(output.stdout).unwrap();
    let score = shown.lines().find_map(|line| line.strip_prefix("score")).unwrap();
    let at_least_us = score.trim().strip_prefix("at least ").and_then(|rest| rest.split_whitespace().next());
    assert!(at_least_us.unwrap().parse::<u64>().unwrap() >= 100_000, "{shown}");
    assert!(
        shown.contains("right answers            0 %") && shown.contains("in the score as exactly"),
        "{shown}"
    );
}

#[test]
fn the_first_line_says_whether_the_run_can_be_trusted_and_the_record_has_a_page() {
    let (server, folder) = (Served::new(&["reverse", "--workers", "1"]), tempfile::tempdir().unwrap());
    let record = folder.path().join("record");
    let shown = text(&load(&server, &["--record", record.to_str().unwrap()]));
    let first = shown.lines().next().unwrap();
    let verdicts = ["Trustworthy: ", "Doubtful: ", "GENERATOR-LIMITED: "];
    assert!(verdicts.iter().any(|verdict| first.starts_with(verdict)), "{first}");
    for part in ["response time (from due)", "service time (from sent)", "send lag", "Little’s law"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
    // A hundred requests have no p99.
    let p99 = shown.lines().find(|line| line.starts_with("p99 ")).unwrap();
    assert!(p99.contains("needs 299 requests"), "{p99}");
    let page = std::fs::read_to_string(record.join("report.html")).unwrap().replace('\u{a0}', " ");
    for part in [first, "How many requests took how long", "Along time", "needs 299 requests"] {
        assert!(page.contains(part), "{part} is missing in the page");
    }
    std::fs::remove_file(record.join("report.html")).unwrap();
    text(&kendall().arg("report").arg(&record).output().unwrap());
    assert_eq!(std::fs::read_to_string(record.join("report.html")).unwrap().replace('\u{a0}', " "), page);
}

#[test]
fn what_is_expected_decides_the_exit_status() {
    let server = Served::new(&["reverse", "--workers", "1"]);
    // A pause of the machine can look like a system that does not keep up, which leaves means and quantiles undecided.
    let met = load(&server, &["--expect", "p50<10s", "--expect", "errors<50%", "--allow", "undecided"]);
    assert!(text(&met).contains("Expected errors < 50 %: met"));
    let failed = load(&server, &["--expect", "errors>50%", "--expect", "p50<10s"]);
    assert_eq!(failed.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&failed.stdout).contains("Expected errors > 50 %: failed"));
    // A hundred requests are too few to decide.
    let undecided = ["--json", "--expect", "p99<10s"];
    let stopped = load(&server, &undecided);
    let found: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    assert_eq!((&found["expectations"][0]["verdict"], stopped.status.code()), (&"undecided".into(), Some(3)));
    let allowed = load(&server, &[&undecided[..], &["--allow", "undecided"]].concat());
    assert_eq!(json(&allowed)["expectations"][0]["verdict"], "undecided");
    // But they refute what nearly all of them exceed.
    let refuted = load(&server, &["--expect", "p99<1ns", "--allow", "undecided"]);
    let shown = String::from_utf8_lossy(&refuted.stdout);
    assert!(refuted.status.code() == Some(4) || shown.contains("UNSTABLE"), "{shown}");
    let refused = load(&server, &["--expect", "p99"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("p99<50ms"));
}

#[test]
fn a_load_without_answers_fails_its_expectations_in_junit_too() {
    let folder = tempfile::tempdir().unwrap();
    let port = kendall_testbed::free_port();
    let output = kendall()
        .args(["load", &format!("http://127.0.0.1:{port}/"), "--rate", "100", "--requests", "10"])
        .args(["--expect", "p99<1s", "--junit", "junit.xml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let junit = std::fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    assert!(junit.contains("tests=\"1\"") && junit.contains("failures=\"1\""), "{junit}");
}

/// It would go on for ten minutes.
#[test]
fn a_run_ends_once_it_is_as_precise_as_asked() {
    let server = Served::new(&["reverse", "--workers", "1"]);
    let url = url(&server, "difficulty=3000");
    let arguments = [
        ["--rate", "2000"],
        ["--duration", "20s"],
        ["--precision", "60%"],
        ["--warmup", "auto"],
        ["--seed", "5"],
    ];
    let arguments = [arguments.as_flattened(), &["--json"]].concat();
    // A pause of the machine costs a run its precision: it then ends with its duration.
    let found = kendall_testbed::unless_disturbed(|| {
        let found = json(&kendall().arg("load").arg(&url).args(&arguments).output().unwrap());
        if found["precision"]["missing"] == 0 { Ok(found) } else { Err(found["precision"].to_string()) }
    });
    assert!(found["precision"]["reached"].as_f64().unwrap() <= 0.6);
    assert!(found["run"]["sent"].as_u64().unwrap() < 40_000, "it ends before its duration");
    let again = found["again"].as_str().unwrap();
    assert!(again.contains("--warmup auto --precision 0.6 --precision-of mean"), "{again}");
    // Every request that was due ended in one way.
    let ended = found["run"]["ended"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
    assert_eq!(ended.sum::<u64>(), found["run"]["sent"].as_u64().unwrap());
}
