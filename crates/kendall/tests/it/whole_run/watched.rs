//! Runs and processes that are watched: where their time goes, what limits them.

use super::*;

#[test]
fn a_profiled_run_says_where_the_time_goes_and_what_limits() {
    let folder = folder_with(EXPERIMENT);
    let output = kendall()
        .current_dir(folder.path())
        .args(["run", "small.toml", "--json", "--profile"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let watched = report["resources"].as_array().unwrap();
    assert_eq!(watched.len(), 4);
    for (one, line) in watched.iter().zip(report["trials"].as_array().unwrap()) {
        // The probe and the operating system's own account agree on what the server used.
        let (seen, reported) = (&one["summary"]["server"]["cpu_cores"], &line["server_cpu_cores"]);
        let (seen, reported) = (seen.as_f64().unwrap(), reported.as_f64().unwrap());
        // Counted in ticks of 10 ms, over some 700 ms.
        assert!((seen - reported).abs() < 0.08 + 0.2 * reported, "{seen} and {reported} cores");
        assert!(one["limit"].is_object(), "{one}");
    }
    for trial in trials(folder.path()) {
        let stacks = fs::read_to_string(trial.join("profile.folded")).unwrap();
        assert!(
            stacks.lines().all(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().is_ok()),
            "{stacks}"
        );
    }
    let page = fs::read_to_string(results(folder.path()).join("report.html")).unwrap();
    for part in
        ["<h2>Resources</h2>", "Flame graph of the server in trial", "of a core at 100 readings a second"]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_running_process_can_be_watched_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("seen");
    let mut child = Command::new("sleep").arg("20").spawn().unwrap();
    let pid = child.id().to_string();
    let watched = kendall()
        .args(["probe", &pid, "--duration", "300ms", "--profile", "--record"])
        .arg(&record)
        .output()
        .unwrap();
    let taken = kendall().args(["probe", &pid, "--record"]).arg(&record).output().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (words, faults) = (String::from_utf8_lossy(&watched.stdout), stderr(&watched));
    assert!(watched.status.success(), "{faults}");
    for said in ["CPU", "run queue", "Each reading took", "sleep "] {
        assert!(words.contains(said), "{words}");
    }
    for file in ["resources.parquet", "summary.json", "profile.folded", "flame.svg"] {
        assert!(record.join(file).exists(), "{file}");
    }
    assert!(!taken.status.success() && stderr(&taken).contains("is there already"), "{}", stderr(&taken));
    let gone = kendall().args(["probe", &pid, "--duration", "1s"]).output().unwrap();
    assert!(!gone.status.success() && stderr(&gone).contains(&pid), "{}", stderr(&gone));
}
