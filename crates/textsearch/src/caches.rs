//! The memory that threads use while they search with an automaton.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex_automata::util::pool::Pool;

/// A cache for each thread that searches at the same time. They stay for later searches, so they count as memory of the automaton.
pub(crate) struct Caches<C> {
    pool: Pool<C, Box<dyn Fn() -> C + Send + Sync>>,
    made: Arc<AtomicUsize>,
    bytes_of: fn(&C) -> usize,
    /// The size of the largest cache, in bytes.
    largest: AtomicUsize,
}

impl<C: Send + 'static> Caches<C> {
    /// None yet: each is made when a thread needs one.
    pub(crate) fn new(make: impl Fn() -> C + Send + Sync + 'static, bytes_of: fn(&C) -> usize) -> Self {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let make = move || {
            count.fetch_add(1, Ordering::Relaxed);
            make()
        };
        Self { pool: Pool::new(Box::new(make)), made, bytes_of, largest: AtomicUsize::new(0) }
    }

    /// Searches with a cache that no other thread uses meanwhile.
    pub(crate) fn search<T>(&self, search: impl FnOnce(&mut C) -> T) -> T {
        let mut cache = self.pool.get();
        let found = search(&mut cache);
        let bytes = (self.bytes_of)(&cache);
        // Most searches need no more memory than those before, and then nothing is written that other threads read.
        if bytes > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(bytes, Ordering::Relaxed);
        }
        found
    }

    /// The memory of all caches, as if each were as large as the largest.
    pub(crate) fn bytes(&self) -> usize {
        self.made.load(Ordering::Relaxed) * self.largest.load(Ordering::Relaxed)
    }
}

impl<C> fmt::Debug for Caches<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches")
            .field("made", &self.made)
            .field("largest", &self.largest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn the_largest_counts_for_each_that_threads_have_made() {
        let caches = Caches::new(Vec::<u8>::new, Vec::capacity);
        assert_eq!(caches.bytes(), 0);
        caches.search(|cache| cache.reserve_exact(1000));
        caches.search(|cache| assert_eq!(cache.capacity(), 1000));
        assert_eq!(caches.bytes(), 1000);
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| caches.search(|_| both.wait()));
            }
        });
        // The first one stays reserved for the thread that made it.
        assert_eq!(caches.bytes(), 3000);
    }
}
