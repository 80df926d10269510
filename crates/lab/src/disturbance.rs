//! Measures how other work disturbed a trial: processor time that other programs used, or that the host of a virtual machine took
//! away.
//!
//! The numbers are read from `/proc` before and after the trial, so they cost the trial nothing. A shared machine is never
//! entirely quiet. A trial of a run therefore counts as disturbed by how far it exceeds what is usual in the same run, not by a
//! fixed bound that a noisy machine would always exceed. A separate load has no other trials to be compared with, so a fixed
//! bound applies to it.

use std::collections::{HashMap, HashSet};
use std::fs;

use kendall_analysis::{Disturbance, ForeignProgram, Surroundings};

/// The kernel counts in ticks, and on each core a trial begins and ends within a tick; three ticks do not count as a disturbance.
const TICKS: f64 = 3.0;
/// The number of busiest programs to keep; a sentence names the first.
const PROGRAMS: usize = 5;

/// The counters of the machine at one instant, in ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
    /// The total time of all cores.
    total: f64,
    /// Time in programs, and in the kernel for programs.
    busy: f64,
    steal: f64,
    /// Time of this process, of its descendants, and of the servers that it loads.
    own: f64,
    cores: f64,
    /// The name and the time of each other process, by its number and its start: the kernel reuses numbers.
    others: Others,
}

/// The name and the time in ticks of processes, by number and start.
type Others = HashMap<(u32, u64), (String, f64)>;

/// One process as the kernel accounts for it.
#[derive(Clone, Debug, PartialEq)]
struct Process {
    parent: u32,
    name: String,
    /// The process's user and system time, and that of its children that have ended.
    ticks: f64,
    /// The start of the process, in ticks since the machine started.
    started: u64,
}

impl Look {
    /// Reads the counters; `None` on a system without them.
    pub(crate) fn now() -> Option<Self> {
        Self::beside(&[])
    }

    /// Reads the counters. These servers and their descendants do not count as other programs.
    pub(crate) fn beside(servers: &[u32]) -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let (own, others) = divided(&processes()?, servers);
        Some(Self { others, ..Self::parse(&text, own)? })
    }

    /// `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal. Interrupts do not count as busy: the kernel does
    /// not record which program caused them.
    fn parse(stat: &str, own: f64) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> =
            line.split_whitespace().filter_map(|field| field.parse().ok()).take(8).collect();
        let [user, nice, system, .., steal] = ticks[..] else { return None };
        let cores = stat.lines().filter(|line| line.starts_with("cpu")).count() as f64 - 1.0;
        (ticks.len() == 8).then_some(Self {
            total: ticks.iter().sum(),
            busy: user + nice + system,
            steal,
            own,
            cores,
            others: HashMap::new(),
        })
    }

    /// What happened on the machine since an earlier reading; `None` where no time passed.
    pub(crate) fn since(&self, before: &Self) -> Option<Disturbance> {
        let total = self.total - before.total;
        let foreign = (self.busy - before.busy) - (self.own - before.own);
        (total > 0.0).then(|| Disturbance {
            steal_share: ((self.steal - before.steal) / total).clamp(0.0, 1.0),
            foreign_share: (foreign / total).clamp(0.0, 1.0),
            resolution_share: TICKS * self.cores / total,
        })
    }

    /// The disturbance since an earlier reading, with the names of the other programs.
    pub(crate) fn surroundings_since(&self, before: &Self) -> Option<Surroundings> {
        let disturbance = self.since(before)?;
        let total = self.total - before.total;
        let mut shares: HashMap<&str, f64> = HashMap::new();
        for (id, (name, ticks)) in &self.others {
            let earlier = before.others.get(id).map_or(0.0, |(_, ticks)| *ticks);
            *shares.entry(name).or_default() += (ticks - earlier).max(0.0) / total;
        }
        let program = |(name, share): (&str, f64)| ForeignProgram {
            name: name.to_owned(),
            // The time that a parent has inherited from an ended child was counted as the child's before.
            share: share.min(disturbance.foreign_share),
        };
        let mut programs: Vec<ForeignProgram> =
            shares.into_iter().filter(|(_, share)| *share > 0.0).map(program).collect();
        programs.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        programs.truncate(PROGRAMS);
        Some(Surroundings { disturbance, programs, stalls: None })
    }
}

/// Every process of the machine.
fn processes() -> Option<HashMap<u32, Process>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended since.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        processes.extend(parse_process(&stat).map(|found| (id, found)));
    }
    Some(processes)
}

/// Whether a process is one of `of`, or descends from one.
fn descends(processes: &HashMap<u32, Process>, mut id: u32, of: &[u32]) -> bool {
    // No line of ancestors is longer than the number of processes.
    for _ in 0..processes.len() {
        if of.contains(&id) {
            return true;
        }
        match processes.get(&id) {
            Some(process) => id = process.parent,
            None => return false,
        }
    }
    false
}

/// The processes of these servers that do the work: of each line of descendants the last, because a process that has others usually
/// only supervises them.
pub(crate) fn workers_of(servers: &[u32]) -> Vec<u32> {
    let processes = processes().unwrap_or_default();
    let parents: HashSet<u32> = processes.values().map(|process| process.parent).collect();
    let works = |id: &u32| !parents.contains(id) && descends(&processes, *id, servers);
    processes.keys().copied().filter(works).collect()
}

/// The time of this process, of these servers and of their descendants; and each other process with its name and time. A process
/// that ends between two readings passes its time to the parent that waits for it.
fn divided(processes: &HashMap<u32, Process>, servers: &[u32]) -> (f64, Others) {
    let ours = [servers, &[std::process::id()]].concat();
    let (own, others): (Vec<_>, Vec<_>) =
        processes.iter().partition(|(id, _)| descends(processes, **id, &ours));
    let ticks = own.iter().map(|(_, process)| process.ticks).sum();
    let other =
        |(id, process): (&u32, &Process)| ((*id, process.started), (process.name.clone(), process.ticks));
    (ticks, others.into_iter().map(other).collect())
}

/// Fields 2, 4, 14 to 17 and 22 of `/proc/PID/stat`.
fn parse_process(stat: &str) -> Option<Process> {
    // The command's name, field 2, may hold blanks; it ends at the last bracket.
    let (before, rest) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    // The name of a kernel worker changes with its current work.
    let name = name.split_once('/').filter(|(kind, _)| *kind == "kworker").map_or(name, |(kind, _)| kind);
    let (parent, started) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
    Some(Process { parent, name: name.to_owned(), ticks, started })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn the_counters_are_read() {
        let stat =
            "cpu  100 5 50 800 10 3 7 25 0 0\ncpu0 50 0 0 0 0 0 0 0 0 0\ncpu1 50 0 0 0 0 0 0 0 0 0\nintr 5\n";
        let look = Look::parse(stat, 40.0).unwrap();
        let others = HashMap::from([((7, 1), ("cc1".to_owned(), 10.0))]);
        assert_eq!(
            look,
            Look { total: 1000.0, busy: 155.0, steal: 25.0, own: 40.0, cores: 2.0, others: HashMap::new() }
        );
        let look = Look { others, ..look };
        let others = HashMap::from([
            ((7, 1), ("cc1".to_owned(), 60.0)),
            // The process number of a program that has ended.
            ((8, 90), ("rustc".to_owned(), 45.0)),
        ]);
        let later = Look { total: 2000.0, busy: 455.0, steal: 75.0, own: 240.0, cores: 2.0, others };
        let seen = later.since(&look).unwrap();
        assert_eq!((seen.foreign_share, seen.steal_share, seen.resolution_share), (0.1, 0.05, 0.006));
        assert_eq!(look.since(&look), None);
        assert_eq!(Look::parse("cpu  1 2 3\n", 0.0), None);
        let program = |name: &str, share| ForeignProgram { name: name.to_owned(), share };
        let named = later.surroundings_since(&look).unwrap();
        assert_eq!(named.programs, [program("cc1", 0.05), program("rustc", 0.045)]);
        let stat = |name: &str| format!("12 ({name}) S 7 2 3 4 5 6 7 8 9 10 250 50 20 3 20 0 1 0 77 0");
        let process = parse_process(&stat("a ) b")).unwrap();
        assert_eq!(process, Process { parent: 7, name: "a ) b".into(), ticks: 323.0, started: 77 });
        assert_eq!(parse_process(&stat("kworker/1:2-events")).unwrap().name, "kworker");
    }

    /// A child's work counts as our own, that of other processes does not. The test compares the two, since the machine may be
    /// busy anyway.
    #[test]
    fn what_descends_from_us_is_not_foreign() {
        let own_ticks = || divided(&processes().unwrap(), &[]).0;
        let before = own_ticks();
        let script = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(own_ticks() >= before + 5.0);
    }

    /// A program whose parent has ended counts as foreign, with all the time it used. The program ends without a signal.
    #[test]
    fn what_does_not_descend_from_us_is_foreign() {
        let before = Look::now().unwrap();
        // The shell that starts it ends at once, so the machine's first process becomes its parent.
        let script = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done >/dev/null & echo $!";
        let started = Command::new("sh").args(["-c", script]).output().unwrap();
        let id = String::from_utf8(started.stdout).unwrap().trim().to_owned();
        let used = || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            parse_process(&stat).map(|process| process.ticks)
        };
        let (mut ticks, deadline) = (0.0, Instant::now() + Duration::from_secs(60));
        while let (Some(now), true) = (used(), ticks < 30.0 && Instant::now() < deadline) {
            ticks = now;
            std::thread::sleep(Duration::from_millis(5));
        }
        let after = Look::now().unwrap();
        let seen = after.since(&before).unwrap();
        let foreign_ticks = seen.foreign_share * (after.total - before.total);
        assert!(ticks >= 10.0 && foreign_ticks >= 0.5 * ticks, "{foreign_ticks} of {ticks}");
        let named = after.surroundings_since(&before).unwrap();
        assert!(named.programs.iter().any(|program| program.name == "sh"), "{named}");
    }
}
