//! `kendall solve` and the other commands that need no server, as a user types them.

use std::process::{Command, Output};

use serde_json::Value;

fn kendall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_station_is_answered_by_formula_and_by_simulation_with_units() {
    let output = kendall(&["solve", "M/M/6", "--arrival-rate", "20", "--service-rate", "4.2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "utilisation",
        "response time, mean",
        "response time, p50",
        "response time, p90",
        "response time, p99",
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(
        text.contains("P(wait)") && text.contains("waiting time, mean") && text.contains(" ms"),
        "{text}"
    );
}

/// The formula's value lies in the simulation's interval; the seed is fixed, so this holds always or never.
#[test]
fn json_has_both_answers_and_they_agree() {
    let output = kendall(&[
        "solve",
        "M/M/6",
        "--arrival-rate",
        "20",
        "--service-rate",
        "4.2",
        "--seed",
        "2",
        "--json",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mean = |way: &str| json[way]["answer"]["response"]["mean_s"].clone();
    // M/M/6 with a = 20/4.2, by the Erlang C formula.
    let exact = mean("formula")["value"].as_f64().unwrap();
    assert!((exact - 0.335_2).abs() < 0.0001, "{exact}");
    let interval = &mean("simulation")["interval"];
    let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
    assert!(low < exact && exact < high, "{exact} is not in [{low}, {high}]");
}

#[test]
fn an_unstable_station_says_so_and_exits_with_3() {
    let output = kendall(&["solve", "M/M/6", "--arrival-rate", "20", "--service-rate", "1.63"]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(text.contains("unstable") && text.contains("2.04"), "{text}");
}

#[test]
fn bad_input_says_what_to_write() {
    let cases: [(&[&str], &str); 6] = [
        (&["solve", "M/M"], "arrivals/service/servers"),
        (&["solve", "M/M/1", "--arrival-rate", "1"], "--service-rate"),
        (&["solve", "M/M/1", "--arrival-rate", "-1", "--service-rate", "2"], "positive"),
        (&["solve", "M/G/1", "--arrival-rate", "1", "--service-rate", "2"], "--service-scv"),
        (&["solve", "M/M/1/∞/5", "--arrival-rate", "1", "--service-rate", "2"], "--think-time"),
        (&["run", "no-such-file.toml"], "no-such-file.toml"),
    ];
    for (arguments, saying) in cases {
        let output = kendall(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr(&output).contains(saying), "{arguments:?} says:\n{}", stderr(&output));
    }
}

#[test]
fn a_closed_population_is_simulated() {
    let output = kendall(&["solve", "M/M/4/∞/20", "--think-time", "5", "--service-time", "0.2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("simulation"), "{}", stdout(&output));
}

#[test]
fn the_machine_is_described_and_completions_are_written() {
    let doctor = kendall(&["doctor", "--json"]);
    let json: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(json.as_array().unwrap().iter().any(|offer| offer["name"] == "cores"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&kendall(&["completions", shell])).contains("kendall"), "{shell}");
    }
}

#[test]
fn every_command_explains_itself() {
    for command in ["solve", "run", "report", "load", "serve", "doctor", "completions"] {
        let output = kendall(&[command, "--help"]);
        assert!(output.status.success() && stdout(&output).contains("Usage:"), "{command}");
    }
    assert!(stdout(&kendall(&["serve", "reverse", "--help"])).contains("--discipline"));
}
