//! `kendall plan`, as a user types it.

use std::process::{Command, Output};

use serde_json::Value;

fn kendall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).arg("plan").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_cost_of_five_per_cent_is_what_theory_publishes() {
    for (rate, requests, of_a_hundred) in
        [("0.5", "44,561", "± 106 %"), ("0.8", "189,769", "± 218 %"), ("0.9", "681,048", "± 413 %")]
    {
        let text = stdout(&kendall(&["M/M/1", "--arrival-rate", rate, "--service-rate", "1"]));
        let waiting = text.lines().find(|line| line.starts_with("waiting time")).unwrap();
        assert!(waiting.contains(requests) && waiting.contains(of_a_hundred), "{text}");
        for word in ["repeats of", "Warm-up: leave out", "must be known to"] {
            assert!(text.contains(word), "{word} is missing in:\n{text}");
        }
    }
}

#[test]
fn stations_without_a_theory_are_tried_by_simulation() {
    let output =
        kendall(&["M/D/3", "--arrival-rate", "2.4", "--service-rate", "1", "--precision", "2%", "--json"]);
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(found["plan"]["basis"]["pilot"]["customers"].as_u64().unwrap() > 100_000, "{found}");
    assert_eq!(found["plan"]["precision"], 0.02);
    assert!(found["plan"]["response"]["requests"].as_f64().unwrap() > 1000.0, "{found}");
}

#[test]
fn what_cannot_be_planned_is_said_in_words() {
    let overloaded = kendall(&["M/M/2", "--arrival-rate", "4", "--service-rate", "1"]);
    assert_eq!(overloaded.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&overloaded.stderr).contains("utilisation would be 2.00"));
    let odd = kendall(&["M/M/2", "--arrival-rate", "1", "--service-rate", "1", "--precision", "120%"]);
    assert!(!odd.status.success());
}

#[test]
fn an_experiment_is_costed_combination_by_combination() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/quickstart.toml");
    let text = stdout(&kendall(&[file]));
    assert!(text.lines().any(|line| line.starts_with("rate=80%") && line.contains("124,464")), "{text}");
    let text = stdout(&kendall(&[file, "--service-time", "0.01"]));
    assert!(text.lines().any(|line| line.starts_with("rate=80%") && line.contains("1,320")), "{text}");
}
