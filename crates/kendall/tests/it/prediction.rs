//! `kendall predict` from single requests, and `kendall validate`, against a server whose law is known.

use std::path::Path;
use std::process::Output;

use crate::served::{Served, kendall};
use serde_json::Value;

/// Service times of 5 ms, constant, one worker: 200 requests per second.
fn server() -> Served {
    Served::new(&["hold", "--workers", "1", "--service", "constant", "--mean", "5ms"])
}

fn run(words: &[&str]) -> Output {
    kendall().args(words).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Records of two low loads and a full one.
fn record(server: &Served, folder: &Path) -> Vec<String> {
    let url = format!("hold://{}", server.address);
    let loads: [&[&str]; 3] = [&["-r", "50"], &["-r", "100"], &["--users", "8"]];
    let record = |(at, load): (usize, &&[&str])| {
        let folder = folder.join(format!("load-{at}"));
        let output = kendall()
            .args(["load", &url, "-d", "5s", "--quiet", "--record", text(&folder)])
            .args(*load)
            .output()
            .unwrap();
        assert!(folder.join("answer.json").exists(), "{}", String::from_utf8_lossy(&output.stderr));
        text(&folder).to_owned()
    };
    loads.iter().enumerate().map(record).collect()
}

/// M/D/1 at 85 %: the mean is 5 ms · (1 + 0.85 / 0.3) = 19.2 ms.
#[test]
fn records_of_low_loads_predict_a_high_one() {
    let server = server();
    kendall_testbed::unless_disturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let records = record(&server, folder.path());
        let words = |more: &[&str]| -> Vec<String> {
            ["predict"]
                .into_iter()
                .chain(records.iter().map(String::as_str))
                .chain(more.iter().copied())
                .map(str::to_owned)
                .collect()
        };
        let ask = |more: &[&str]| kendall().args(words(more)).output().unwrap();
        let found = json(&ask(&["--rate", "170", "--slo", "mean<20ms", "--json"]));
        let distribution = &found["distribution"];
        // A disturbed machine may leave a figure out.
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let mean_s = number(&distribution["mean_s"]["value"]);
        let capacity_per_s = number(&distribution["capacity_per_s"]["value"]);
        let servers = distribution["stations"][0]["servers"].as_u64();
        let highest = number(&found["highest_rate_per_s"]["value"]);
        let fits = (0.012..0.035).contains(&mean_s)
            && (170.0..215.0).contains(&capacity_per_s)
            && servers == Some(1)
            && (140.0..195.0).contains(&highest);
        if !fits {
            return Err(found.to_string());
        }
        let shown = String::from_utf8(ask(&["--rate", "170"]).stdout).unwrap();
        for part in ["response time, p99.9", "delay outside", "1 server, "] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let overload = ask(&["--rate", "300"]);
        assert_eq!(overload.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&overload.stdout).contains("exceeds the capacity"));
        let fault = ask(&["--rate", "100", "--mix", "heavy 50%"]);
        assert!(
            String::from_utf8_lossy(&fault.stderr).contains("--mix names the class \"heavy\""),
            "{fault:?}"
        );
        // Times of a computation beside a record must be times.
        std::fs::write(Path::new(&records[0]).join("computation.json"), "[0.0001, 0]").unwrap();
        let fault = String::from_utf8(ask(&["--rate", "170"]).stderr).unwrap();
        assert!(fault.contains("computation.json") && fault.contains("not positive"), "{fault}");
        Ok(())
    });
}

#[test]
fn folders_that_are_no_records_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["predict", text(folder.path()), "--rate", "5"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no run"), "{output:?}");
}

#[test]
fn a_validation_writes_its_predictions_before_it_measures_them() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("validated");
    let url = format!("hold://{}", server.address);
    let output = kendall()
        .args([
            "validate",
            &url,
            "--low",
            "30%,50%",
            "--high",
            "70%",
            "--rounds",
            "1",
            "--low-duration",
            "3s",
        ])
        .args(["--duration", "4s", "--within", "90%", "--seed", "3", "--record", text(&record)])
        .args(["--allow", "undecided", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let load = &report["loads"][0];
    assert_eq!(load["predicted"]["share"], 0.7);
    assert_eq!(load["compared"][0]["quantity"], "mean");
    assert!(load["compared"][0]["measured_s"]["value"].as_f64().unwrap() > 0.005, "{load}");
    assert_eq!(load["baselines"].as_array().unwrap().len(), 5);
    // The prediction is older than the records of the load that it is about, and has the hash that was printed.
    let prediction = record.join("prediction-70.json");
    let hash = kendall_archive::origin::fingerprint(&std::fs::read(&prediction).unwrap());
    assert_eq!(load["predicted"]["blake3"], hash);
    let made = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let folders = std::fs::read_dir(&record).unwrap().map(|entry| entry.unwrap().path());
    let high = folders.filter(|path| path.to_string_lossy().contains("-high-70")).collect::<Vec<_>>();
    assert!(!high.is_empty() && high.iter().all(|high| made(&prediction) <= made(&high.join("answer.json"))));
    // Where processors are kept awake, or sleep does not slow them, their speed is beside each record.
    let timed = high[0].join("computation.json").exists();
    assert!(timed || report["awake"] == false, "{report}");
    assert_eq!(load["at_speed"].is_object(), timed, "{report}");
    // A queue of half a second was measured as well.
    let folders = std::fs::read_dir(&record).unwrap().map(|entry| entry.unwrap().path());
    assert!(folders.filter(|path| path.to_string_lossy().contains("-queue")).count() >= 1);
    let most = report["closed"].as_array().unwrap().last().unwrap();
    let (users, per_s) = (most[0].as_f64().unwrap(), most[1].as_f64().unwrap());
    assert!((0.3..0.7).contains(&(users / per_s)), "{most}");
    // The page, and again from the record alone.
    let page = record.join("validation.html");
    std::fs::remove_file(&page).unwrap();
    let shown = String::from_utf8(run(&["report", text(&record)]).stdout).unwrap();
    assert!(page.exists() && shown.contains("beyond noise"), "{shown}");
    // The same folders predict again.
    let lows = std::fs::read_dir(&record).unwrap().map(|entry| entry.unwrap().path());
    let lows = lows.filter(|path| path.is_dir() && !path.to_string_lossy().contains("-high-"));
    let again = kendall().arg("predict").args(lows).args(["--rate", "100"]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}
