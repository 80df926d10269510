//! The machine's own limits beside the result of a chat.

use super::*;

/// Accounts in a file of SQLite, with kept connections and with one for each registration.
const CHAT: &str = r#"
name = "small"
question = "How many accounts a second can users register?"
seed = 5
repeats = 1
disturbed-over = "100%"

[load]
arrivals = "closed"
users = [1, 8]
duration = "700ms"

[workload]
connect = ["kept", "per-request"]

[system]
name = "chat"
limits = "off"
throwaway = "on"
store = "sqlite:accounts.db"
"#;

/// A figure of a limit in the report of one of the two ways to connect.
fn figure(report: &Value, way: usize, limit: &str, figure: &str) -> f64 {
    let used = &report["machine_limits"][way];
    let uses = used["uses"].as_array().unwrap();
    let found = uses.iter().find(|one| one["name"].as_str().unwrap().starts_with(limit));
    found.unwrap_or_else(|| panic!("no {limit} in {used}"))[figure].as_f64().unwrap()
}

#[test]
fn a_run_of_a_chat_says_which_limit_of_the_machine_binds() {
    let folder = folder_with(CHAT);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["machine_limits"].as_array().unwrap().len(), 2, "one for each way to connect");
    for way in [0, 1] {
        for limit in ["fdatasync in .", "new connections", "passwords of registrations, opaque", "processors"]
        {
            assert!(figure(&report, way, limit, "allowed") > 0.0, "{limit}");
        }
        // One user flushes for each account, several share a flush.
        let flushes = figure(&report, way, "fdatasync", "per_request");
        assert!(flushes > 0.0 && flushes < 1.5, "{flushes}");
    }
    // A connection for each user, or for each registration.
    let connections = [0, 1].map(|way| figure(&report, way, "new connections", "per_request"));
    assert!(connections[1] > 0.9 && connections[0] < connections[1], "{connections:?}");

    let results = results(folder.path());
    let page = fs::read_to_string(results.join("report.html")).unwrap();
    let printed = kendall().arg("report").arg(&results).output().unwrap();
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    for words in
        ["Limits of this machine", "fdatasync in .", "new connections over the loopback", "of the machine"]
    {
        assert!(page.contains(words), "the page lacks {words}");
        assert!(text.contains(words), "the text lacks {words}:\n{text}");
    }
    for trial in trials(folder.path()) {
        let answer: Value = serde_json::from_slice(&fs::read(trial.join("answer.json")).unwrap()).unwrap();
        assert!(answer["counted"]["transactions"].as_u64().unwrap() > 0, "{answer}");
        assert!(!trial.join("stamps.bin.counts").exists());
    }

    // The record of a version that measured no limits.
    fs::remove_file(results.join("limits.json")).unwrap();
    let older = kendall().args(["report", "--json"]).arg(&results).output().unwrap();
    let older: Value = serde_json::from_slice(&older.stdout).unwrap();
    assert!(older["machine_limits"].is_null() && older["points"] == report["points"]);
}
