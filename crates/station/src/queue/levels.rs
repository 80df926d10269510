//! The queue of jobs of a few ranks: a line for each.

use super::line::Line;
use super::{Entry, Ordered};

/// The lines by ascending rank. A line stays once it was needed, because its rank will recur.
#[derive(Clone, Debug)]
pub(super) struct Levels<T> {
    lines: Vec<(Ordered, Line<T>)>,
}

impl<T> Levels<T> {
    pub(super) fn new() -> Self {
        Self { lines: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    #[inline]
    pub(super) fn insert(&mut self, rank: Ordered, turn: i64, entry: Entry<T>) {
        let at = self.at(rank);
        if self.lines.get(at).is_none_or(|line| line.0 != rank) {
            self.lines.insert(at, (rank, Line::new()));
        }
        self.lines[at].1.insert(turn, entry);
    }

    /// The rank and the turn of the first job.
    #[inline]
    pub(super) fn first(&self) -> Option<(Ordered, i64)> {
        self.lines.iter().find_map(|(rank, line)| line.first().map(|(turn, _)| (*rank, turn)))
    }

    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<Entry<T>> {
        self.lines.iter_mut().find_map(|(_, line)| line.pop_first())
    }

    pub(super) fn remove(&mut self, rank: Ordered, turn: i64) -> Option<Entry<T>> {
        let at = self.at(rank);
        let (found, line) = self.lines.get_mut(at)?;
        if *found == rank { line.remove(turn) } else { None }
    }

    /// The position of the line of a rank, or where to insert it. A scan, because there are few.
    #[inline]
    fn at(&self, rank: Ordered) -> usize {
        self.lines.iter().take_while(|line| line.0 < rank).count()
    }
}
