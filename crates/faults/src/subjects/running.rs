//! A system that runs: its processes, which can be killed and started again, and its clients.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use kendall_testbed::{Database, JETSTREAM, LIMIT, Nats};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::loaded::ended;
use super::scene::complaint;
use super::{Outcome, PROBE_LIMIT, Peer, Requests, Scene, Subject, within};

/// A process of a system.
struct RunningPart {
    role: &'static str,
    child: Option<Child>,
}

/// A system whose processes end when this is dropped.
pub struct Running {
    subject: &'static Subject,
    scene: Arc<Scene>,
    parts: Vec<RunningPart>,
    numbers: Arc<AtomicU64>,
    /// The database server, for faults.
    pub database: Option<Database>,
    /// The NATS server, for faults.
    pub nats: Option<Nats>,
}

/// A valid client of a system.
#[derive(Clone)]
pub struct Client {
    subject: &'static Subject,
    scene: Arc<Scene>,
    numbers: Arc<AtomicU64>,
}

/// What a load counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests with the right answer.
    pub right: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
    /// Why the last request failed.
    pub failure: Option<String>,
    /// The numbers of commands whose effect must last.
    pub acknowledged: Vec<u64>,
}

/// A load that runs.
pub struct Load {
    thread: JoinHandle<Counts>,
    group: Arc<AtomicI32>,
}

impl Running {
    /// Prepares and starts a system. `None` where its peer is not installed.
    ///
    /// # Errors
    /// Fails where a part does not start.
    pub fn start(subject: &'static Subject, mut scene: Scene) -> Result<Option<Self>, String> {
        let (mut database, mut nats) = (None, None);
        match subject.peer {
            None => {}
            Some(Peer::Database(kind)) => {
                let Some(started) = Database::start(kind, &[]) else { return Ok(None) };
                scene.peer = started.url(0);
                database = Some(started);
            }
            Some(Peer::Nats(stores)) => {
                let Some(started) = Nats::with(if stores { JETSTREAM } else { "" }) else { return Ok(None) };
                scene.peer = started.url();
                nats = Some(started);
            }
        }
        (subject.prepare)(&scene)?;
        let parts = (subject.parts)(&scene);
        let parts = parts.iter().map(|part| RunningPart { role: part.role, child: None }).collect();
        let numbers = Arc::default();
        let mut running = Self { subject, scene: scene.into(), parts, numbers, database, nats };
        let begun = Instant::now();
        // A database rejects calls for a moment after its start, and a server without its store does not start.
        while let Err(why) = running.start_again() {
            if running.database.is_none() || begun.elapsed() > LIMIT {
                return Err(why);
            }
        }
        Ok(Some(running))
    }

    /// Starts the processes that have ended, and waits until they are ready.
    ///
    /// # Errors
    /// Fails where one does not become ready.
    pub fn start_again(&mut self) -> Result<(), String> {
        (0..self.parts.len()).try_for_each(|at| if self.has_ended(at) { self.start_part(at) } else { Ok(()) })
    }

    fn start_part(&mut self, at: usize) -> Result<(), String> {
        let mut part = (self.subject.parts)(&self.scene).swap_remove(at);
        let path = self.scene.path("log").join(part.role);
        let log = File::options().create(true).append(true).open(&path).map_err(|error| error.to_string())?;
        let before = log.metadata().map_or(0, |file| file.len() as usize);
        let error_log = log.try_clone().map_err(|error| error.to_string())?;
        if at == 0 {
            part.command.envs(self.scene.environment.iter().cloned());
        }
        let child = part.command.stdin(Stdio::null()).stdout(log).stderr(error_log).spawn();
        self.parts[at].child = Some(child.map_err(|error| error.to_string())?);
        let begun = Instant::now();
        loop {
            let said = fs::read(&path).unwrap_or_default();
            let said = String::from_utf8_lossy(&said[before.min(said.len())..]).into_owned();
            if said.contains(part.ready) {
                return Ok(());
            }
            if self.has_ended(at) || begun.elapsed() > LIMIT {
                return Err(format!("{} does not start: {said}", part.role));
            }
            sleep(Duration::from_millis(5));
        }
    }

    fn has_ended(&mut self, at: usize) -> bool {
        let child = &mut self.parts[at].child;
        child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// The id of the process with a role, if it runs.
    pub fn id(&mut self, role: &str) -> Option<u32> {
        let at = self.parts.iter().position(|part| part.role == role)?;
        if self.has_ended(at) { None } else { self.parts[at].child.as_ref().map(Child::id) }
    }

    /// The ids of all processes of kendall that run.
    pub fn ids(&mut self) -> Vec<u32> {
        let roles: Vec<_> = self.parts.iter().map(|part| part.role).collect();
        roles.into_iter().filter_map(|role| self.id(role)).collect()
    }

    /// Sends a signal to the process with a role, and waits for its end where the signal is SIGKILL.
    pub fn signal(&mut self, role: &str, signal: Signal) {
        let Some(part) = self.parts.iter_mut().find(|part| part.role == role) else { return };
        let Some(child) = &mut part.child else { return };
        _ = kill_process(Pid::from_child(child), signal);
        if signal == Signal::KILL {
            _ = child.wait();
            part.child = None;
        }
    }

    /// What a process has written.
    pub fn log(&self, role: &str) -> String {
        let bytes = fs::read(self.scene.path("log").join(role)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The roles of its processes.
    pub fn roles(&self) -> Vec<&'static str> {
        self.parts.iter().map(|part| part.role).collect()
    }

    /// Where it runs.
    pub fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    /// The name of the system.
    pub fn name(&self) -> &'static str {
        self.subject.name
    }

    /// Whether its clients send datagrams.
    pub fn has_datagrams(&self) -> bool {
        self.subject.datagrams
    }

    /// The command of a valid client in another scene.
    pub fn probe_in(&self, scene: &Scene) -> Command {
        (self.subject.probe)(scene, self.numbers.fetch_add(1, Relaxed))
    }

    /// A client, which may be used by another thread.
    pub fn client(&self) -> Client {
        Client { subject: self.subject, scene: self.scene.clone(), numbers: self.numbers.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Clients first: they close their connections.
        for child in self.parts.iter_mut().rev().filter_map(|part| part.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Client {
    /// Runs the probe, and returns its number and how it ended.
    pub fn probe(&self) -> (u64, Outcome) {
        let n = self.numbers.fetch_add(1, Relaxed);
        let command = (self.subject.probe)(&self.scene, n);
        let output = within(&command, PROBE_LIMIT).output();
        (n, self.judged(n, &output.expect("timeout of coreutils is installed")))
    }

    fn judged(&self, n: u64, output: &Output) -> Outcome {
        (self.subject.judge)(&self.scene, n, output)
    }

    /// Whether the effect of an acknowledged probe is still there.
    ///
    /// # Errors
    /// Says what is lost.
    pub fn check_kept(&self, n: u64) -> Result<(), String> {
        self.subject.is_kept.map_or(Ok(()), |is_kept| is_kept(&self.scene, n))
    }

    /// Loads the system at this many requests a second.
    pub fn load(&self, rate: f64, duration: Duration) -> Load {
        let group = Arc::<AtomicI32>::default();
        let (client, its_group) = (self.clone(), group.clone());
        let thread = thread::spawn(move || match client.subject.requests {
            Requests::Url(url) => {
                let mut command = client.scene.kendall(["load"]);
                command.args(url(&client.scene)).args(["--rate", &rate.to_string()]);
                command.args(["--duration", &format!("{}s", duration.as_secs_f64())]);
                client.whole_load(command.args(["--timeout", "10s", "--json"]), &its_group)
            }
            Requests::Probes => client.probes(rate, duration, &its_group),
            Requests::Inside => Counts::default(),
        });
        Load { thread, group }
    }

    fn whole_load(&self, command: &mut Command, group: &AtomicI32) -> Counts {
        let output = run_in_group(command, group);
        let mut counts = Counts::default();
        match ended(&output) {
            Some([answered, wrong, failed @ ..]) => {
                counts.right = answered;
                counts.failed = failed.iter().sum();
                counts.wrong.extend((wrong > 0).then(|| format!("the load counted {wrong} wrong answers")));
            }
            None => counts.failure = Some(complaint(&output)),
        }
        counts
    }

    fn probes(&self, rate: f64, duration: Duration, group: &AtomicI32) -> Counts {
        let (begun, mut counts) = (Instant::now(), Counts::default());
        for sent in 0_u32.. {
            sleep((Duration::from_secs_f64(1.0 / rate) * sent).saturating_sub(begun.elapsed()));
            if begun.elapsed() >= duration {
                break;
            }
            let n = self.numbers.fetch_add(1, Relaxed);
            let output = run_in_group(&mut within(&(self.subject.probe)(&self.scene, n), PROBE_LIMIT), group);
            counts.add(n, self.judged(n, &output));
        }
        counts
    }
}

impl Counts {
    /// Counts the outcome of one command.
    pub fn add(&mut self, n: u64, outcome: Outcome) {
        match outcome {
            Outcome::Right => {
                self.right += 1;
                self.acknowledged.push(n);
            }
            Outcome::Wrong(why) => self.wrong.push(why),
            Outcome::Failed(why) => {
                self.failed += 1;
                self.failure = Some(why);
            }
        }
    }
}

impl Load {
    /// Sends a signal to the client that runs now.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.group.load(Relaxed)) {
            _ = kill_process_group(group, signal);
        }
    }

    /// Waits for its end, and returns what it counted.
    ///
    /// # Panics
    /// Where its thread does.
    pub fn finish(self) -> Counts {
        self.thread.join().expect("the load does not panic")
    }
}

/// Runs a command in a group of processes, so that a signal reaches it whole.
fn run_in_group(command: &mut Command, group: &AtomicI32) -> Output {
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("programs can be started");
    group.store(child.id() as i32, Relaxed);
    let output = child.wait_with_output().expect("it is a child");
    group.store(0, Relaxed);
    output
}
