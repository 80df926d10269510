//! The queue of jobs of one rank, in order of their turns.

use std::collections::VecDeque;

use super::Entry;

/// Entries by ascending turn. Removing one from the middle leaves its slot vacant until it reaches an end; the
/// slots at both ends are never vacant.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    places: VecDeque<(i64, Option<Entry<T>>)>,
    vacant: usize,
}

/// The number of vacant slots above which they are cleared away, if there are also more of them than of waiting
/// jobs.
const TOO_MANY_VACANT: usize = 32;

impl<T> Line<T> {
    pub(super) fn new() -> Self {
        Self { places: VecDeque::new(), vacant: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.vacant
    }

    #[inline]
    pub(super) fn insert(&mut self, turn: i64, entry: Entry<T>) {
        if self.places.back().is_none_or(|last| last.0 < turn) {
            self.places.push_back((turn, Some(entry)));
            return;
        }
        let at = self.places.partition_point(|place| place.0 < turn);
        // A job that was removed and returns to the same turn may find its old slot.
        if self.places[at].0 == turn {
            debug_assert!(self.places[at].1.is_none(), "no two jobs share a turn");
            self.vacant -= 1;
            self.places[at].1 = Some(entry);
        } else {
            self.places.insert(at, (turn, Some(entry)));
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<(i64, &Entry<T>)> {
        self.places.front().and_then(|(turn, entry)| Some((*turn, entry.as_ref()?)))
    }

    #[inline]
    pub(super) fn last(&self) -> Option<(i64, &Entry<T>)> {
        self.places.back().and_then(|(turn, entry)| Some((*turn, entry.as_ref()?)))
    }

    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<Entry<T>> {
        let entry = self.places.pop_front()?.1;
        self.trim();
        entry
    }

    #[inline]
    pub(super) fn pop_last(&mut self) -> Option<Entry<T>> {
        let entry = self.places.pop_back()?.1;
        self.trim();
        entry
    }

    pub(super) fn remove(&mut self, turn: i64) -> Option<Entry<T>> {
        let at = self.places.binary_search_by_key(&turn, |place| place.0).ok()?;
        let entry = self.places[at].1.take()?;
        self.vacant += 1;
        self.trim();
        if self.vacant > TOO_MANY_VACANT.max(self.len()) {
            self.places.retain(|place| place.1.is_some());
            self.vacant = 0;
        }
        Some(entry)
    }

    /// Both ends hold a job, or no job waits.
    #[inline]
    fn trim(&mut self) {
        if self.vacant == 0 {
            return;
        }
        while self.places.front().is_some_and(|place| place.1.is_none()) {
            self.places.pop_front();
            self.vacant -= 1;
        }
        while self.places.back().is_some_and(|place| place.1.is_none()) {
            self.places.pop_back();
            self.vacant -= 1;
        }
    }
}
