//! Agents in this process and in others.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use clap::Parser;
use kendall_agents::{AgentOptions, Fleet, FleetError, FleetOptions, Target, agent};
use kendall_load::{Plan, Progress, RunSummary};
use kendall_record::RequestRow;

use crate::echo::SYSTEMS;

#[derive(Parser)]
struct AgentArguments {
    #[command(flatten)]
    options: AgentOptions,
}

#[derive(Parser)]
struct FleetArguments {
    #[command(flatten)]
    options: FleetOptions,
}

/// An agent on a thread of this process, stopped when this is dropped.
pub(crate) struct Agent {
    cancel: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub(crate) fn start(nats: &str, name: &str, allow: &str) -> Self {
        let words = ["agent", "--nats", nats, "--name", name, "--allow", allow];
        let options = AgentArguments::parse_from(words).options;
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let thread = thread::spawn(move || {
            agent(&options, SYSTEMS, &flag).unwrap();
        });
        Self { cancel, thread: Some(thread) }
    }

    /// Lets it end, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.interrupt();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// Set in a process that serves as an agent.
const ROLE: &str = "KENDALL_AGENTS_ROLE";

/// Checks that an agent without targets is refused; in a process that another test starts, serves as an agent that can be killed.
#[test]
fn agent_process() {
    if env::var(ROLE).is_err() {
        let lacking = AgentArguments::try_parse_from(["agent", "--nats", "nats://127.0.0.1:1"]);
        let why = lacking.err().expect("it has no targets").to_string();
        assert!(why.contains("--allow"), "{why}");
        return;
    }
    let value = |name: &str| env::var(name).unwrap();
    let words = [
        "agent".into(),
        "--nats".into(),
        value("NATS"),
        "--name".into(),
        value("NAME"),
        "--allow".into(),
        value("ALLOW"),
    ];
    let options = AgentArguments::parse_from(words).options;
    agent(&options, SYSTEMS, &AtomicBool::new(false)).unwrap();
}

/// An agent in a separate process, killed when this is dropped.
pub(crate) struct AgentProcess(Child);

impl AgentProcess {
    pub(crate) fn start(nats: &str, name: &str, allow: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "bed::agent_process"]);
        command.env(ROLE, "agent").env("NATS", nats).env("NAME", name).env("ALLOW", allow);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn gather(nats: &str, count: u32) -> Result<Fleet, FleetError> {
    let count = count.to_string();
    let words = ["fleet", "--agents", nats, "--agents-count", &count];
    Ok(Fleet::gather(&FleetArguments::parse_from(words).options)?.expect("agents are named"))
}

/// Makes a load, and returns its rows by their numbers.
pub(crate) fn load(
    fleet: &Fleet,
    target: &Target,
    plan: &Plan,
    threads: u32,
) -> Result<(RunSummary, Vec<RequestRow>), FleetError> {
    let progress = Progress::default();
    let never = AtomicBool::new(false);
    let (summary, mut rows): (_, Vec<RequestRow>) =
        fleet.run(target, plan, Some(threads), &progress, &never, |rows| rows.flatten().collect())?;
    rows.sort_by_key(|row| row.index);
    assert_eq!(progress.sent.load(Ordering::Relaxed), summary.sent);
    assert_eq!(progress.ended.load(Ordering::Relaxed), summary.sent);
    Ok((summary, rows))
}
