//! Tables and the outputs of other load generators, as users give them to `fit`, `predict`, `check` and `compare`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Of a server with a service time of 10 ms: wrk with more and more connections, and a schedule at several rates.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    for (users, per_s) in [(1, 98.0), (2, 100.0), (4, 100.0), (8, 100.0), (16, 100.0)] {
        write(&format!("wrk-{users}.txt"), wrk(users, per_s, 1e3 * f64::from(users) / per_s));
    }
    // M/M/1: the response is 10 ms / (1 − ρ).
    let responses = [(10, 11.111), (30, 14.286), (50, 20.0), (70, 33.333), (80, 50.0)];
    for (rate, mean_ms) in responses {
        write(&format!("vegeta-{rate}.json"), vegeta(rate, mean_ms));
    }
    let rows = |row: fn(u32, f64) -> String| responses.map(|(rate, mean_ms)| row(rate, mean_ms)).join("\n");
    write(
        "common.csv",
        format!("rps,mean_ms,p99_ms\n{}\n", rows(|rate, ms| format!("{rate},{ms},{}", 4.6 * ms))),
    );
    write(
        "other.csv",
        format!("QPS;avg latency [us]\n{}\n", rows(|rate, ms| format!("{rate};{}", 1e3 * ms))),
    );
    write(
        "points.json",
        format!("[{}]", rows(|rate, ms| format!("{{\"rate\":{rate},\"mean_ms\":{ms}}}")).replace('\n', ",")),
    );
    folder
}

fn wrk(users: u32, per_s: f64, mean_ms: f64) -> String {
    format!(
        "Running 10s test @ http://127.0.0.1:8080/\n  1 threads and {users} connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
         Latency   {mean_ms:.3}ms    1.00ms  90.00ms   80.00%\n    Req/Sec   100.00      2.00   110.00     75.00%\n  \
         Latency Distribution\n     50%  {mean_ms:.3}ms\n     99%  {:.3}ms\n  {:.0} requests in 10.00s, 1.00MB read\nRequests/sec:    {per_s:.2}\n",
        2.0 * mean_ms,
        10.0 * per_s
    )
}

fn vegeta(rate: u32, mean_ms: f64) -> String {
    let mean_ns = (mean_ms * 1e6) as u64;
    format!(
        "{{\"latencies\":{{\"mean\":{mean_ns},\"50th\":{},\"99th\":{}}},\"duration\":60000000000,\"requests\":{},\"rate\":{rate},\
         \"throughput\":{rate},\"success\":1,\"status_codes\":{{\"200\":{}}},\"errors\":[]}}",
        mean_ns * 7 / 10,
        mean_ns * 46 / 10,
        rate * 60,
        rate * 60
    )
}

fn kendall(folder: &Path, words: &str) -> Output {
    // By a shell, as a user types it.
    let shell = format!("\"$KENDALL\" {words}");
    Command::new("sh")
        .args(["-c", &shell])
        .env("KENDALL", env!("CARGO_BIN_EXE_kendall"))
        .current_dir(folder)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn outputs_of_other_tools_are_fitted_and_predicted_as_a_table_is() {
    let folder = folder();
    let closed = json(&kendall(folder.path(), "fit wrk-*.txt --json"));
    let points = closed["fit"]["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[4]["load"]["users"]), (5, &Value::from(16)));
    assert!(points[0]["place"].as_str().unwrap().contains("wrk-1.txt (from wrk)"), "{}", points[0]);
    for what in ["vegeta-*.json", "common.csv", "other.csv", "points.json"] {
        let open = json(&kendall(folder.path(), &format!("fit {what} --servers 1 --json")));
        let best = &open["fit"]["candidates"][0];
        let service =
            best["parameters"].as_array().unwrap().iter().find(|one| one["quantity"] == "service").unwrap();
        assert!((service["value"].as_f64().unwrap() / 0.01 - 1.0).abs() < 0.05, "{what}: {best}");
        let predicted =
            json(&kendall(folder.path(), &format!("predict {what} --servers 1 --rate 60 --json")));
        let mean_s = predicted["prediction"]["forecast"]["response"]["mean_s"]["value"].as_f64().unwrap();
        assert!((mean_s / 0.025 - 1.0).abs() < 0.1, "{what}: {mean_s}");
    }
}

#[test]
fn outputs_of_other_tools_are_checked_and_compared() {
    let folder = folder();
    let checked = kendall(folder.path(), "check wrk-4.txt wrk-8.txt --json");
    let findings = json(&checked)["findings"].to_string();
    assert!(findings.contains("\"holds\"") && !findings.contains("\"broken\""), "{findings}");
    let write = |name: String, text| fs::write(folder.path().join(name), text).unwrap();
    for run in 0..6 {
        let drift = 1.0 + 0.002 * f64::from(run);
        write(format!("old-{run}.txt"), wrk(8, 100.0 * drift, 80.0 / drift));
        write(format!("new-{run}.txt"), wrk(8, 140.0 * drift, 57.0 / drift));
    }
    let files = |side: &str| (0..6).map(|run| format!("{side}-{run}.txt")).collect::<Vec<_>>().join(",");
    let words =
        format!("compare old={} new={} --metric mean --metric throughput --json", files("old"), files("new"));
    let compared = json(&kendall(folder.path(), &words));
    let verdicts: Vec<&Value> = compared["comparison"]["against"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["verdict"])
        .collect();
    assert_eq!(verdicts, ["better", "better"], "{compared}");
}

#[test]
fn what_is_not_understood_says_what_was_found_and_what_is_known() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("colours.csv", "colour,size\nred,2\n");
    write("units.csv", "rate,p99\n1,2\n");
    write("rates.csv", "rate,colour\n10,red\n20,blue\n30,green\n");
    let whole = fs::read_to_string(folder.path().join("wrk-4.txt")).unwrap();
    write("half.txt", whole.split("  Latency Dist").next().unwrap());
    write("half.json", &vegeta(10, 20.0)[..60]);
    for command in ["fit", "predict --rate 5", "check"] {
        let fault = |file: &str| said(&kendall(folder.path(), &format!("{command} {file}")));
        let colours = fault("colours.csv");
        assert!(
            colours.contains("\"colour\", \"size\"") && colours.contains("rps, qps, throughput, mean_ms"),
            "{colours}"
        );
        assert!(fault("units.csv").contains("write p99_s, p99_ms"), "{}", fault("units.csv"));
        let half = fault("half.txt");
        assert!(
            half.contains("half.txt") && half.contains("of wrk") && half.contains("Requests/sec"),
            "{half}"
        );
        assert!(fault("half.json").contains("ends early"), "{}", fault("half.json"));
        assert!(fault("common.csv .").contains("one folder of a run, or one or more files"));
    }
    let rates = said(&kendall(folder.path(), "fit rates.csv"));
    assert!(rates.contains("\"rate\" (rate_per_s), \"colour\" (not a known quantity)"), "{rates}");
    assert!(
        said(&kendall(folder.path(), "compare half.txt half.txt")).contains("of wrk, but it has no line")
    );
    write("hey.txt", include_str!("../../../outputs/testdata/hey.txt"));
    assert!(
        said(&kendall(folder.path(), "check hey.txt"))
            .contains("hey does not report whether its load was open")
    );
}
