//! What was searched before: passwords that were found, and what has none. Bounded: what was asked for least
//! recently goes first.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use lru::LruCache;

use super::wanted::{Found, Hash, Wanted, Way};

/// See the module.
#[derive(Debug)]
pub(super) struct Seen {
    found: Mutex<LruCache<Hash, Known>>,
    nowhere: Mutex<LruCache<Wanted, u64>>,
}

/// A password, and how it was found.
#[derive(Clone, Debug)]
struct Known {
    password: Vec<u8>,
    by: Way,
}

impl Seen {
    /// Nothing yet, and never more than this many of either kind.
    pub(super) fn new(entries: NonZeroUsize) -> Self {
        Self { found: Mutex::new(empty(entries)), nowhere: Mutex::new(empty(entries)) }
    }

    /// The password, if it was found before and would be found again.
    pub(super) fn recall(&self, wanted: &Wanted) -> Option<Found> {
        let known = lock(&self.found).get(&wanted.hash).cloned()?;
        // Only words of the list are found whatever their length.
        let fits = known.by == Way::Dictionary || wanted.lengths.contains(&known.password.len());
        fits.then_some(Found { password: known.password, by: Way::Seen, tried: 0 })
    }

    /// Keeps a password.
    pub(super) fn remember(&self, hash: Hash, found: &Found) {
        if found.by != Way::Seen {
            lock(&self.found).put(hash, Known { password: found.password.clone(), by: found.by });
        }
    }

    /// Whether all candidates were tried in vain before, and how many were left out then.
    pub(super) fn is_nowhere(&self, wanted: &Wanted) -> Option<u64> {
        lock(&self.nowhere).get(wanted).copied()
    }

    /// Keeps that there is no password, but for this many candidates that were left out.
    pub(super) fn remember_nowhere(&self, wanted: Wanted, left_out: u64) {
        lock(&self.nowhere).put(wanted, left_out);
    }
}

fn empty<K: std::hash::Hash + Eq, V>(entries: NonZeroUsize) -> LruCache<K, V> {
    // Room is taken as it is needed.
    let mut cache = LruCache::unbounded();
    cache.resize(entries);
    cache
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
