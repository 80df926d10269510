//! The thread that reads all sources at fixed instants.
//!
//! Each source may use a share of a core; a more expensive one is read less often ([`Pace`]). The fast readings allocate nothing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::Duration;

use kendall_archive::series::SeriesWriter;
use kendall_record::RecordError;
use kendall_record::clock::now_ns;
use rustix::time::{ClockId, clock_gettime};

use crate::family::{MOST_PROCESSES, Target, add_descendants};
use crate::pace::Pace;
use crate::proc::{BUFFER_BYTES, Buffer, Group, Network, Process, System, start_ticks};
use crate::row::{Reading, Role, ThreadState};
use crate::sockets::Diagnosis;
use crate::summary::Cost;
use crate::tally::{Tally, Who};

/// A group of quantities that are read together.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// CPU time and run-queue wait of every thread.
    Times,
    /// Context switches and state of every thread.
    More,
    Processes,
    Machine,
    Networks,
    Group,
    Sockets,
    /// New threads and processes.
    Newcomers,
    /// Which sockets belong to which process.
    Owners,
}

/// The most that each source may use, as a share of a core. Together they stay below 1 %, with capacity left for the thread's own
/// wake-ups and writes.
const SHARES: [(Source, f64); 9] = [
    (Source::Times, 0.0022),
    (Source::More, 0.0014),
    (Source::Processes, 0.0008),
    (Source::Machine, 0.0003),
    (Source::Networks, 0.0004),
    (Source::Group, 0.0001),
    (Source::Sockets, 0.0008),
    (Source::Newcomers, 0.0006),
    (Source::Owners, 0.0003),
];

/// The most that everything may use, wake-ups and writes included.
const WHOLE: f64 = 0.009;

/// Whether the states of threads and sockets count now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    At,
    Away,
}

/// All sources, and the sinks of their readings.
pub(crate) struct Sampler {
    every: Duration,
    targets: Vec<Target>,
    processes: Vec<Process>,
    /// When the watch started, in clock ticks since the machine started.
    start_ticks: u64,
    system: System,
    /// The first process of each role.
    networks: Vec<(u32, Network)>,
    group: Option<(u32, Group)>,
    diagnosis: Option<Diagnosis>,
    paces: [Pace; SHARES.len()],
    record: Option<SeriesWriter>,
    pub(crate) tally: Tally,
    missing: Vec<String>,
    samples: u64,
    skipped: u64,
}

/// The result of a sampler that has stopped.
pub(crate) struct Sampled {
    pub(crate) tally: Tally,
    pub(crate) record: Option<SeriesWriter>,
    pub(crate) cost: Cost,
    pub(crate) missing: Vec<String>,
    pub(crate) cores: f64,
}

impl Sampler {
    pub(crate) fn new(every: Duration, targets: Vec<Target>, processes: Vec<Process>) -> Self {
        let mut missing = Vec::new();
        let mut networks = Vec::new();
        for target in &targets {
            networks.push((target.pid, Network::of(target.pid)));
        }
        let server = targets.iter().find(|target| target.role == Role::Server);
        let group = server.and_then(|target| Some((target.pid, Group::of(target.pid)?)));
        let diagnosis = diagnosis(server.map(|target| target.pid), &mut missing);
        let system = System::open();
        if !system.reports_pressure() {
            missing.push("pressure: this kernel does not report it (/proc/pressure)".into());
        }
        let is_target = |process: &&Process| targets.iter().any(|target| target.pid == process.pid);
        for process in processes.iter().filter(is_target).filter(|process| !process.reports_io()) {
            missing.push(format!(
                "files of {}: only its owner may read /proc/{}/io",
                process.label, process.pid
            ));
        }
        let mut sampler = Self {
            every,
            networks,
            group,
            diagnosis,
            system,
            paces: SHARES.map(|(_, share)| Pace::new(share, 1)),
            record: None,
            tally: Tally::default(),
            missing,
            samples: 0,
            skipped: 0,
            targets,
            processes,
            start_ticks: start_ticks(Path::new("/proc/thread-self")),
        };
        for (pace, (source, share)) in sampler.paces.iter_mut().zip(SHARES) {
            // Quantities that change slowly, or that also cost the server time, are not read for a while.
            let least_ns = match source {
                Source::Newcomers | Source::Networks | Source::Sockets | Source::More => 50_000_000,
                Source::Owners => 500_000_000,
                _ => 0,
            };
            *pace = Pace::new(share, (least_ns / every.as_nanos().max(1)).max(1) as u64);
        }
        sampler
    }

    /// Writes its rows to a table.
    pub(crate) fn recording(mut self, record: Option<SeriesWriter>) -> Self {
        self.record = record;
        self
    }

    /// Reads until stopped, and then everything once more.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Sampled, RecordError> {
        let cpu_before = cpu_ns();
        let every_ns = i64::try_from(self.every.as_nanos()).unwrap_or(i64::MAX);
        let mut buffer = [0; BUFFER_BYTES];
        let mut due_ns = now_ns();
        let mut tick = 0;
        let mut whole = Pace::new(WHOLE, 1);
        let mut spent_ns = cpu_before;
        loop {
            let last = stop.load(Ordering::Relaxed);
            // Before and after a load, threads and sockets are in other states than during it.
            let looks = match (tick, last) {
                (0, _) => Look::Away,
                (_, true) if self.tally.has_looked() => Look::Away,
                _ => Look::At,
            };
            self.read(tick, last || tick == 0, looks, &mut buffer)?;
            let cpu_ns = cpu_ns();
            if tick > 0 {
                whole.took(tick, (cpu_ns - spent_ns) as f64, every_ns as f64);
            }
            spent_ns = cpu_ns;
            self.samples += 1;
            if last {
                break;
            }
            // Instants that have passed by now are skipped, and counted.
            let behind = (now_ns() - due_ns) / every_ns;
            self.skipped += behind.max(0) as u64;
            let ticks = behind.max(0) as u64 + whole.every();
            due_ns = due_ns.saturating_add(every_ns.saturating_mul(ticks as i64));
            tick += ticks;
            wait_until(due_ns, stop);
        }
        let cost = Cost {
            cpu_s: (cpu_ns() - cpu_before) as f64 / 1e9,
            samples: self.samples,
            skipped: self.skipped,
            every_s: self.every.as_secs_f64(),
        };
        let cores = self.cores();
        if whole.every() > 1 {
            let every_ms = whole.every() as f64 * self.every.as_secs_f64() * 1e3;
            self.missing.push(format!(
                "what lies between readings {every_ms:.0} ms apart: more would cost over 1 % of a core here"
            ));
        }
        self.name_what_is_partial();
        let Self { tally, record, missing, .. } = self;
        Ok(Sampled { tally, record, cost, missing, cores })
    }

    /// Reads the sources that are due.
    fn read(&mut self, tick: u64, all: bool, look: Look, buffer: &mut Buffer) -> Result<(), RecordError> {
        let mut spent = cpu_ns();
        let now = now_ns();
        let tick_ns = self.every.as_nanos() as f64;
        let is_due =
            |paces: &[Pace; SHARES.len()], source: Source| all || paces[source as usize].is_due(tick);
        let mut took = |paces: &mut [Pace; SHARES.len()], source: Source| {
            let until = cpu_ns();
            paces[source as usize].took(tick, (until - spent) as f64, tick_ns);
            spent = until;
        };
        if is_due(&self.paces, Source::Newcomers) {
            self.find();
            took(&mut self.paces, Source::Newcomers);
        }
        if is_due(&self.paces, Source::Owners) {
            self.own_sockets();
            took(&mut self.paces, Source::Owners);
        }
        if is_due(&self.paces, Source::More) {
            self.read_more(now, look, buffer)?;
            took(&mut self.paces, Source::More);
        } else if is_due(&self.paces, Source::Times) {
            self.read_times(now, buffer)?;
            took(&mut self.paces, Source::Times);
        }
        let [mut server, mut generator, mut machine] = [const { None }; 3];
        if look == Look::At && is_due(&self.paces, Source::Sockets) && self.diagnosis.is_some() {
            self.read_sockets(&mut server, &mut generator);
            took(&mut self.paces, Source::Sockets);
        }
        if let Some((_, group)) = self.group.as_ref().filter(|_| is_due(&self.paces, Source::Group)) {
            group.read(buffer, server.get_or_insert_default());
            took(&mut self.paces, Source::Group);
        }
        if is_due(&self.paces, Source::Networks) {
            for (target, (_, network)) in self.targets.iter().zip(&self.networks) {
                let reading = if target.role == Role::Server { &mut server } else { &mut generator };
                network.read(buffer, reading.get_or_insert_default());
            }
            took(&mut self.paces, Source::Networks);
        }
        if is_due(&self.paces, Source::Machine) {
            self.system.read(buffer, machine.get_or_insert_default());
            took(&mut self.paces, Source::Machine);
        }
        let processes = is_due(&self.paces, Source::Processes);
        self.read_processes(now, processes, [server, generator], buffer)?;
        if processes {
            took(&mut self.paces, Source::Processes);
        }
        if let Some(machine) = machine {
            self.row(now, Who { role: Role::Machine, process: "", thread: "", is_new: false }, &machine)?;
        }
        Ok(())
    }

    fn read_times(&mut self, now: i64, buffer: &mut Buffer) -> Result<(), RecordError> {
        let Self { processes, start_ticks, tally, record, .. } = self;
        for process in processes {
            for thread in &mut process.threads {
                let mut reading = Reading::default();
                if thread.time(buffer, &mut reading) == Some(true) {
                    let (role, is_new) = (process.role, thread.start_ticks >= *start_ticks);
                    let who = Who { role, process: &process.label, thread: &thread.label, is_new };
                    row(tally, record, now, who, &reading)?;
                }
            }
        }
        Ok(())
    }

    fn read_more(&mut self, now: i64, look: Look, buffer: &mut Buffer) -> Result<(), RecordError> {
        let none = HashSet::new();
        let back_ends = self.diagnosis.as_ref().map_or(&none, Diagnosis::back_ends);
        let Self { processes, start_ticks, tally, record, .. } = self;
        for process in processes {
            let mut failed = Ok(());
            let (role, label) = (process.role, process.label.clone());
            process.more(buffer, back_ends, |thread, reading| {
                let is_new = thread.start_ticks >= *start_ticks;
                let who = Who { role, process: &label, thread: &thread.label, is_new };
                let mut reading = reading.clone();
                reading.place = reading.place.filter(|_| look == Look::At);
                if failed.is_ok() {
                    failed = row(tally, record, now, who, &reading);
                }
            });
            failed?;
        }
        tally.end_reading();
        Ok(())
    }

    fn read_sockets(&mut self, server: &mut Option<Reading>, generator: &mut Option<Reading>) {
        let Some(diagnosis) = &mut self.diagnosis else { return };
        let read = diagnosis.read(server.get_or_insert_default(), generator.get_or_insert_default());
        if let Err(error) = read {
            self.missing
                .push(format!("connections: the kernel does not list them (sock_diag, tcp_diag): {error}"));
            self.diagnosis = None;
        }
    }

    /// Reads the processes, if they are due. Quantities of a whole role go to the row of its first process.
    fn read_processes(
        &mut self,
        now: i64,
        due: bool,
        of_roles: [Option<Reading>; 2],
        buffer: &mut Buffer,
    ) -> Result<(), RecordError> {
        let Self { processes, start_ticks, targets, tally, record, .. } = self;
        let mut of_roles = of_roles;
        let mut ended = Vec::new();
        for process in processes.iter() {
            let of_role = &mut of_roles[usize::from(process.role == Role::Generator)];
            let is_root = targets.iter().any(|target| target.pid == process.pid);
            let (role, is_new) = (process.role, process.start_ticks >= *start_ticks);
            let who = Who { role, process: &process.label, thread: "", is_new };
            let mut reading = of_role.take_if(|_| is_root);
            if due {
                let reading = reading.get_or_insert_default();
                if process.read(buffer, reading).is_none() {
                    tally.end(who);
                    ended.push(process.pid);
                }
            }
            if let Some(reading) = reading {
                row(tally, record, now, who, &reading)?;
            }
        }
        processes.retain(|process| !ended.contains(&process.pid));
        Ok(())
    }

    /// Starts to watch new threads and processes.
    fn find(&mut self) {
        for process in &mut self.processes {
            // A process that has ended is dropped when it is read.
            let _ = process.find_threads();
        }
        if add_descendants(&mut self.processes, &self.targets) {
            self.lacks(format!("processes: only {MOST_PROCESSES} are watched"));
        }
    }

    /// Finds the sockets of the server.
    fn own_sockets(&mut self) {
        let server = self.processes.iter().filter(|process| process.role == Role::Server);
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.own(server.flat_map(Process::sockets).collect());
        }
    }

    /// The cores that the server may use: by affinity, and by the quota of its control group.
    fn cores(&self) -> f64 {
        let server = self.processes.iter().find(|process| process.role == Role::Server);
        let allowed = server.and_then(Process::cores).map(f64::from);
        let all = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let quota = self.group.as_ref().and_then(|(_, group)| group.quota());
        allowed.unwrap_or(all).min(quota.unwrap_or(f64::INFINITY))
    }

    fn name_what_is_partial(&mut self) {
        for process in self.processes.iter().filter(|process| process.is_partly_watched) {
            let (label, watched) = (&process.label, process.threads.len());
            self.missing.push(format!("threads: of those of {label} only {watched} are watched"));
        }
        if self.tally.is_full() {
            self.missing.push("threads: there were too many to distinguish the later ones".into());
        }
        if !self.tally.has_places() {
            self.missing
                .push("where threads wait: neither /proc/PID/task/TID/syscall nor wchan may be read".into());
        } else if let Some(process) = self.processes.iter().find(|process| process.hides_calls()) {
            self.missing.push(format!(
                "waits for locks and back ends of {}, which count as idle and client: /proc/{}/syscall may not be read (its \
                 user and root may, where kernel.yama.ptrace_scope is 0)",
                process.label, process.pid
            ));
        }
        let slow = SHARES.iter().zip(&self.paces).find(|((source, _), _)| matches!(source, Source::Times));
        if let Some((_, pace)) = slow.filter(|(_, pace)| pace.every() > 1) {
            let every_ms = pace.every() as f64 * self.every.as_secs_f64() * 1e3;
            self.missing.push(format!(
                "each thread more often than every {every_ms:.0} ms: it would cost too much here"
            ));
        }
    }

    fn lacks(&mut self, what: String) {
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    fn row(&mut self, now: i64, who: Who<'_>, reading: &Reading) -> Result<(), RecordError> {
        row(&mut self.tally, &mut self.record, now, who, reading)
    }
}

/// Adds a reading to the sums, and to the table if there is one.
fn row(
    tally: &mut Tally,
    record: &mut Option<SeriesWriter>,
    now: i64,
    who: Who<'_>,
    reading: &Reading,
) -> Result<(), RecordError> {
    tally.add(now, who, reading);
    let Some(record) = record else { return Ok(()) };
    let place = reading.place.map_or("", ThreadState::name);
    record.append(now, &[who.role.name(), who.process, who.thread, place], reading.values())
}

/// The socket for the server's connections, if it can be opened.
fn diagnosis(server: Option<u32>, missing: &mut Vec<String>) -> Option<Diagnosis> {
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net"));
    let server = server?;
    match namespace(&server.to_string()) {
        Err(error) => {
            missing.push(format!(
                "connections: only the server's user and root may read its network namespace, /proc/{server}/ns/net: {error}"
            ));
            return None;
        }
        Ok(of_server) if namespace("thread-self").ok().as_ref() != Some(&of_server) => {
            missing.push("connections: the server is in another network namespace".into());
            return None;
        }
        Ok(_) => {}
    }
    match Diagnosis::open() {
        Ok(diagnosis) => Some(diagnosis),
        Err(error) => {
            missing.push(format!("connections: there is no sock_diag: {error}"));
            None
        }
    }
}

/// The CPU time of this thread.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Waits until an instant, or until the end of the watch, which unparks the thread.
fn wait_until(instant_ns: i64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left_ns = instant_ns.saturating_sub(now_ns());
        if left_ns <= 0 {
            return;
        }
        park_timeout(Duration::from_nanos(left_ns as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_its_share_and_all_stay_below_a_hundredth_of_a_core() {
        for (at, (source, share)) in SHARES.into_iter().enumerate() {
            assert_eq!(source as usize, at);
            assert!(share > 0.0);
        }
        let all: f64 = SHARES.iter().map(|(_, share)| share).sum();
        // The rest is for wake-ups and for writing rows.
        assert!(all <= 0.0075, "{all}");
    }
}
