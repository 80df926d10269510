//! The queue of a station as a data structure: one [`Queue`] for every [`Discipline`].
//!
//! The simulator and the live server's worker pool take their next job from the same queue. It reads no clock: the server
//! of a job reports how much service the job has received. Times can be in any one unit (the simulator counts seconds,
//! the hash-reversal server counts candidates), as long as sizes and received service share it.
//!
//! Every discipline is an order by one number, its *rank*, which does not change while a job waits. Among equal
//! ranks, Gittins prefers the job served most; all others, and ties beyond that, go by arrival.

mod heap;
mod levels;
mod line;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::discipline::{Discipline, Knows};
use crate::gittins::GittinsTable;
use heap::Heap;
use levels::Levels;
use line::Line;

/// The total service time of a job, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Size {
    /// Nothing: all such jobs count as alike.
    #[default]
    Unknown,
    /// Exactly this much.
    Exactly(f64),
    /// Anything up to this much, uniformly: the search for an answer that lies anywhere in a range.
    UniformUpTo(f64),
    /// Exponential with this mean: the expected remainder is the same at every age.
    Memoryless(f64),
    /// A law, with its tabulated indices.
    Law(Arc<GittinsTable>),
}

impl Size {
    /// The expected remaining service after some service.
    #[inline]
    fn remaining(&self, attained: f64) -> f64 {
        match self {
            Self::Unknown => 1.0,
            Self::Exactly(size) => (size - attained).max(0.0),
            Self::UniformUpTo(limit) => (limit - attained).max(0.0) / 2.0,
            Self::Memoryless(mean) => *mean,
            Self::Law(table) => table.residual_mean(attained),
        }
    }
}

/// The properties of a job that a discipline may know.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The cost of a second of its delay: its priority, the larger the more urgent.
    pub weight: f64,
    /// The total service time of the job, as far as it is known.
    pub size: Size,
    /// The service it has received.
    pub attained: f64,
}

impl Job {
    /// A job of weight 1 of unknown size.
    pub fn new() -> Self {
        Self { weight: 1.0, size: Size::Unknown, attained: 0.0 }
    }

    /// The Gittins index: for a known, a uniform and a memoryless size, one over the expected remaining service.
    fn gittins(&self) -> f64 {
        match &self.size {
            Size::Law(table) => table.index(self.attained),
            size => 1.0 / size.remaining(self.attained),
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

/// The position of a waiting job; smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: Ordered,
    tie: Ordered,
    turn: i64,
}

impl Key {
    /// The key of all jobs where all ranks are equal.
    const COMMON: Self = Self { rank: Ordered::ZERO, tie: Ordered::ZERO, turn: 0 };
}

/// A receipt for a waiting job, by which the job can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    key: Key,
    place: u32,
}

/// The urgency of a job under one discipline: the smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Ordered);

/// A job that left the queue, with the item that was queued with it.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// The properties that the discipline knows of the job. The server adds to `attained`.
    pub job: Job,
    /// The queued item.
    pub item: T,
    arrival: i64,
}

/// The jobs that wait at a station, in the order of one discipline. Unbounded: the caller that admits jobs enforces the
/// capacity.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    discipline: Discipline,
    waiting: Waiting<T>,
    next_turn: i64,
}

/// Where all ranks are the same, the order is that of arrival, and a line is faster than a heap; where there are few
/// ranks, a line for each is. A ticket for a single line uses only the turn, one for several lines the rank and the turn.
#[derive(Clone, Debug)]
enum Waiting<T> {
    FirstComes(Line<T>),
    LastComes(Line<T>),
    FewRanks(Levels<T>),
    Ranked(Heap<T>),
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new(discipline: Discipline) -> Self {
        let waiting = match discipline {
            Discipline::Fifo | Discipline::ProcessorSharing => Waiting::FirstComes(Line::new()),
            Discipline::Lifo => Waiting::LastComes(Line::new()),
            Discipline::Priority
            | Discipline::PreemptivePriority
            | Discipline::ShortestRemaining
            | Discipline::CMu
            | Discipline::Gittins => Waiting::Ranked(Heap::new()),
        };
        Self { discipline, waiting, next_turn: 0 }
    }

    /// An empty queue for jobs of few kinds, alike in weight and size, such as a few classes of customers: the same
    /// order, found faster. Adding a job takes time proportional to the number of kinds that have ever waited.
    /// Disciplines that order by received service gain nothing from it.
    pub fn of_few_kinds(discipline: Discipline) -> Self {
        match discipline.knows() {
            Knows::Weight | Knows::WeightAndMean => {
                Self { discipline, waiting: Waiting::FewRanks(Levels::new()), next_turn: 0 }
            }
            Knows::Nothing | Knows::WeightAndLaw | Knows::Size => Self::new(discipline),
        }
    }

    /// The discipline that orders this queue.
    pub fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// The number of waiting jobs.
    pub fn len(&self) -> usize {
        match &self.waiting {
            Waiting::FirstComes(line) | Waiting::LastComes(line) => line.len(),
            Waiting::FewRanks(levels) => levels.len(),
            Waiting::Ranked(heap) => heap.len(),
        }
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a job that has just arrived.
    #[inline]
    pub fn push(&mut self, job: Job, item: T) -> Ticket {
        let arrival = self.take_turn();
        self.insert(Entry { job, item, arrival }, arrival)
    }

    /// Registers a job that has just arrived and starts service at once. If it is interrupted, its position is by this
    /// arrival.
    #[inline]
    pub fn admit(&mut self, job: Job, item: T) -> Entry<T> {
        Entry { job, item, arrival: self.take_turn() }
    }

    /// Returns an interrupted job to the queue. It keeps its position by arrival, except under processor sharing, where
    /// it goes behind all others.
    pub fn resume(&mut self, entry: Entry<T>) -> Ticket {
        let turn = if self.discipline.shares() { self.take_turn() } else { entry.arrival };
        self.insert(entry, turn)
    }

    /// The ticket of the job that is next in the order of service.
    #[inline]
    pub fn head(&self) -> Option<Ticket> {
        let in_line = |(turn, _)| Ticket { key: Key { turn, ..Key::COMMON }, place: 0 };
        match &self.waiting {
            Waiting::FirstComes(line) => line.first().map(in_line),
            Waiting::LastComes(line) => line.last().map(in_line),
            Waiting::FewRanks(levels) => {
                levels.first().map(|(rank, turn)| Ticket { key: Key { rank, turn, ..Key::COMMON }, place: 0 })
            }
            Waiting::Ranked(heap) => heap.first().map(|(key, place)| Ticket { key, place }),
        }
    }

    /// Removes the job that is next in the order of service.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry<T>> {
        match &mut self.waiting {
            Waiting::FirstComes(line) => line.pop_first(),
            Waiting::LastComes(line) => line.pop_last(),
            Waiting::FewRanks(levels) => levels.pop_first(),
            Waiting::Ranked(heap) => heap.pop_first(),
        }
    }

    /// Removes a waiting job whose client went away. `None` if it no longer waits.
    pub fn remove(&mut self, ticket: Ticket) -> Option<Entry<T>> {
        match &mut self.waiting {
            Waiting::FirstComes(line) | Waiting::LastComes(line) => line.remove(ticket.key.turn),
            Waiting::FewRanks(levels) => levels.remove(ticket.key.rank, ticket.key.turn),
            Waiting::Ranked(heap) => heap.remove(ticket.key, ticket.place),
        }
    }

    /// Whether a job in service must yield to the first one waiting. A worker checks this between two chunks of work.
    /// Never true for disciplines without preemption, nor among equals, except under processor sharing, where a waiting
    /// job always has the next turn.
    pub fn outranks(&self, running: &Job) -> bool {
        if self.discipline.shares() {
            return !self.is_empty();
        }
        let outranks = |head: Ticket| head.key.rank < rank(self.discipline, running);
        self.discipline.preempts() && self.head().is_some_and(outranks)
    }

    /// The current urgency of a job. To order several jobs, comparing these is faster than comparing each pair of jobs.
    #[inline]
    pub fn rank(&self, job: &Job) -> Rank {
        Rank(rank(self.discipline, job))
    }

    /// The urgency of the first one waiting.
    #[inline]
    pub fn first_rank(&self) -> Option<Rank> {
        self.head().map(|head| Rank(head.key.rank))
    }

    /// Whether, of two jobs in service, `a` should be interrupted rather than `b`.
    pub fn less_urgent(&self, a: &Job, b: &Job) -> bool {
        rank(self.discipline, a) > rank(self.discipline, b)
    }

    /// The further service after which the first one waiting will outrank this job in service, if no other job arrives.
    /// `None` if the job ends before that. This only happens for laws with a falling hazard rate; the answer is then
    /// exact to the grid of [`GittinsTable`].
    pub fn overtaken_after(&self, running: &Job) -> Option<f64> {
        let (Knows::WeightAndLaw, Size::Law(table)) = (self.discipline.knows(), &running.size) else {
            return None;
        };
        let head = self.head()?.key;
        let age = table.falls_below(running.attained, running.weight, -head.rank.value())?;
        Some(age - running.attained)
    }

    /// Empties the queue, in the order of service.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<T>> + use<T> {
        let empty = match &self.waiting {
            Waiting::FewRanks(_) => Self::of_few_kinds(self.discipline),
            _ => Self::new(self.discipline),
        };
        let mut all = std::mem::replace(self, Self { next_turn: self.next_turn, ..empty });
        std::iter::from_fn(move || all.pop())
    }

    fn take_turn(&mut self) -> i64 {
        self.next_turn += 1;
        self.next_turn
    }

    #[inline]
    fn insert(&mut self, entry: Entry<T>, turn: i64) -> Ticket {
        match &mut self.waiting {
            Waiting::FirstComes(line) | Waiting::LastComes(line) => {
                line.insert(turn, entry);
                Ticket { key: Key { turn, ..Key::COMMON }, place: 0 }
            }
            Waiting::FewRanks(levels) => {
                let key = Key { rank: rank(self.discipline, &entry.job), turn, ..Key::COMMON };
                levels.insert(key.rank, turn, entry);
                Ticket { key, place: 0 }
            }
            Waiting::Ranked(heap) => {
                let tie = match self.discipline.knows() {
                    Knows::WeightAndLaw => Ordered::new(-entry.job.attained),
                    Knows::Nothing | Knows::Weight | Knows::WeightAndMean | Knows::Size => Ordered::ZERO,
                };
                let key = Key { rank: rank(self.discipline, &entry.job), tie, turn };
                Ticket { key, place: heap.insert(key, entry) }
            }
        }
    }
}

/// The number by which a discipline orders jobs; smaller goes first.
#[inline(always)]
fn rank(discipline: Discipline, job: &Job) -> Ordered {
    Ordered::new(match discipline {
        Discipline::Fifo | Discipline::Lifo | Discipline::ProcessorSharing => 0.0,
        Discipline::Priority | Discipline::PreemptivePriority => -job.weight,
        Discipline::ShortestRemaining => job.size.remaining(job.attained),
        Discipline::CMu => -job.weight / job.size.remaining(0.0),
        Discipline::Gittins => -job.weight * job.gittins(),
    })
}

/// A number that orders as `f64::total_cmp` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ordered(u64);

impl Ordered {
    const ZERO: Self = Self(1 << 63);

    #[inline]
    fn new(value: f64) -> Self {
        // The usual trick: flip all bits of negative numbers and the sign of the others; +0.0 folds −0.0 in.
        let bits = (value + 0.0).to_bits();
        Self(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
    }

    /// The number itself.
    fn value(self) -> f64 {
        f64::from_bits(if self.0 >> 63 == 1 { self.0 & !(1 << 63) } else { !self.0 })
    }
}
