//! `kendall solve` with networks described in files, as a user types it.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn solve(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).arg("solve").args(arguments).output().unwrap()
}

fn answered(name: &str) -> Value {
    let path = format!("{}/../../examples/networks/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = solve(&[&path, "--json", "--customers", "300000"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn simulated<'a>(json: &'a Value, what: &str) -> &'a Value {
    &json["simulation"]["answer"]["overall"][what]
}

fn contains(estimate: &Value, value: f64) -> bool {
    let end = |i: usize| estimate["interval"][i].as_f64().unwrap();
    end(0) <= value && value <= end(1)
}

/// Formula and simulation agree; the seed is fixed, so this holds always or never.
#[test]
fn an_open_network_is_answered_both_ways() {
    let json = answered("web-and-database");
    let formula = &json["formula"]["answer"];
    let visits = |i: usize| formula["nodes"][i]["visits"].as_f64().unwrap();
    assert!((visits(0) - 2.5).abs() < 1e-12 && (visits(1) - 1.5).abs() < 1e-12, "{formula}");
    let response_s = formula["response_s"].as_f64().unwrap();
    assert!(contains(&simulated(&json, "response")["mean_s"], response_s), "{response_s}: {json}");
}

#[test]
fn a_closed_network_is_answered_both_ways_and_bounded() {
    let json = answered("interactive");
    let formula = &json["formula"]["answer"];
    // By mean value analysis with the demands 0.05, 0.03 and 0.08 s, as in the reference table.
    let throughput = formula["throughput_per_s"].as_f64().unwrap();
    assert!((throughput - 11.973_117_242_1).abs() < 1e-9, "{throughput}");
    assert_eq!(formula["bottleneck"], 2);
    assert!(contains(simulated(&json, "throughput_per_s"), throughput));
    let balanced = &json["bounds"]["balanced_throughput_per_s"];
    assert!(balanced[0].as_f64().unwrap() < throughput && throughput < balanced[1].as_f64().unwrap());
}

/// Flow in is flow out: who is not lost visits the test stand once, and once more each time it is sent back.
#[test]
fn a_network_under_conditions_is_simulated() {
    let json = answered("repair-shop");
    assert!(json["formula"]["no_answer"].as_str().unwrap().contains("simulation"));
    let node =
        |i: usize, what: &str| json["simulation"]["answer"]["nodes"][i][what]["value"].as_f64().unwrap();
    let lost = simulated(&json, "lost")["value"].as_f64().unwrap();
    let visits = node(1, "visits");
    assert!((visits - (1.0 - lost) / 0.9).abs() < 0.01, "{visits} visits, {lost} lost");
    assert!(node(0, "down") > 0.0 && node(0, "blocked") > 0.0);
}

#[test]
fn faults_of_a_file_name_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.toml");
    let said = |text: &str| {
        fs::write(&path, text).unwrap();
        let output = solve(&[path.to_str().unwrap()]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let station = "[[station]]\nname = \"web\"\nservice = { law = \"exponential\", mean_s = 0.1 }\n";
    let arrivals = "arrivals = { rate_per_s = 5 }\n";
    for (text, parts) in [
        (format!("{station}{arrivals}serverz = 2\n"), vec!["line 5", "serverz"]),
        (format!("{station}arrivals = 5\n"), vec!["line 4", "arrivals"]),
        (format!("{station}{arrivals}[routing]\nweb = {{ db = 1 }}\n"), vec!["network.toml", "\"db\""]),
        (station.to_owned(), vec!["arrivals at a station"]),
    ] {
        let (code, said) = said(&text);
        assert_eq!(code, Some(1), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} should be in:\n{said}");
    }
    let (code, _) = said(&format!("{station}arrivals = {{ rate_per_s = 11 }}\n"));
    assert_eq!(code, Some(3), "an overloaded network exits as an overloaded station");
}
