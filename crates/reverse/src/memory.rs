//! What the server remembers of searches it has done, so as not to do them twice.
//!
//! Bounded: the entry that was asked for least recently goes first. A Bloom filter (Bloom 1970) may stand before
//! the map and spare it the questions for what it never held. Whether that pays is a question that others have
//! measured, so it can be switched on; `docs/reverse.md` says what came of it.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use fastbloom::BloomFilter;
use kendall_digest::sha256::Digest;
use kendall_service::{Counter, Registry};
use lru::LruCache;

use crate::protocol::Request;
use crate::search::Key;

/// The share of digests never seen that the filter lets pass.
const FALSE_POSITIVES: f64 = 0.01;

/// Whether and how answers are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Not at all.
    Off,
    /// In a map.
    #[default]
    Map,
    /// In a map behind a Bloom filter.
    MapAndBloom,
}

impl Memory {
    /// All, in the order in which they are listed to users.
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

/// The numbers behind digests, and the ranges in which digests have none.
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

/// A filter cannot forget, so it is filled anew from the map before it has taken in twice what it was made for.
#[derive(Debug)]
struct Filter {
    bits: BloomFilter,
    taken_in: usize,
}

impl Answers {
    /// Nothing yet, and never more than `entries` of either kind; `None` if nothing is to be remembered.
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

    /// The answer to a request, if it follows from what is remembered. The outer `Some` says that it is known,
    /// the inner one that there is a number. A number known to lie elsewhere says nothing about this range.
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

    /// Keeps an answer.
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
            ("reverse_memory_hits", "Requests answered from memory", &self.hits),
            ("reverse_memory_misses", "Requests not answered from memory", &self.misses),
            ("reverse_memory_evictions", "Answers forgotten for want of room", &self.evictions),
            ("reverse_memory_filtered", "Requests that the Bloom filter kept from the map", &self.filtered),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding the memory")
}

impl<K: Hash + Eq + Clone, V: Copy> Table<K, V> {
    fn new(entries: NonZeroUsize, with_filter: bool) -> Self {
        // Room is taken as it is needed.
        let mut map = LruCache::unbounded();
        map.resize(entries);
        Self { map, filter: with_filter.then(|| Filter::new(entries.get())) }
    }

    /// The value of a key, and whether the filter spared the map the question.
    fn get(&mut self, key: &K) -> (Option<V>, bool) {
        if self.filter.as_ref().is_some_and(|filter| !filter.bits.contains(key)) {
            return (None, true);
        }
        (self.map.get(key).copied(), false)
    }

    /// Keeps a value; whether another had to go for it.
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
    /// For the entries of a full map, and as many again.
    fn new(entries: usize) -> Self {
        let bits = BloomFilter::with_false_pos(FALSE_POSITIVES).expected_items(2 * entries);
        Self { bits, taken_in: 0 }
    }
}
