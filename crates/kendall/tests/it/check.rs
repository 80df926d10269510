//! `kendall check` of a table.

use std::process::{Command, Output};

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).arg("check").args(arguments).output().unwrap()
}

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/file-recovery.csv");

#[test]
fn a_table_is_checked_as_text_and_as_json() {
    let text = check(&[TABLE]);
    assert!(text.status.success());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("Broken: 8\n") && text.contains("multiplied by 6!"), "{text}");
    let json = check(&[TABLE, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let broken = |finding: &&serde_json::Value| finding["verdict"] == "broken";
    assert_eq!(json["findings"].as_array().unwrap().iter().filter(broken).count(), 8);
}

#[test]
fn the_backlog_that_a_model_leaves_out_is_found() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/text-search.csv");
    let text = String::from_utf8(check(&[table]).stdout).unwrap();
    // One line, however wide the terminal.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["capacity is 51 (1 in service and 50 in the backlog)", "19 are rejected", "a sum of response times"]
    {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
}

#[test]
fn a_table_that_is_not_there_is_an_error_that_names_it() {
    let missing = check(&["no-such-table.csv"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8(missing.stderr).unwrap().contains("no-such-table.csv"));
}
