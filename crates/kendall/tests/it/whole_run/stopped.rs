//! Runs and servers that are interrupted, killed or stopped.

use super::*;

/// Starts a run and waits until some trials are done.
fn start_and_wait(folder: &Path, done: usize) -> Child {
    let child = kendall()
        .current_dir(folder)
        .args(["run", "small.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let finished = || {
        // The folder of a run appears after the one that it is in.
        let has_run = fs::read_dir(folder.join("results/small")).is_ok_and(|mut runs| runs.next().is_some());
        has_run
            && results(folder).join("trials").exists()
            && trials(folder).iter().filter(|trial| trial.join("answer.json").exists()).count() >= done
    };
    while !finished() {
        assert!(Instant::now() < deadline, "no trial was done");
        thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_run_that_is_interrupted_or_killed_keeps_what_is_done_and_goes_on() {
    for how in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let folder = folder_with(&EXPERIMENT.replace("repeats = 2", "repeats = 3"));
        let mut child = start_and_wait(folder.path(), 2);
        signal(&child, how);
        let status = child.wait().unwrap();
        assert!(!status.success());
        let answered = |trial: &PathBuf| fs::read(trial.join("answer.json")).ok();
        let before: Vec<_> = trials(folder.path()).iter().filter_map(answered).collect();
        assert!((2..6).contains(&before.len()), "{}", before.len());

        let results = results(folder.path());
        let output = kendall().args(["run", "--json", "--resume"]).arg(&results).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let after = trials(folder.path());
        assert_eq!(after.len(), 6);
        let kept = after.iter().filter_map(answered).filter(|answer| before.contains(answer)).count();
        assert_eq!(kept, before.len(), "what was done was not done again");
    }
}

/// `kendall serve` and `kendall load` by hand, in two terminals.
#[test]
fn a_server_is_loaded_by_url_and_stops_on_a_signal() {
    let mut server = kendall()
        .args(["serve", "reverse", "--listen", "127.0.0.1:0", "--workers", "1", "--discipline", "gittins"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();

    let url = format!("reverse://{address}?difficulty=2000&repeat-percent=20&priority-lambda=1.5");
    let output = kendall()
        .args(["load", &url, "--rate", "200", "--requests", "100", "--seed", "3", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["run"]["sent"], 100);
    assert_eq!(found["run"]["ended"][0], 100, "{found}");

    let text = kendall()
        .args(["load", &url, "--arrivals", "closed", "--users", "3", "--requests", "60"])
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("60 answered") && text.contains("response time, mean"), "{text}");

    signal(&server, rustix::process::Signal::TERM);
    assert!(server.wait().unwrap().success());
}
