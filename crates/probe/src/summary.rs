//! The summary of a watch: the resources of a server and its generator, in the numbers that a report shows.

use serde::{Deserialize, Serialize};

use crate::row::{Column, Role, ThreadState};
use crate::tally::{Entry, Looks, Tally};

/// The most threads that are named; the rest are added up.
const NAMED_THREADS: usize = 12;

/// The result of watching processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The time from the first reading to the last, in seconds.
    pub length_s: f64,
    /// The cost of watching.
    pub cost: Cost,
    /// The cores that the server may use.
    pub cores: f64,
    /// The machine as a whole.
    pub machine: MachineUse,
    /// The system under test.
    pub server: Option<Use>,
    /// The load generator.
    pub generator: Option<Use>,
    /// CPU over time.
    pub timeline: Timeline,
    /// The quantities that could not be read, each with the reason.
    pub missing: Vec<String>,
}

/// The cost of watching.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the thread that watches, in seconds.
    pub cpu_s: f64,
    /// The number of readings.
    pub samples: u64,
    /// The number of readings that were skipped because the thread was late.
    pub skipped: u64,
    /// The configured interval, in seconds.
    pub every_s: f64,
}

impl Cost {
    /// CPU time of one reading, in seconds.
    pub fn per_sample_s(&self) -> f64 {
        self.cpu_s / self.samples.max(1) as f64
    }

    /// The share of a core that a hundred such readings per second use.
    pub fn share_at_100_per_s(&self) -> f64 {
        100.0 * self.per_sample_s()
    }
}

/// The state of the machine meanwhile. Shares are of the watched time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// The number of cores.
    pub cores: f64,
    /// The mean number of busy cores.
    pub busy_cores: Option<f64>,
    /// The mean number of cores that other virtual machines had.
    pub stolen_cores: Option<f64>,
    /// The share of the time in which some thread waited for a core.
    pub cpu_pressure: Option<f64>,
    /// The I/O pressure of the machine.
    pub io_pressure: Option<f64>,
    /// The memory pressure of the machine.
    pub memory_pressure: Option<f64>,
}

/// The resources of a role. Quantities that could not be read are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// The mean number of cores used.
    pub cpu_cores: f64,
    /// The part of it that the kernel used.
    pub system_cores: Option<f64>,
    /// The mean number of threads that were ready to run and had no core.
    pub waiting_threads: f64,
    /// The wait of a thread for a core, each time it got one: median and 99th percentile, in seconds.
    pub run_queue_wait_s: Option<(f64, f64)>,
    /// The busiest threads, in descending order.
    pub threads: Vec<ThreadUse>,
    /// The number of the other threads, and the cores that they used.
    pub other_threads: (usize, f64),
    /// The rates at which threads gave up their core and were preempted, per second.
    pub switches_per_s: Option<(f64, f64)>,
    /// The peak memory, in bytes.
    pub memory_peak_bytes: Option<f64>,
    /// Bytes read from and written to disks, per second.
    pub disk_per_s: Option<(f64, f64)>,
    /// Bytes into and out of its network namespace, per second.
    pub net_per_s: Option<(f64, f64)>,
    /// TCP segments sent again, in its network namespace.
    pub retransmits: Option<f64>,
    /// Connections dropped because an accept queue was full.
    pub listen_drops: Option<f64>,
    /// The share of the time in which the quota stopped its control group.
    pub throttled: Option<f64>,
    /// The connections of the process, where they could be read.
    pub connections: Option<Connections>,
    /// The states of its threads, where they could be read.
    pub places: Option<Places>,
}

/// The resources of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The process of the thread, with its number.
    pub process: String,
    /// The thread's name, with the number.
    pub thread: String,
    /// The mean number of cores used, at most 1.
    pub cpu_cores: f64,
    /// The share of the time in which it was ready to run and had no core.
    pub waiting: f64,
    /// The thread's states as shares of the readings, the most frequent first.
    pub places: Vec<(ThreadState, f64)>,
}

/// The TCP connections of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// The largest number at once.
    pub most: f64,
    /// Connections in the accept queue: the mean number, and the largest.
    pub accept_queue: Option<(f64, f64)>,
    /// The round-trip time measured by TCP, in seconds.
    pub round_trip_s: Option<f64>,
    /// The mean number of received and unread bytes.
    pub unread_bytes: f64,
    /// The mean number of unacknowledged bytes.
    pub unsent_bytes: f64,
    /// The share of the readings in which some connection had unsent bytes, except connections whose bytes Nagle's algorithm
    /// delayed.
    pub send_blocked: Option<f64>,
    /// Connections whose bytes Nagle's algorithm delayed until earlier ones were acknowledged: the mean number, and the share of
    /// the readings with such a connection.
    #[serde(default)]
    pub held_back: Option<(f64, f64)>,
    /// The mean number of connections with unsent bytes for another reason.
    #[serde(default)]
    pub blocked_connections: Option<f64>,
    /// The mean number of connections with received and unread bytes.
    #[serde(default)]
    pub unread_connections: Option<f64>,
    /// The number of readings.
    #[serde(default)]
    pub looks: u64,
    /// Connections to other servers: the mean number, the mean number with an answer due, and the share of the readings with such
    /// a connection.
    pub back_end: Option<(f64, f64, f64)>,
}

/// The states of the server's threads, which are read together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// The number of readings.
    pub looks: u64,
    /// For each state the share of the readings in which some thread was in it, and the mean number of such threads.
    pub found: Vec<(ThreadState, f64, f64)>,
    /// The mutex with the most waiting threads.
    pub lock: Option<Lock>,
    /// Threads that almost always sleep and wake too rarely to serve requests.
    #[serde(default)]
    pub resting: f64,
}

impl Places {
    /// The share of the readings in which some thread was in a state, and the mean number of such threads.
    pub fn at(&self, place: ThreadState) -> (f64, f64) {
        self.found
            .iter()
            .find(|(found, ..)| *found == place)
            .map_or((0.0, 0.0), |(_, share, mean)| (*share, *mean))
    }
}

/// A mutex that threads waited for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The address of the lock in the server's memory.
    pub address: u64,
    /// The share of the readings in which some thread waited for the lock.
    pub share: f64,
    /// The mean number of waiting threads.
    pub waiters: f64,
}

/// The number of cores used over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The width of a bin, in seconds. The first begins with the watch.
    pub bin_s: f64,
    /// Cores used in each bin.
    pub lines: Vec<Line>,
}

/// One line of a plot over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The role.
    pub role: Role,
    /// The thread; empty for the sum of the role.
    pub thread: String,
    /// Cores used in each bin.
    pub cpu_cores: Vec<f64>,
    /// Threads that were ready to run and had no core, in each bin.
    pub waiting_threads: Vec<f64>,
}

impl Summary {
    pub(crate) fn of(tally: &Tally, cost: Cost, cores: f64, missing: Vec<String>) -> Self {
        // A process that was watched for no time used nothing.
        let length_s = tally.length_s().max(1e-9);
        let of_role = |role| tally.processes(role).next().map(|_| Use::of(tally, role, length_s));
        Self {
            length_s,
            cost,
            cores,
            machine: MachineUse::of(tally, length_s),
            server: of_role(Role::Server),
            generator: of_role(Role::Generator),
            timeline: Timeline::of(tally),
            missing,
        }
    }
}

impl MachineUse {
    fn of(tally: &Tally, length_s: f64) -> Self {
        let machine = tally.processes(Role::Machine).next();
        let mean = |column| Some(machine?.grown(column)? / length_s).filter(|mean| mean.is_finite());
        Self {
            cores: std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
            busy_cores: mean(Column::Busy),
            stolen_cores: mean(Column::Steal),
            cpu_pressure: mean(Column::CpuPressure),
            io_pressure: mean(Column::IoPressure),
            memory_pressure: mean(Column::MemoryPressure),
        }
    }
}

impl Use {
    fn of(tally: &Tally, role: Role, length_s: f64) -> Self {
        let processes: Vec<&Entry> = tally.processes(role).collect();
        let threads: Vec<&Entry> = tally.threads(role).collect();
        let sum = |entries: &[&Entry], column| {
            let grown: Vec<f64> = entries.iter().filter_map(|entry| entry.grown(column)).collect();
            (!grown.is_empty()).then(|| grown.iter().sum::<f64>())
        };
        let per_s = |entries: &[&Entry], column| Some(sum(entries, column)? / length_s);
        let pair = |entries, one, other| per_s(entries, one).zip(per_s(entries, other));
        let waits = &tally.waits[usize::from(role == Role::Generator)];
        let (mut named, rest) = named(&threads, length_s);
        let other_cores = rest.iter().map(|thread| thread.cpu_cores).sum();
        named.truncate(NAMED_THREADS);
        Self {
            cpu_cores: cpu_s(&processes, &threads) / length_s,
            system_cores: per_s(&processes, Column::System),
            waiting_threads: per_s(&threads, Column::RunQueueWait).unwrap_or(0.0),
            run_queue_wait_s: waits.quantile_s(0.5).zip(waits.quantile_s(0.99)),
            threads: named,
            other_threads: (rest.len(), other_cores),
            switches_per_s: pair(&threads, Column::Voluntary, Column::Involuntary),
            memory_peak_bytes: peak(&processes),
            disk_per_s: pair(&processes, Column::DiskRead, Column::DiskWritten),
            net_per_s: pair(&processes, Column::NetIn, Column::NetOut),
            retransmits: sum(&processes, Column::Retransmits),
            listen_drops: sum(&processes, Column::ListenDrops),
            throttled: per_s(&processes, Column::Throttled),
            connections: Connections::of(&processes),
            places: (role == Role::Server).then(|| Places::of(&tally.looks, &threads, length_s)).flatten(),
        }
    }
}

/// The CPU time of a role. The time of threads has a resolution of nanoseconds, but vanishes when they end. The time of processes
/// counts in clock ticks and remains, with that of ended children, which their parent has.
fn cpu_s(processes: &[&Entry], threads: &[&Entry]) -> f64 {
    let sum =
        |entries: &[&Entry], column| entries.iter().filter_map(|entry| entry.grown(column)).sum::<f64>();
    // A watched process that ended has passed on all its time, of which the part until its last reading is known. The first
    // process is the root, whose parent is not watched.
    let ended = processes.iter().skip(1).filter(|process| process.has_ended);
    let passed_on: f64 = ended
        .flat_map(|process| [Column::Cpu, Column::EndedChildren].map(|column| process.last(column)))
        .flatten()
        .sum();
    let of_unwatched = (sum(processes, Column::EndedChildren) - passed_on).max(0.0);
    sum(threads, Column::Cpu).max(sum(processes, Column::Cpu) + of_unwatched)
}

/// The sum of the processes' peak memory.
fn peak(processes: &[&Entry]) -> Option<f64> {
    let peaks: Vec<f64> = processes.iter().filter_map(|process| process.most(Column::Memory)).collect();
    (!peaks.is_empty()).then(|| peaks.iter().sum())
}

/// The named threads, the busiest first, and the rest.
fn named(threads: &[&Entry], length_s: f64) -> (Vec<ThreadUse>, Vec<ThreadUse>) {
    let mut all: Vec<ThreadUse> = threads.iter().map(|entry| ThreadUse::of(entry, length_s)).collect();
    all.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
    let rest = all.split_off(all.len().min(NAMED_THREADS));
    (all, rest)
}

impl ThreadUse {
    fn of(entry: &Entry, length_s: f64) -> Self {
        let looks: u64 = entry.places.iter().sum();
        let share = |place: ThreadState| (place, entry.places[place as usize] as f64 / looks.max(1) as f64);
        let mut places: Vec<_> =
            ThreadState::ALL.into_iter().map(share).filter(|(_, share)| *share > 0.0).collect();
        places.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self {
            process: entry.process.clone(),
            thread: entry.thread.clone(),
            cpu_cores: entry.grown(Column::Cpu).unwrap_or(0.0) / length_s,
            waiting: entry.grown(Column::RunQueueWait).unwrap_or(0.0) / length_s,
            places,
        }
    }
}

impl Connections {
    fn of(processes: &[&Entry]) -> Option<Self> {
        let seen = processes.iter().find(|process| process.most(Column::Connections).is_some())?;
        let mean = |column| seen.mean(column);
        let back_ends = mean(Column::BackEndConnections).filter(|count| *count > 0.0);
        let busy = mean(Column::BackEndBusy).zip(seen.share_above_zero(Column::BackEndBusy));
        Some(Self {
            most: seen.most(Column::Connections)?,
            accept_queue: mean(Column::AcceptQueue).zip(seen.most(Column::AcceptQueue)),
            round_trip_s: mean(Column::RoundTrip),
            unread_bytes: mean(Column::Unread)?,
            unsent_bytes: mean(Column::Unsent)?,
            send_blocked: seen.share_above_zero(Column::SendBlocked),
            held_back: mean(Column::HeldBack).zip(seen.share_above_zero(Column::HeldBack)),
            blocked_connections: mean(Column::SendBlocked),
            unread_connections: mean(Column::UnreadConnections),
            looks: seen.readings(Column::Connections),
            back_end: back_ends.zip(busy).map(|(count, (busy, share))| (count, busy, share)),
        })
    }
}

impl Places {
    /// A thread that sleeps in this share of the readings, and gets a core this rarely per second, serves no requests.
    const RESTING: (f64, f64) = (0.98, 2.0);

    fn of(looks: &Looks, threads: &[&Entry], length_s: f64) -> Option<Self> {
        if looks.count == 0 {
            return None;
        }
        let share = |count: u64| count as f64 / looks.count as f64;
        let place = |place: ThreadState| {
            let (some, all) = looks.places[place as usize];
            (place, share(some), share(all))
        };
        let hottest = looks.locks.iter().max_by_key(|(address, seen)| (**seen, **address));
        let lock = hottest.map(|(address, (some, all))| Lock {
            address: *address,
            share: share(*some),
            waiters: share(*all),
        });
        let is_resting = |entry: &&&Entry| {
            let found: u64 = entry.places.iter().sum();
            entry.places[ThreadState::Asleep as usize] as f64 > Self::RESTING.0 * found as f64
                && entry.grown(Column::Turns).is_none_or(|turns| turns / length_s < Self::RESTING.1)
        };
        Some(Self {
            looks: looks.count,
            resting: threads.iter().filter(is_resting).count() as f64,
            found: ThreadState::ALL.into_iter().map(place).filter(|(_, share, _)| *share > 0.0).collect(),
            lock,
        })
    }
}

impl Timeline {
    /// The lines of each role, and of the busiest threads.
    const THREADS: usize = 6;

    fn of(tally: &Tally) -> Self {
        let end_ns = (tally.length_s() * 1e9) as i64;
        let mut lines = Vec::new();
        let mut bin_s = 0.0;
        for role in [Role::Server, Role::Generator] {
            let mut threads: Vec<&Entry> = tally.threads(role).collect();
            let cpu_s = |entry: &Entry| entry.grown(Column::Cpu).unwrap_or(0.0);
            threads.sort_by(|a, b| cpu_s(b).total_cmp(&cpu_s(a)));
            let of_threads: Vec<Line> = threads
                .iter()
                .map(|entry| {
                    let (width_s, cpu_s) = entry.cpu.clone().over(end_ns);
                    let (_, wait_s) = entry.wait.clone().over(end_ns);
                    bin_s = width_s;
                    let rate = |amounts: Vec<f64>| amounts.iter().map(|amount| amount / width_s).collect();
                    Line {
                        role,
                        thread: entry.thread.clone(),
                        cpu_cores: rate(cpu_s),
                        waiting_threads: rate(wait_s),
                    }
                })
                .collect();
            lines.extend(added_up(role, &of_threads));
            lines.extend(of_threads.into_iter().take(Self::THREADS));
        }
        Self { bin_s, lines }
    }
}

/// The sum of all threads of a role as one line.
fn added_up(role: Role, threads: &[Line]) -> Option<Line> {
    let sum = |of: fn(&Line) -> &Vec<f64>| {
        let bins = of(threads.first()?).len();
        Some((0..bins).map(|bin| threads.iter().map(|line| of(line)[bin]).sum()).collect())
    };
    Some(Line {
        role,
        thread: String::new(),
        cpu_cores: sum(|line| &line.cpu_cores)?,
        waiting_threads: sum(|line| &line.waiting_threads)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Reading;
    use crate::tally::Who;

    const SECOND: i64 = 1_000_000_000;

    fn who(process: &str, is_new: bool) -> Who<'_> {
        Who { role: Role::Server, process, thread: "", is_new }
    }

    /// A reading of a process: its CPU time, and that of its ended children.
    fn used(cpu_s: f64, ended_s: f64) -> Reading {
        let mut reading = Reading::default();
        reading.set(Column::Cpu, cpu_s);
        reading.set(Column::EndedChildren, ended_s);
        reading
    }

    fn cpu_of(tally: &Tally) -> f64 {
        cpu_s(&tally.processes(Role::Server).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn the_time_of_ended_children_counts_at_any_depth() {
        let mut tally = Tally::default();
        tally.add(0, who("kendall 1", false), &used(1.0, 0.0));
        tally.add(0, who("server 2", false), &used(5.0, 20.0));
        tally.add(SECOND, who("kendall 1", false), &used(1.25, 0.0));
        // The server has started and ended a process for each request, between two readings.
        tally.add(SECOND, who("server 2", false), &used(5.5, 24.0));
        assert_eq!(cpu_of(&tally), 4.75);
    }

    #[test]
    fn a_watched_process_that_ends_counts_once_and_without_its_time_before_the_watch() {
        let mut tally = Tally::default();
        tally.add(0, who("master 1", false), &used(1.0, 0.0));
        tally.add(0, who("worker 2", false), &used(3600.0, 0.0));
        tally.add(SECOND, who("worker 2", false), &used(3600.5, 0.0));
        // It ends after another quarter of a second of work.
        tally.end(who("worker 2", false));
        tally.add(2 * SECOND, who("master 1", false), &used(1.0, 3600.75));
        assert_eq!(cpu_of(&tally), 0.75);
        // A process of the watch that the master never waits for.
        tally.add(2 * SECOND, who("worker 3", true), &used(0.5, 0.0));
        tally.end(who("worker 3", true));
        assert_eq!(cpu_of(&tally), 1.0);
    }
}
