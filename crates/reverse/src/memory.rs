//! The server's cache of earlier searches.
//!
//! Bounded: it evicts the least recently used entry. A Bloom filter (Bloom 1970) in front of the map can save
//! lookups of digests that it never held. Whether that pays off depends on the load, so it is an option;
//! `docs/reverse.md` has measurements.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use fastbloom::BloomFilter;
use kendall_digest::sha256::Digest;
use kendall_service::{Counter, Registry};
use lru::LruCache;

use crate::protocol::Request;
use crate::search::Key;

/// The share of unknown digests that the filter lets pass.
const FALSE_POSITIVES: f64 = 0.01;

/// Whether and how answers are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Not cached.
    Off,
    /// In a map.
    #[default]
    Map,
    /// In a map behind a Bloom filter.
    MapAndBloom,
}

impl Memory {
    /// Every kind of memory, in the order in which they are listed to users.
    pub const ALL: [Self; 3] = [Self::Off, Self::Map, Self::MapAndBloom];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Map => "map",
            Self::MapAndBloom => "map+bloom",
        }
    }
}

/// The numbers behind digests, and the ranges without one.
#[derive(Debug)]
pub struct Answers {
    found: Mutex<Table<Digest, u64>>,
    absent: Mutex<Table<Key, ()>>,
    hits: Counter,
    misses: Counter,
    evictions: Counter,
    filtered: Counter,
}

#[derive(Debug)]
struct Table<K: Hash + Eq, V> {
    map: LruCache<K, V>,
    filter: Option<Filter>,
}

/// A filter cannot remove entries, so it is rebuilt from the map before it holds twice the number it was made
/// for.
#[derive(Debug)]
struct Filter {
    bits: BloomFilter,
    taken_in: usize,
}

impl Answers {
    /// An empty cache of at most `entries` of either kind; `None` if answers are not cached.
    pub fn new(memory: Memory, entries: NonZeroUsize) -> Option<Self> {
        let with_filter = match memory {
            Memory::Off => return None,
            Memory::Map => false,
            Memory::MapAndBloom => true,
        };
        Some(Self {
            found: Mutex::new(Table::new(entries, with_filter)),
            absent: Mutex::new(Table::new(entries, with_filter)),
            hits: Counter::default(),
            misses: Counter::default(),
            evictions: Counter::default(),
            filtered: Counter::default(),
        })
    }

    /// The answer to a request, if the cache determines it. The outer `Some` means that the cache determines
    /// it, the inner one that there is a number. A number known to lie outside the range does not determine an
    /// answer.
    pub fn recall(&self, request: &Request) -> Option<Option<u64>> {
        let (found, spared) = lock(&self.found).get(&request.digest);
        let answer = match found {
            Some(value) if request.is_answered_by(value) => Some(Some(value)),
            _ => lock(&self.absent).get(&Key::of(request)).0.map(|()| None),
        };
        let counter = if answer.is_some() { &self.hits } else { &self.misses };
        counter.inc();
        if spared {
            self.filtered.inc();
        }
        answer
    }

    /// Caches an answer.
    pub fn remember(&self, key: Key, found: Option<u64>) {
        let evicted = match found {
            Some(value) => lock(&self.found).put(key.digest, value),
            None => lock(&self.absent).put(key, ()),
        };
        if evicted {
            self.evictions.inc();
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let counters = [
            ("reverse_memory_hits", "Requests answered from the cache", &self.hits),
            ("reverse_memory_misses", "Requests not answered from the cache", &self.misses),
            ("reverse_memory_evictions", "Answers evicted because the cache was full", &self.evictions),
            ("reverse_memory_filtered", "Lookups that the Bloom filter saved", &self.filtered),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the cache")
}

impl<K: Hash + Eq + Clone, V: Copy> Table<K, V> {
    fn new(entries: NonZeroUsize, with_filter: bool) -> Self {
        // The map allocates as it grows.
        let mut map = LruCache::unbounded();
        map.resize(entries);
        Self { map, filter: with_filter.then(|| Filter::new(entries.get())) }
    }

    /// The value of a key, and whether the filter saved the lookup.
    fn get(&mut self, key: &K) -> (Option<V>, bool) {
        if self.filter.as_ref().is_some_and(|filter| !filter.bits.contains(key)) {
            return (None, true);
        }
        (self.map.get(key).copied(), false)
    }

    /// Stores a value; returns whether it evicted another.
    fn put(&mut self, key: K, value: V) -> bool {
        let entries = self.map.cap().get();
        if let Some(filter) = &mut self.filter {
            if filter.taken_in == entries {
                *filter = Filter::new(entries);
                for (key, _) in &self.map {
                    filter.bits.insert(key);
                }
            }
            filter.bits.insert(&key);
            filter.taken_in += 1;
        }
        self.map.push(key.clone(), value).is_some_and(|(gone, _)| gone != key)
    }
}

impl Filter {
    /// A filter for the entries of a full map, and the same number again.
    fn new(entries: usize) -> Self {
        let bits = BloomFilter::with_false_pos(FALSE_POSITIVES).expected_items(2 * entries);
        Self { bits, taken_in: 0 }
    }
}
