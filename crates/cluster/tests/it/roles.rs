//! Workers and coordinators as separate processes: this test program, started again.

use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kendall_cluster::{Cluster, ClusterOptions, JointSearch, JointState, SearchSpec, WorkerOptions, work};
use kendall_digest::gpu::Device;
use kendall_digest::sha256::digest;
use kendall_digest::{Engine, Interrupt, sha256};
use kendall_nats::NatsAccess;
use kendall_testbed::Nats;
use rustix::process::{Pid, Signal, kill_process};

fn access(url: &str) -> NatsAccess {
    NatsAccess::new(url.parse().unwrap())
}

/// A server's side of a cluster, its ledger in memory.
pub(crate) fn cluster_at(url: &str) -> Cluster {
    Cluster::start(ClusterOptions { access: access(url), ledger: None }).unwrap()
}

/// A server's side of a cluster, its ledger in a file.
pub(crate) fn cluster_on(nats: &Nats) -> Cluster {
    Cluster::start(ClusterOptions { access: access(&nats.url()), ledger: Some(ledger_of(nats)) }).unwrap()
}

pub(crate) fn ledger_of(nats: &Nats) -> PathBuf {
    nats.folder().join("ledger.db")
}

/// What a started process does, and with what.
const ROLE: &str = "KENDALL_CLUSTER_ROLE";

/// A process that is killed when this is dropped.
pub(crate) struct Role {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Role {
    fn start(role: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["roles::a_process_in_a_role", "--exact", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Some(BufReader::new(child.stdout.take().unwrap()));
        Self { child, lines }
    }

    /// A worker with one thread, which has begun to take chunks.
    pub(crate) fn worker(url: &str) -> Self {
        let mut role = Self::start(&format!("worker {url}"));
        role.line("working");
        role
    }

    /// A coordinator that searches for the candidate of a digest in a range.
    pub(crate) fn coordinator(url: &str, ledger: &str, candidate: u64, end: u64) -> Self {
        Self::start(&format!("coordinator {url} {ledger} {candidate} {end}"))
    }

    /// The rest of the line that begins with a word; `None` if the process ends before.
    pub(crate) fn line(&mut self, word: &str) -> Option<String> {
        let lines = self.lines.as_mut()?.lines().map_while(Result::ok);
        { lines }.find_map(|line| Some(line.split_once(word)?.1.trim().to_owned()))
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the process has ended.
    pub(crate) fn finish(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    /// Sends SIGTERM.
    pub(crate) fn ask_to_end(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Ends the process with SIGTERM and returns whether it succeeded.
    pub(crate) fn terminate(&mut self) -> bool {
        self.ask_to_end();
        self.child.wait().unwrap().success()
    }

    /// Whether the process ends within this time.
    pub(crate) fn ends_in(&mut self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while !self.has_ended() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        self.has_ended()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_process_in_a_role() {
    let Ok(role) = env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    match words[..] {
        ["worker", url] => {
            let options = WorkerOptions {
                access: access(url),
                engine: engine(),
                cores: NonZeroUsize::MIN,
                device: Device::Cpu,
            };
            work(options, |_| say("working")).unwrap();
        }
        ["coordinator", url, ledger, candidate, end] => {
            let options = ClusterOptions { access: access(url), ledger: Some(ledger.into()) };
            let Ok(cluster) = Cluster::start(options) else { return };
            let found = search(&cluster, candidate.parse().unwrap(), end.parse().unwrap(), Some(engine()));
            say(&format!("answer {found:?}"));
        }
        _ => unreachable!("{role}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

/// The fastest engine of this machine.
pub(crate) fn engine() -> Engine {
    let begun = Instant::now();
    Engine::choose(None, || begun.elapsed()).unwrap()
}

/// A search for the candidate behind the digest of `candidate` among those below `end`.
pub(crate) fn search(cluster: &Cluster, candidate: u64, end: u64, local: Option<Engine>) -> Option<u64> {
    let spec = SearchSpec::Integer { digest: digest(candidate) };
    let mut search = JointSearch::begin(cluster, spec, 0..end, 1.0, || {}).unwrap();
    run(&mut search, candidate, local)
}

/// Runs a search to its end; this process tests too, if it has an engine.
pub(crate) fn run(search: &mut JointSearch, candidate: u64, local: Option<Engine>) -> Option<u64> {
    let targets = sha256::Targets::one(digest(candidate));
    loop {
        match (search.exchange(), local) {
            (JointState::Found(value), _) => return Some(value),
            (JointState::Absent, _) => return None,
            (JointState::Left, Some(engine)) => {
                let Some(part) = search.take(50_000) else { continue };
                let outcome = sha256::scan(engine, &targets, part.clone(), &Interrupt::new());
                search.give_back(part.clone(), outcome.reached(&part));
                if let sha256::Outcome::Found { value, .. } = outcome {
                    search.find(value);
                }
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}
