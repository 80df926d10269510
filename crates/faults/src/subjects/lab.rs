//! The laboratory: a run that is started, and resumed where it was interrupted. It is right once it has ended and each request of
//! each trial has its outcome.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::loaded::{HOLD, judge};
use super::{Outcome, Part, Requests, Scene, Subject};

/// Trials of a run.
const TRIALS: usize = 4;

pub(super) const LAB: Subject = Subject {
    name: "lab",
    system: "laboratory",
    prepare: |scene| {
        let experiment = format!(
            "name = \"lab\"\nquestion = \"Are all rows there?\"\nrepeats = {TRIALS}\nseed = 5\ndisturbed-over = \"100%\"\n\
             [system]\nname = \"reverse\"\nworkers = 1\n[workload]\ndifficulty = 5000\n\
             [load]\nrate = 50\nduration = \"2s\"\nwarmup = \"0s\"\n"
        );
        fs::write(scene.path("lab.toml"), experiment).map_err(|error| error.to_string())
    },
    parts: |scene| {
        let mut command = scene.kendall(["run", "--results", "disk/results"]);
        match folder(scene) {
            Some(run) => command.arg("--resume").arg(run),
            None => command.arg("lab.toml"),
        };
        vec![Part { role: "server", command, ready: "" }]
    },
    requests: Requests::Inside,
    probe: |scene, _| {
        let mut command = scene.kendall(["report", "--json"]);
        command.arg(folder(scene).unwrap_or_else(|| "none".into()));
        command
    },
    judge: |scene, n, output| {
        if !output.status.success() {
            return judge(scene, n, output);
        }
        let trials = folder(scene).map(|run| run.join("trials"));
        let answers = trials.and_then(|trials| fs::read_dir(trials).ok()).into_iter().flatten().flatten();
        let answers: Vec<String> =
            answers.filter_map(|trial| fs::read_to_string(trial.path().join("answer.json")).ok()).collect();
        match answers.iter().map(|answer| is_complete(answer)).collect::<Result<Vec<()>, String>>() {
            Err(why) => Outcome::Wrong(why),
            Ok(complete) if complete.len() == TRIALS => Outcome::Right,
            Ok(complete) => Outcome::Failed(format!("{} of {TRIALS} trials have ended", complete.len())),
        }
    },
    ..HOLD
};

/// The folder of the run, if it has begun.
fn folder(scene: &Scene) -> Option<PathBuf> {
    let runs = fs::read_dir(scene.path("disk/results/lab")).ok()?.flatten();
    runs.map(|run| run.path()).find(|run| run.join("manifest.json").exists())
}

/// Whether each request that was sent has its outcome, and no answer was wrong.
fn is_complete(answer: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    let run = &value["run"];
    let ended: Vec<u64> = run["ended"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if ended.len() != 5 || Some(ended.iter().sum()) != run["sent"].as_u64() || ended[1] > 0 {
        return Err(format!("{} requests were sent, and {ended:?} have an outcome", run["sent"]));
    }
    Ok(())
}
