//! One case: a system under load, a fault, and the judgement.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use kendall_testbed::hostile::Draw;

use crate::faults::{Fault, NotInjected};
use crate::subjects::{Client, Counts, Outcome, Requests, Running, Scene, Subject};

/// Within this time, other clients are answered while a fault lasts that must not affect them.
pub const OTHERS_LIMIT: Duration = Duration::from_secs(10);
/// Within this time after a fault, a new client has its right answer.
pub const RECOVERY_LIMIT: Duration = Duration::from_secs(30);
/// The run of the laboratory must also end within it.
pub const RUN_LIMIT: Duration = Duration::from_secs(90);
/// Within this time after a fault, memory and descriptors are back.
pub const LEVEL_LIMIT: Duration = Duration::from_secs(30);
/// A server may have this many descriptors more than before: connections to a store, files of a log.
pub const MORE_DESCRIPTORS: usize = 8;
/// A server may have this much more memory than before, in KiB: caches fill during a case.
pub const MORE_MEMORY_KB: u64 = 64 << 10;

/// Requests a second of the load, and how long it lasts.
const RATE: f64 = 10.0;
const LOAD: Duration = Duration::from_secs(5);
/// Acknowledged commands that are checked at the end, at most.
const MOST_CHECKED: usize = 25;

/// How a case ended.
#[derive(Clone, Debug)]
pub enum CaseResult {
    /// Nothing was lost or wrong, and all bounds held.
    Passed {
        /// From the end of the fault to the first right answer.
        recovery: Duration,
        /// Right answers that were checked.
        checked: u64,
    },
    /// Something was not as it must be.
    Failed(String),
    /// This machine or this user cannot inject the fault.
    LeftOut(String),
}

/// What a second, valid client saw: when it began, when it ended, and how.
struct WatchedProbe {
    n: u64,
    begun: Instant,
    ended: Instant,
    outcome: Outcome,
}

/// Runs a case in a prepared scene.
pub fn run(subject: &'static Subject, fault: &Fault, scene: Scene, draw: &mut Draw) -> CaseResult {
    match try_run(subject, fault, scene, draw) {
        Ok((recovery, checked)) => CaseResult::Passed { recovery, checked },
        Err(NotInjected::LeftOut(why)) => CaseResult::LeftOut(why),
        Err(NotInjected::Failed(why)) => CaseResult::Failed(why),
    }
}

fn try_run(
    subject: &'static Subject,
    fault: &Fault,
    mut scene: Scene,
    draw: &mut Draw,
) -> Result<(Duration, u64), NotInjected> {
    let failed = NotInjected::Failed;
    (fault.before)(&mut scene)?;
    let Some(mut running) = Running::start(subject, scene).map_err(failed)? else {
        return Err(NotInjected::LeftOut("its database or NATS server is not installed".into()));
    };
    let client = running.client();
    let is_loaded = !matches!(subject.requests, Requests::Inside);
    let mut counts = Counts::default();
    if is_loaded {
        // Databases reject calls for a moment after their start.
        counts.add_first_right(&client).map_err(failed)?;
        counts.merge(client.load(RATE, Duration::from_secs(1)).finish());
    }
    let before = levels(&mut running);
    let load = client.load(RATE, LOAD);
    let has_ended = AtomicBool::new(false);
    let (injected, watched, from, load_counts, recovery) = thread::scope(|scope| {
        let watch = scope.spawn(|| if is_loaded { watch(&client, &has_ended) } else { Vec::new() });
        sleep(Duration::from_millis(500 + draw.below(1000) as u64));
        let from = Instant::now();
        let injected = (fault.inject)(&mut running, &load, draw);
        let lifted = *injected.as_ref().unwrap_or(&from);
        let recovery =
            if injected.is_ok() { recover(&mut running, fault, subject, lifted) } else { Ok(lifted) };
        let load_counts = load.finish();
        has_ended.store(true, Relaxed);
        (injected, watch.join().expect("a client does not panic"), from, load_counts, recovery)
    });
    let lifted = injected?;
    let recovered = recovery.map_err(failed)?;
    counts.merge(load_counts);
    let slowest = watched.iter().filter(|probe| probe.ended > from && probe.begun < lifted);
    let slowest =
        slowest.map(|probe| (probe.ended - probe.begun, &probe.outcome)).max_by_key(|(time, _)| *time);
    if (fault.others_are_served)(subject) {
        let during = watched.iter().filter(|probe| probe.ended > from && probe.begun < lifted);
        if let Some(failure) = during.map(|probe| &probe.outcome).find(|outcome| **outcome != Outcome::Right)
        {
            return Err(failed(format!("another client was not served: {failure:?}")));
        }
        if let Some((time, _)) = slowest.filter(|(time, _)| *time > OTHERS_LIMIT) {
            return Err(failed(format!("another client waited {time:?}")));
        }
    }
    watched.into_iter().for_each(|probe| counts.add(probe.n, probe.outcome));
    if let Some(wrong) = counts.wrong.first() {
        return Err(failed(wrong.clone()));
    }
    check_kept(&client, &counts.acknowledged, draw).map_err(failed)?;
    check_logs(&running).map_err(failed)?;
    if is_loaded {
        check_levels(&mut running, &before).map_err(failed)?;
    }
    Ok((recovered - lifted, counts.right))
}

impl Counts {
    /// Probes until the first right answer.
    fn add_first_right(&mut self, client: &Client) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let (n, outcome) = client.probe();
            let is_right = outcome == Outcome::Right;
            self.add(n, outcome);
            if is_right {
                return Ok(());
            }
            if begun.elapsed() > RECOVERY_LIMIT {
                return Err(format!("it does not serve: {:?}", self.failure));
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn merge(&mut self, other: Self) {
        self.right += other.right;
        self.failed += other.failed;
        self.wrong.extend(other.wrong);
        self.failure = other.failure.or_else(|| self.failure.take());
        self.acknowledged.extend(other.acknowledged);
    }
}

/// A second client, until the case has ended.
fn watch(client: &Client, has_ended: &AtomicBool) -> Vec<WatchedProbe> {
    let mut watched = Vec::new();
    while !has_ended.load(Relaxed) {
        let begun = Instant::now();
        let (n, outcome) = client.probe();
        watched.push(WatchedProbe { n, begun, ended: Instant::now(), outcome });
        sleep(Duration::from_millis(100));
    }
    watched
}

/// Waits until a new client has its right answer, and returns when.
fn recover(
    running: &mut Running,
    fault: &Fault,
    subject: &Subject,
    lifted: Instant,
) -> Result<Instant, String> {
    let is_run = matches!(subject.requests, Requests::Inside);
    let limit = if is_run { RUN_LIMIT } else { RECOVERY_LIMIT };
    let client = running.client();
    loop {
        let (_, outcome) = client.probe();
        match outcome {
            Outcome::Right => return Ok(Instant::now()),
            Outcome::Wrong(why) => return Err(why),
            Outcome::Failed(why) if lifted.elapsed() > limit => {
                return Err(format!("not recovered after {limit:?}: {why}"));
            }
            Outcome::Failed(_) if running.id("server").is_none() => {
                if !is_run && !fault.may_end {
                    return Err(format!("the server has ended: {}", last_line(&running.log("server"))));
                }
                running.start_again()?;
            }
            Outcome::Failed(_) => sleep(Duration::from_millis(50)),
        }
    }
}

fn last_line(log: &str) -> &str {
    log.lines().last().unwrap_or_default()
}

/// Checks acknowledged commands, all of few and some of many.
fn check_kept(client: &Client, acknowledged: &[u64], draw: &mut Draw) -> Result<(), String> {
    let all = acknowledged.len();
    let first = draw.below(all);
    let checked =
        (0..all.min(MOST_CHECKED)).map(|at| acknowledged[(first + at * all.div_ceil(MOST_CHECKED)) % all]);
    let lost: Vec<String> = checked.filter_map(|n| client.check_kept(n).err()).collect();
    if lost.is_empty() { Ok(()) } else { Err(format!("lost: {}", lost.join("; "))) }
}

fn check_logs(running: &Running) -> Result<(), String> {
    for role in running.roles() {
        let log = running.log(role);
        if let Some(panic) = log.lines().find(|line| line.contains("panicked at")) {
            return Err(format!("the {role} panics: {panic}"));
        }
    }
    Ok(())
}

/// Descriptors and memory in KiB of each process.
fn levels(running: &mut Running) -> BTreeMap<&'static str, (usize, u64)> {
    let roles = running.roles();
    let ids = roles.into_iter().filter_map(|role| Some((role, running.id(role)?)));
    ids.map(|(role, id)| (role, level(id))).collect()
}

fn level(id: u32) -> (usize, u64) {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    (fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count), memory.unwrap_or(0))
}

fn check_levels(running: &mut Running, before: &BTreeMap<&'static str, (usize, u64)>) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let now = levels(running);
        let high = before.iter().find_map(|(role, (descriptors, memory))| {
            let Some((descriptors_now, memory_now)) = now.get(role) else {
                return Some(format!("the {role} has ended: {}", last_line(&running.log(role))));
            };
            if *descriptors_now > descriptors + MORE_DESCRIPTORS {
                return Some(format!("the {role} has {descriptors_now} descriptors, {descriptors} before"));
            }
            (*memory_now > memory + MORE_MEMORY_KB)
                .then(|| format!("the {role} has {memory_now} KiB in use, {memory} before"))
        });
        match high {
            None => return Ok(()),
            Some(why) if begun.elapsed() > LEVEL_LIMIT => return Err(why),
            Some(_) => sleep(Duration::from_millis(200)),
        }
    }
}
