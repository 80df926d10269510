//! A cache of earlier searches: passwords that were found, and digests without one. Bounded: it evicts the
//! least recently used.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use lru::LruCache;

use super::query::{FoundPassword, Hash, PasswordQuery, PasswordSource};

/// A cache of earlier searches.
#[derive(Debug)]
pub(super) struct SearchCache {
    found: Mutex<LruCache<Hash, CachedPassword>>,
    nowhere: Mutex<LruCache<PasswordQuery, u64>>,
}

/// A password, and its source.
#[derive(Clone, Debug)]
struct CachedPassword {
    password: Vec<u8>,
    by: PasswordSource,
}

impl SearchCache {
    /// An empty cache of at most this many entries of either kind.
    pub(super) fn new(entries: NonZeroUsize) -> Self {
        Self { found: Mutex::new(empty(entries)), nowhere: Mutex::new(empty(entries)) }
    }

    /// The password, if it was found before and would be found again.
    pub(super) fn recall(&self, query: &PasswordQuery) -> Option<FoundPassword> {
        let known = lock(&self.found).get(&query.hash).cloned()?;
        // Only words of the list are found at any length.
        let fits = known.by == PasswordSource::Dictionary || query.lengths.contains(&known.password.len());
        fits.then_some(FoundPassword { password: known.password, by: PasswordSource::Seen, tried: 0 })
    }

    /// Keeps a password.
    pub(super) fn remember(&self, hash: Hash, found: &FoundPassword) {
        if found.by != PasswordSource::Seen {
            lock(&self.found).put(hash, CachedPassword { password: found.password.clone(), by: found.by });
        }
    }

    /// Whether all candidates were tried in vain before, and how many were skipped then.
    pub(super) fn is_nowhere(&self, query: &PasswordQuery) -> Option<u64> {
        lock(&self.nowhere).get(query).copied()
    }

    /// Records that there is no password, except for this many candidates that were skipped.
    pub(super) fn remember_nowhere(&self, query: PasswordQuery, left_out: u64) {
        lock(&self.nowhere).put(query, left_out);
    }
}

fn empty<K: std::hash::Hash + Eq, V>(entries: NonZeroUsize) -> LruCache<K, V> {
    // The cache allocates as it grows.
    let mut cache = LruCache::unbounded();
    cache.resize(entries);
    cache
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}
