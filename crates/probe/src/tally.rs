//! Adds up readings as they arrive, in memory that does not grow over time.

use std::collections::HashMap;

use crate::row::{Column, Reading, Role, ThreadState};
use crate::timeline::Bins;

/// The most threads and processes that are distinguished; later ones are in no sum.
const MOST: usize = 2048;
/// The most mutexes that are distinguished.
const MOST_LOCKS: usize = 1024;
/// Threads and processes found within this time of the first reading existed before it.
const FROM_THE_START_NS: i64 = 5_000_000;

/// The subject of a reading. A process as a whole has no thread, and the machine has neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who<'a> {
    pub(crate) role: Role,
    pub(crate) process: &'a str,
    pub(crate) thread: &'a str,
    /// Whether it started after the watch, so that all its counters began at zero.
    pub(crate) is_new: bool,
}

/// The sums of one thread, one process or the machine.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) process: String,
    pub(crate) thread: String,
    first: Reading,
    last: Reading,
    sums: Vec<Sum>,
    /// Whether it ended during the watch; known of processes only.
    pub(crate) has_ended: bool,
    /// The number of readings in each state.
    pub(crate) places: [u64; ThreadState::ALL.len()],
    /// CPU time over time, in seconds.
    pub(crate) cpu: Bins,
    /// Time without a core over time, in seconds.
    pub(crate) wait: Bins,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    most: f64,
    readings: u64,
    above_zero: u64,
}

impl Entry {
    /// The growth of a counter since the first reading, or since the start of the thread or process.
    pub(crate) fn grown(&self, column: Column) -> Option<f64> {
        Some((self.last.get(column)? - self.first.get(column)?).max(0.0))
    }

    /// The last reading of a quantity.
    pub(crate) fn last(&self, column: Column) -> Option<f64> {
        self.last.get(column)
    }

    /// The mean of a quantity over its readings.
    pub(crate) fn mean(&self, column: Column) -> Option<f64> {
        let sum = self.sums[column as usize];
        (sum.readings > 0).then(|| sum.sum / sum.readings as f64)
    }

    /// The number of readings of a quantity.
    pub(crate) fn readings(&self, column: Column) -> u64 {
        self.sums[column as usize].readings
    }

    /// The largest reading of a quantity.
    pub(crate) fn most(&self, column: Column) -> Option<f64> {
        let sum = self.sums[column as usize];
        (sum.readings > 0).then_some(sum.most)
    }

    /// The share of the readings in which a quantity was above zero.
    pub(crate) fn share_above_zero(&self, column: Column) -> Option<f64> {
        let sum = self.sums[column as usize];
        (sum.readings > 0).then(|| sum.above_zero as f64 / sum.readings as f64)
    }
}

/// All sums.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    start_ns: Option<i64>,
    end_ns: i64,
    entries: Vec<Entry>,
    /// The sums by role, process and thread.
    known: HashMap<String, usize>,
    key: String,
    is_full: bool,
    /// The mean wait for each time on a core, in each interval between two readings of a thread.
    pub(crate) waits: [Waits; 2],
    pub(crate) looks: Looks,
}

/// The states of the server's threads, which are read together.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    pub(crate) count: u64,
    /// By state, the number of readings with some thread in it, and the total number of such threads.
    pub(crate) places: [(u64, u64); ThreadState::ALL.len()],
    /// For each mutex, the readings in which some thread waited for it, and the total number of waiting threads.
    pub(crate) locks: HashMap<u64, (u64, u64)>,
    now: [u64; ThreadState::ALL.len()],
    locks_now: Vec<u64>,
    seen: bool,
}

impl Tally {
    /// Adds a reading.
    pub(crate) fn add(&mut self, now_ns: i64, who: Who<'_>, reading: &Reading) {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        self.end_ns = now_ns;
        let Some(at) = self.entry(who, now_ns - start_ns) else { return };
        let entry = &mut self.entries[at];
        let grown =
            |column| Some(reading.get(column)? - entry.last.get(column).or_else(|| entry.first.get(column))?);
        if !who.thread.is_empty() {
            let (cpu_s, wait_s) = (grown(Column::Cpu), grown(Column::RunQueueWait));
            if let (Some(wait_s), Some(turns)) = (wait_s, grown(Column::Turns)) {
                self.waits[usize::from(who.role == Role::Generator)].add(wait_s, turns);
            }
            entry.cpu.add(now_ns - start_ns, cpu_s.unwrap_or(0.0));
            entry.wait.add(now_ns - start_ns, wait_s.unwrap_or(0.0));
        } else if who.role == Role::Machine {
            let busy_s = grown(Column::Busy);
            entry.cpu.add(now_ns - start_ns, busy_s.unwrap_or(0.0));
        }
        for column in Column::ALL {
            let Some(value) = reading.get(column) else { continue };
            if entry.first.get(column).is_none() {
                entry.first.set(column, value);
            }
            entry.last.set(column, value);
            let sum = &mut entry.sums[column as usize];
            sum.sum += value;
            sum.most = sum.most.max(value);
            sum.readings += 1;
            sum.above_zero += u64::from(value > 0.0);
        }
        if let Some(place) = reading.place {
            entry.places[place as usize] += 1;
            if who.role == Role::Server {
                self.looks.found(place, reading.get(Column::LockAddress));
            }
        }
    }

    /// Ends a reading of the states of all threads.
    pub(crate) fn end_reading(&mut self) {
        self.looks.end();
    }

    /// From the first reading to the last, in seconds.
    pub(crate) fn length_s(&self) -> f64 {
        self.start_ns.map_or(0.0, |start_ns| (self.end_ns - start_ns) as f64 / 1e9)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether the states of threads have been read.
    pub(crate) fn has_looked(&self) -> bool {
        self.looks.count > 0
    }

    /// Whether the states of threads could be read, or there was no time for it.
    pub(crate) fn has_places(&self) -> bool {
        self.looks.count > 0 || self.length_s() < 1.0
    }

    /// The processes of a role, without their threads.
    pub(crate) fn processes(&self, role: Role) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.role == role && entry.thread.is_empty())
    }

    /// The threads of a role.
    pub(crate) fn threads(&self, role: Role) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.role == role && !entry.thread.is_empty())
    }

    /// Records that a process has ended.
    pub(crate) fn end(&mut self, who: Who<'_>) {
        if let Some(at) = self.index_of(who) {
            self.entries[at].has_ended = true;
        }
    }

    /// The index of the subject of a reading, if it is known.
    fn index_of(&mut self, who: Who<'_>) -> Option<usize> {
        self.key.clear();
        self.key.extend([who.role.name(), "\0", who.process, "\0", who.thread]);
        self.known.get(&self.key).copied()
    }

    /// The index of the subject of a reading, after `since_start_ns`; `None` where the table is full.
    fn entry(&mut self, who: Who<'_>, since_start_ns: i64) -> Option<usize> {
        if let Some(at) = self.index_of(who) {
            return Some(at);
        }
        if self.entries.len() >= MOST {
            self.is_full = true;
            return None;
        }
        let mut first = Reading::default();
        if since_start_ns > FROM_THE_START_NS && who.is_new {
            let own = [Column::Cpu, Column::RunQueueWait, Column::Turns, Column::User, Column::System];
            let switches = [Column::Voluntary, Column::Involuntary, Column::MinorFaults, Column::MajorFaults];
            let files = [Column::DiskRead, Column::DiskWritten, Column::Read, Column::Written];
            own.into_iter().chain(switches).chain(files).for_each(|column| first.set(column, 0.0));
            first.set(Column::EndedChildren, 0.0);
        }
        self.entries.push(Entry {
            role: who.role,
            process: who.process.into(),
            thread: who.thread.into(),
            first,
            last: Reading::default(),
            sums: vec![Sum::default(); Column::ALL.len()],
            has_ended: false,
            places: [0; ThreadState::ALL.len()],
            cpu: Bins::default(),
            wait: Bins::default(),
        });
        self.known.insert(self.key.clone(), self.entries.len() - 1);
        Some(self.entries.len() - 1)
    }
}

impl Looks {
    fn found(&mut self, place: ThreadState, lock: Option<f64>) {
        self.seen = true;
        self.now[place as usize] += 1;
        if let (ThreadState::Lock, Some(address)) = (place, lock) {
            self.locks_now.push(address as u64);
        }
    }

    fn end(&mut self) {
        if !self.seen {
            return;
        }
        self.seen = false;
        self.count += 1;
        for (all, now) in self.places.iter_mut().zip(&mut self.now) {
            all.0 += u64::from(*now > 0);
            all.1 += std::mem::take(now);
        }
        self.locks_now.sort_unstable();
        for waiters in self.locks_now.chunk_by(u64::eq) {
            if self.locks.len() < MOST_LOCKS || self.locks.contains_key(&waiters[0]) {
                let lock = self.locks.entry(waiters[0]).or_default();
                *lock = (lock.0 + 1, lock.1 + waiters.len() as u64);
            }
        }
        self.locks_now.clear();
    }
}

/// The histogram of the wait for each time on a core, with eight steps an octave.
#[derive(Debug)]
pub(crate) struct Waits {
    /// From 1 ns to 2^40 ns, some 18 minutes.
    turns: [f64; STEPS],
    pub(crate) wait_s: f64,
}

const STEPS: usize = 40 * 8;

impl Default for Waits {
    fn default() -> Self {
        Self { turns: [0.0; STEPS], wait_s: 0.0 }
    }
}

impl Waits {
    fn add(&mut self, wait_s: f64, turns: f64) {
        if turns < 1.0 {
            return;
        }
        let step = (8.0 * (wait_s / turns * 1e9).max(1.0).log2()) as usize;
        self.turns[step.min(STEPS - 1)] += turns;
        self.wait_s += wait_s;
    }

    /// The wait that this share of the times on a core did not exceed, to a twelfth of itself; `None` without any.
    pub(crate) fn quantile_s(&self, share: f64) -> Option<f64> {
        let all: f64 = self.turns.iter().sum();
        let mut below = 0.0;
        let step = self.turns.iter().position(|turns| {
            below += turns;
            below >= share * all
        })?;
        (all > 0.0).then(|| ((step + 1) as f64 / 8.0).exp2() / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(cpu_s: f64, wait_s: f64, turns: f64) -> Reading {
        let mut reading = Reading::default();
        reading.set(Column::Cpu, cpu_s);
        reading.set(Column::RunQueueWait, wait_s);
        reading.set(Column::Turns, turns);
        reading
    }

    const WORKER: Who<'static> =
        Who { role: Role::Server, process: "server 1", thread: "worker 2", is_new: true };

    #[test]
    fn counters_grow_from_the_first_reading_and_from_zero_for_what_starts_later() {
        let mut tally = Tally::default();
        tally.add(0, WORKER, &reading(5.0, 1.0, 10.0));
        tally.add(1_000_000_000, WORKER, &reading(5.75, 1.5, 20.0));
        let later = Who { thread: "worker 3", ..WORKER };
        tally.add(1_000_000_000, later, &reading(0.25, 0.0, 1.0));
        // A worker that is found late, but is older than the watch.
        let older = Who { thread: "worker 4", is_new: false, ..WORKER };
        tally.add(1_000_000_000, older, &reading(3600.0, 60.0, 1e6));
        let cpu_s: Vec<_> = tally.threads(Role::Server).map(|entry| entry.grown(Column::Cpu)).collect();
        assert_eq!(cpu_s, [Some(0.75), Some(0.25), Some(0.0)]);
        assert!(tally.waits[0].wait_s <= 0.5);
        assert_eq!(tally.length_s(), 1.0);
        assert_eq!(tally.threads(Role::Generator).count(), 0);
    }

    #[test]
    fn quantiles_of_waits_are_within_a_step() {
        let mut waits = Waits::default();
        (1..=1000).for_each(|us| waits.add(f64::from(us) * 1e-6, 1.0));
        for share in [0.5, 0.9, 0.99] {
            let found = waits.quantile_s(share).unwrap() / (share * 1e-3);
            assert!((1.0 / 1.1..1.1).contains(&found), "{found}");
        }
        assert_eq!(Waits::default().quantile_s(0.5), None);
    }

    #[test]
    fn the_memory_of_a_tally_is_bounded() {
        let mut tally = Tally::default();
        for thread in 0..2 * MOST {
            let name = format!("worker {thread}");
            tally.add(0, Who { thread: &name, ..WORKER }, &reading(1.0, 1.0, 1.0));
        }
        assert!(tally.is_full() && tally.threads(Role::Server).count() == MOST);
    }
}
