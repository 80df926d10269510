//! The queue of jobs of any ranks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Entry, Key};

/// A heap of keys, each with the index of the slot that holds its entry. Removing an entry leaves its key behind; the
/// key is void, because its slot no longer holds it. The top key is never void.
#[derive(Clone, Debug)]
pub(super) struct Heap<T> {
    keys: BinaryHeap<Reverse<(Key, u32)>>,
    places: Vec<Option<(Key, Entry<T>)>>,
    vacant: Vec<u32>,
}

/// The number of void keys above which they are cleared away, if there are also more of them than of waiting jobs.
const TOO_MANY_VOID: usize = 32;

impl<T> Heap<T> {
    pub(super) fn new() -> Self {
        Self { keys: BinaryHeap::new(), places: Vec::new(), vacant: Vec::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Adds an entry and returns its slot.
    #[inline]
    pub(super) fn insert(&mut self, key: Key, entry: Entry<T>) -> u32 {
        let place = match self.vacant.pop() {
            Some(place) => {
                self.places[place as usize] = Some((key, entry));
                place
            }
            None => {
                self.places.push(Some((key, entry)));
                u32::try_from(self.places.len() - 1).expect("memory holds fewer than 2³² jobs")
            }
        };
        self.keys.push(Reverse((key, place)));
        place
    }

    #[inline]
    pub(super) fn first(&self) -> Option<(Key, u32)> {
        self.keys.peek().map(|first| first.0)
    }

    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<Entry<T>> {
        let Reverse((_, place)) = self.keys.pop()?;
        let entry = self.take(place);
        self.trim();
        entry
    }

    pub(super) fn remove(&mut self, key: Key, place: u32) -> Option<Entry<T>> {
        if !self.holds(key, place) {
            return None;
        }
        let entry = self.take(place);
        self.trim();
        if self.keys.len() - self.len() > TOO_MANY_VOID.max(self.len()) {
            let mut keys = std::mem::take(&mut self.keys);
            keys.retain(|Reverse((key, place))| self.holds(*key, *place));
            self.keys = keys;
        }
        entry
    }

    fn holds(&self, key: Key, place: u32) -> bool {
        self.places.get(place as usize).and_then(Option::as_ref).is_some_and(|held| held.0 == key)
    }

    #[inline]
    fn take(&mut self, place: u32) -> Option<Entry<T>> {
        let (_, entry) = self.places[place as usize].take()?;
        self.vacant.push(place);
        Some(entry)
    }

    /// The top key belongs to a waiting job, or no job waits.
    #[inline]
    fn trim(&mut self) {
        if self.keys.len() == self.len() {
            return;
        }
        while let Some((key, place)) = self.first()
            && !self.holds(key, place)
        {
            self.keys.pop();
        }
    }
}
