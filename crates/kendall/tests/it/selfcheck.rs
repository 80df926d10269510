//! The self-check in a quick form: the laboratory names stations whose law is known.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kendall_testbed::{tempdir, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Two runs of each of four stations, of some 700 to 3,000 requests. A station is named against evidence of e^12 once in 160,000 runs;
/// what a busy machine adds may cost one of the six that are loaded below what they can do. The room of the last is found where
/// requests are turned away, to one more or fewer, because on a busy machine a worker may stall between two requests.
#[test]
fn stations_whose_law_is_known_are_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(["selfcheck", "--seeds", "2", "--duration", "2s", "--warmup", "300ms", "--jobs", "4", "--json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let cases = found.as_array().unwrap();
    let stations: Vec<&str> = cases.iter().map(|case| case["station"].as_str().unwrap()).collect();
    assert_eq!(stations, ["M/M/1", "M/M/4", "M/D/1", "M/M/1/50"]);
    let seeds = |case: &Value| case["seeds"].as_array().unwrap().clone();
    let right = cases[..3].iter().flat_map(seeds).filter(|seed| seed["right"] == true).count();
    assert!(right >= 5, "{found:#}");
    for seed in seeds(&cases[3]) {
        let named = seed["named"].as_str().unwrap();
        let parts: Vec<&str> = named.trim_end_matches('?').split('/').collect();
        assert!(parts[2] == "1" && ["49", "50", "51"].contains(&parts[3]), "{found:#}");
    }
    for case in cases {
        let number = |name: &str| case[name].as_f64().unwrap();
        assert!(number("delay_s") > 0.0 && number("true_mean_s") > number("service_s"), "{case:#}");
        // A worker sleeps at least as long as was drawn: 2 ms on average, over some thousand requests, within a tenth.
        assert!(number("service_s") > 1.8e-3, "{case:#}");
        assert!(seeds(case).iter().all(|seed| seed["interval_s"].is_array() && seed["covers"].is_boolean()));
    }
}

#[test]
fn ctrl_c_ends_a_run_that_is_at_hand() {
    let folder = tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.args(["selfcheck", "--seeds", "1", "--duration", "1000s", "--jobs", "1"]);
    let mut child = command.env("TMPDIR", folder.path()).stdout(Stdio::null()).spawn().unwrap();
    // A record of the first run is in the folder of the check.
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    wait_until("a run has begun", || {
        folders(folder.path()).any(|it| folders(&it.path()).any(|run| run.path().is_dir()))
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folders(folder.path()).count(), 0);
}
