//! `kendall fit` and `kendall predict`, as a user types them.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn kendall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn example(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../examples", name].iter().collect();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_table_is_fitted_and_the_model_named() {
    let output = kendall(&["fit", &example("chat-mysql.csv"), "--servers", "4"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for words in [
        "13 points, 1 user to 100 users",
        "Left out: line 16, 45 users",
        "37.6, but there are 35 users",
        "fitted on 10 points up to 35 users",
        "Best: delay + M/M/4 + serial part",
        "the bottleneck is the serial part",
    ] {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
    let output = kendall(&["fit", &example("chat-mysql.csv"), "--servers", "4", "--json"]);
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["fit"]["candidates"][0]["name"], "delay + M/M/4 + serial part");
}

/// Two points have no load and the others no response time, so there is nothing to fit, but there are findings.
#[test]
fn a_table_that_contradicts_itself_says_so_before_the_fit_and_without_one() {
    let output = kendall(&["fit", &example("file-recovery.csv")]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.starts_with("Broken: 8\n") && text.contains("multiplied by 6!"), "{text}");
    let words = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(words.contains("cannot fit") && words.contains("a fit needs three"), "{words}");
    let output = kendall(&["fit", &example("file-recovery.csv"), "--json"]);
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(json["fit"].is_null());
    let broken = json["findings"].as_array().unwrap().iter().filter(|finding| finding["verdict"] == "broken");
    assert_eq!(broken.count(), 8);
    let text = stdout(&kendall(&["fit", &example("chat-mysql.csv")]));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words:?} is missing in:\n{text}"));
    assert!(at("under two labels") < at("Best:"));
}

#[test]
fn a_prediction_has_its_interval_and_an_overload_its_status() {
    let table = example("web.csv");
    let output =
        kendall(&["predict", &table, "--delay", "0.005", "--rate", "180", "--slo", "p99<150ms", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let mean = &json["prediction"]["forecast"]["response"]["mean_s"];
    let (low, high) = (mean["interval"][0].as_f64().unwrap(), mean["interval"][1].as_f64().unwrap());
    let value = mean["value"].as_f64().unwrap();
    assert!(0.0 < low && low < value && value < high, "{mean}");
    assert!(json["prediction"]["servers_needed"]["value"].as_f64().unwrap() > 4.0);
    let output = kendall(&["predict", &table, "--delay", "0.005", "--rate", "300"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("No answer: overload: at 300/s"), "{output:?}");
    let more = kendall(&["predict", &table, "--delay", "0.005", "--rate", "300", "--with-servers", "8"]);
    assert!(more.status.success() && stdout(&more).contains("At 300/s"), "{more:?}");
}

#[test]
fn what_cannot_be_read_is_told_by_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    std::fs::write(&file, "rate_per_s,response_mean_ms\n1,2\n2,slow\n").unwrap();
    let output = kendall(&["fit", file.to_str().unwrap()]);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("line 3, column \"response_mean_ms\": \"slow\" is not a number"), "{words}");
    assert_eq!(output.status.code(), Some(1));
}

/// Values at the ends of what can be written are fitted or left out with a sentence, and long lists of these are cut.
#[test]
fn extreme_and_many_points_end_with_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points.csv");
    let path = file.to_str().unwrap();
    let fitted = |table: &str| {
        std::fs::write(&file, table).unwrap();
        let output = kendall(&["fit", path]);
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    let text =
        fitted("rate_per_s,response_mean_s\n1e-320,0.01\n10,0.011\n20,0.012\n30,0.014\n40,0.017\n50,0.02\n");
    assert!(text.contains("Best: M/M/1"), "{text}");
    let few = "users,think_s,throughput_per_s\n1,0,100\n2,0,190\n3,0,270\n4,0,300\n";
    let text = fitted(&format!("{few}{}", "4000000000,0,310\n".repeat(7)));
    assert!(text.contains("4000000000 users: models have at most 1000000 users"), "{text}");
    assert!(text.contains("… and 2 more; --json lists all."), "{text}");
    let many: String = (1..=1_000)
        .map(|i| format!("{},{}\n", 0.09 * f64::from(i), 1.0 / (100.0 - 0.09 * f64::from(i))))
        .collect();
    let text = fitted(&format!("rate_per_s,response_mean_s\n{many}"));
    assert!(text.contains("1000 points, 0.09/s to 90/s, reduced to "), "{text}");
    // The universal scalability law has M/M/1 as a case, so either may be the best.
    let row = text.lines().find(|line| line.trim_start().starts_with("M/M/1 ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..3], ["0", "%"], "{text}");
}
