//! A load and an experiment whose requests `kendall agent` sends.

use std::fs;
use std::process::{Child, Stdio};

use kendall_testbed::{Nats, unless_disturbed};
use serde_json::Value;

use crate::served::{Served, kendall};

/// `kendall agent`, killed when this is dropped.
struct Agent(Child);

impl Agent {
    fn start(nats: &Nats, name: &str) -> Self {
        let mut agent = kendall();
        agent.args(["agent", "--nats", &nats.url(), "--name", name, "--allow", "127.0.0.1:*"]);
        Self(agent.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_agents_send_a_load_and_the_trials_of_an_experiment() {
    let Some(nats) = Nats::with("") else { return };
    let _agents = ["ann", "bob"].map(|name| Agent::start(&nats, name));
    let server = Served::new(&["hold", "--mean", "1ms", "--workers", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let experiment = "name = \"shared\"\nquestion = \"Who sends?\"\nseed = 1\ndisturbed-over = \"100%\"\n\
                      [system]\nname = \"hold\"\nmean = \"1ms\"\n[load]\nrate = 100\nduration = \"1s\"\n";
    fs::write(folder.path().join("shared.toml"), experiment).unwrap();
    let url = format!("hold://{}", server.address);
    for command in [&["load", &url, "--requests", "300", "--rate", "300"][..], &["run", "shared.toml"]] {
        // Agents that a busy machine lets start late make no load, and the next attempt is a new run.
        let text = unless_disturbed(|| {
            let _ = fs::remove_dir_all(folder.path().join("results"));
            let mut sends = kendall();
            sends.args(command).args(["--agents", &nats.url(), "--agents-count", "2", "--json"]);
            let ended = sends.current_dir(folder.path()).output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            let is_sent = ended.status.success() && said.contains("Agent bob: its clock is");
            if is_sent {
                Ok(String::from_utf8(ended.stdout).unwrap())
            } else {
                Err(format!("{command:?}: {said}"))
            }
        });
        let text = if command[0] == "run" {
            let run = fs::read_dir(folder.path().join("results/shared")).unwrap().next().unwrap().unwrap();
            fs::read_to_string(run.path().join("trials/001/answer.json")).unwrap()
        } else {
            text
        };
        assert_eq!(senders(&serde_json::from_str(&text).unwrap()), ["ann", "bob"], "{command:?}");
    }
}

/// The names of the agents in the first list of agents.
fn senders(value: &Value) -> Vec<String> {
    let children: Vec<&Value> = match value {
        Value::Object(object) => match object.get("agents").and_then(Value::as_array) {
            Some(agents) => {
                let mut names: Vec<_> =
                    agents.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect();
                names.sort();
                return names;
            }
            None => object.values().collect(),
        },
        Value::Array(array) => array.iter().collect(),
        _ => Vec::new(),
    };
    children.into_iter().map(senders).find(|names| !names.is_empty()).unwrap_or_default()
}
