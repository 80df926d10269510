//! `kendall compare` on files of numbers: what it says, and how it ends.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn kendall(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.arg("compare").args(arguments).current_dir(folder.path()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Eight runs of three builds: one as it was, one 12 % faster, one hardly different.
fn builds() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, factor: f64, scatter: f64| {
        let row = |i: u32| {
            let mean_ms = 10.0 * factor * (1.0 + scatter * (f64::from(i) - 3.5) / 3.5);
            format!("{mean_ms},{},{}\n", 4.0 * mean_ms, 500.0 / factor)
        };
        let rows: String = (0..8).map(row).collect();
        fs::write(folder.path().join(name), format!("mean_ms,p99_ms,throughput\n{rows}")).unwrap();
    };
    write("before.csv", 1.0, 0.02);
    write("faster.csv", 0.88, 0.02);
    write("alike.csv", 1.001, 0.004);
    write("steady.csv", 1.0, 0.004);
    write("noisy.csv", 1.05, 0.3);
    folder
}

#[test]
fn it_says_what_is_faster_and_ends_accordingly() {
    let folder = builds();
    let faster = kendall(&folder, &["before=before.csv", "after=faster.csv"]);
    assert_eq!(faster.status.code(), Some(0));
    assert!(
        text(&faster).contains("faster by 12 % (") && text(&faster).contains("after ÷ before"),
        "{}",
        text(&faster)
    );
    let slower = kendall(&folder, &["new=faster.csv", "old=before.csv"]);
    assert_eq!(slower.status.code(), Some(4));
    assert!(text(&slower).contains("slower by 14 %"), "{}", text(&slower));
    let alike = kendall(&folder, &["steady.csv", "alike.csv", "--metric", "mean", "--metric", "p99"]);
    assert_eq!(alike.status.code(), Some(0));
    assert_eq!(text(&alike).matches("equivalent within 2 %").count(), 2, "{}", text(&alike));
    let noisy = ["before.csv", "noisy.csv", "--metric", "mean"];
    let undecided = kendall(&folder, &noisy);
    assert_eq!(undecided.status.code(), Some(3));
    let allowed = kendall(&folder, &[&noisy[..], &["--allow", "undecided"]].concat());
    assert_eq!(allowed.status.code(), Some(0));
    // One metric that is worse fails, whatever the others are.
    let row = |i: u32| format!("{},20,900\n", 12.0 + 0.01 * f64::from(i));
    let rows: String = (0..8).map(row).collect();
    fs::write(folder.path().join("mixed.csv"), format!("mean_ms,p99_ms,throughput\n{rows}")).unwrap();
    let mixed = kendall(&folder, &["before.csv", "mixed.csv", "--allow", "undecided"]);
    assert!(
        text(&mixed).contains("slower by 20 %") && text(&mixed).contains("faster by 50 %"),
        "{}",
        text(&mixed)
    );
    assert_eq!(mixed.status.code(), Some(4));
    assert!(text(&undecided).contains("more runs"), "{}", text(&undecided));
}

#[test]
fn programs_and_pull_requests_have_their_forms() {
    let folder = builds();
    let json = kendall(&folder, &["before.csv", "faster.csv", "--json"]);
    let found: Value = serde_json::from_slice(&json.stdout).unwrap();
    let mean = &found["comparison"]["against"][0]["metrics"][0];
    assert_eq!((mean["metric"]["name"].as_str(), mean["verdict"].as_str()), (Some("mean"), Some("better")));
    let (low, high) = (&mean["effect"]["interval"][0], &mean["effect"]["interval"][1]);
    assert!(low.as_f64().unwrap() <= 0.88 && high.as_f64().unwrap() >= 0.88, "{mean}");
    let markdown = text(&kendall(&folder, &["before.csv", "faster.csv", "--markdown"]));
    assert!(markdown.contains("| --- |") && markdown.contains("**faster by 12 %"), "{markdown}");
    // The same again is the same: what is drawn comes from a seed.
    assert_eq!(json.stdout, kendall(&folder, &["before.csv", "faster.csv", "--json"]).stdout);
}

/// `kendall compare new='results/new-*' old='results/old-*'`, which a shell hands over as it is.
#[test]
fn patterns_behind_a_name_are_expanded() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("results")).unwrap();
    for run in 1..=8 {
        let write = |side: &str, mean: f64| {
            let file = folder.path().join(format!("results/{side}-{run}"));
            fs::write(file, format!("mean_ms\n{}\n", mean + 0.01 * f64::from(run))).unwrap();
        };
        write("new", 8.0);
        write("old", 10.0);
    }
    let output = kendall(&folder, &["new=results/new-*", "old=results/old-?"]);
    let shown = text(&output);
    assert!(
        shown.contains("old (8 runs) against new (8 runs)") && shown.contains("slower by 25 %"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(4));
    let none = kendall(&folder, &["new=results/new-*", "old=results/none-*"]);
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(!none.status.success() && said.contains("there is no file or folder results/none-*"), "{said}");
}

#[test]
fn faults_say_what_to_write() {
    let folder = builds();
    let fault = |arguments: &[&str]| {
        let output = kendall(&folder, arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(fault(&["before.csv"]).contains("two sides"));
    assert!(fault(&["before.csv", "nowhere.csv"]).contains("cannot read nowhere.csv"));
    assert!(
        fault(&["before.csv", "faster.csv", "--metric", "p50"]).contains("there are mean, p99, throughput")
    );
    assert!(fault(&["before.csv", "faster.csv", "--figure", "x.svg"]).contains("no shift to draw"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(fault(&["before.csv", "empty"]).contains("neither the folder of a run"));
    fs::write(folder.path().join("odd.csv"), "mean\n1\ntwo\n").unwrap();
    assert!(fault(&["before.csv", "odd.csv"]).contains("odd.csv: line 3"));
}
