//! The keys of the cipher: PBKDF2 with HMAC-SHA1 (RFC 8018), salt one space, 65,536 rounds, 128 bits.
//!
//! A derivation is a long chain of digests, each of which needs the one before, so a single one leaves most of a
//! processor idle. Keys that requests wait for are therefore derived together with it.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use kendall_digest::{Engine, pbkdf2};
use kendall_service::{Counter, Registry};
use lru::LruCache;

/// A key of AES-128.
pub type Key = [u8; 16];

pub(crate) const SALT: &[u8] = b" ";
pub(crate) const ROUNDS: u32 = 65_536;

/// Derives keys, and caches some: the least recently used are evicted first.
#[derive(Debug)]
pub struct Keys {
    engine: Engine,
    state: Mutex<State>,
    /// Signalled when a derivation ends.
    ended: Condvar,
    counts: Counts,
}

#[derive(Debug)]
struct State {
    known: LruCache<Vec<u8>, Key>,
    /// Passwords whose keys requests will need, in order, and the number of these requests; at most as many as the cache holds.
    expected: LruCache<Vec<u8>, usize>,
    /// Passwords whose keys are being derived.
    under_way: HashSet<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Counts {
    derivations: Counter,
    derived: Counter,
    known: Counter,
}

/// A request that will need a key, until it is dropped: the request is served, or its client has left.
#[derive(Debug)]
pub struct Expectation {
    keys: Arc<Keys>,
    password: Vec<u8>,
}

/// A key, and the cost of its derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The key.
    pub key: Key,
    /// The time of its derivation, in ns, or the time that was waited for one already running; 0 if it was
    /// cached.
    pub took_ns: u64,
    /// The number of keys that were derived in parallel, this one included; 0 if it was cached or another request
    /// derived it.
    pub lanes: usize,
}

impl Keys {
    /// An empty cache of at most `bound` keys. The engine only determines whether the instructions of this
    /// processor may be used: which are best depends on how many keys are derived.
    pub fn new(engine: Engine, bound: NonZeroUsize) -> Self {
        let state = State { known: empty(bound), expected: empty(bound), under_way: HashSet::new() };
        Self { engine, state: Mutex::new(state), ended: Condvar::new(), counts: Counts::default() }
    }

    /// The key of a password, if it is cached.
    pub fn cached(&self, password: &[u8]) -> Option<Key> {
        self.lock().known.get(password).copied()
    }

    /// Announces that a waiting request will need this key: a derivation that runs anyway includes it.
    pub fn expect(self: &Arc<Self>, password: &[u8]) -> Expectation {
        let mut state = self.lock();
        if let Some(requests) = state.expected.peek_mut(password) {
            *requests += 1;
        } else if !state.has(password) {
            state.expected.put(password.to_vec(), 1);
        }
        Expectation { keys: Arc::clone(self), password: password.to_vec() }
    }

    /// The key of a password. Takes milliseconds, unless it is cached; waits for a derivation that is already
    /// running.
    pub fn derive(&self, password: &[u8]) -> Derived {
        let start = Instant::now();
        let took = |waited: bool| if waited { start.elapsed().as_nanos() as u64 } else { 0 };
        let mut waited = false;
        let mut state = self.lock();
        loop {
            if let Some(&key) = state.known.get(password) {
                self.counts.known.inc();
                return Derived { key, took_ns: took(waited), lanes: 0 };
            }
            if !state.under_way.contains(password) {
                break;
            }
            state = self.ended.wait(state).expect("no thread panics while it holds the lock");
            waited = true;
        }
        let batch = state.take_along(password, self.most());
        drop(state);

        let passwords: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let blocks = pbkdf2::derive(self.engine_for(batch.len()), &passwords, SALT, ROUNDS);
        let keys = blocks.iter().map(|block| *block.first_chunk().expect("a block is longer than a key"));
        let keys: Vec<Key> = keys.collect();
        self.counts.derivations.inc();
        self.counts.derived.inc_by(keys.len() as u64);

        let (key, lanes) = (keys[0], keys.len());
        self.lock().know(batch, keys);
        self.ended.notify_all();
        Derived { key, took_ns: took(true), lanes }
    }

    /// Adds the counters to the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let Counts { derivations, derived, known } = &self.counts;
        registry.register(
            "recover_keys_derivations",
            "Derivations, each of one key or several",
            derivations.clone(),
        );
        registry.register("recover_keys_derived", "Keys derived", derived.clone());
        registry.register("recover_keys_known", "Keys that were cached when they were needed", known.clone());
    }

    /// The most keys that are derived in parallel.
    fn most(&self) -> usize {
        if self.engine == Engine::Portable { 1 } else { pbkdf2::most_lanes() }
    }

    fn engine_for(&self, keys: usize) -> Engine {
        if self.engine == Engine::Portable { self.engine } else { pbkdf2::engine_for(keys) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }
}

impl State {
    fn has(&self, password: &[u8]) -> bool {
        self.known.contains(password) || self.under_way.contains(password)
    }

    /// This password and up to `most - 1` expected ones, all of which are now being derived.
    fn take_along(&mut self, password: &[u8], most: usize) -> Vec<Vec<u8>> {
        let mut batch = vec![password.to_vec()];
        self.under_way.insert(password.to_vec());
        while batch.len() < most {
            let Some((expected, _)) = self.expected.pop_lru() else { break };
            if !self.has(&expected) {
                self.under_way.insert(expected.clone());
                batch.push(expected);
            }
        }
        // The requests that expected it have it now.
        self.expected.pop(password);
        batch
    }

    /// Caches the keys of these passwords; if not all fit, at least the first.
    fn know(&mut self, passwords: Vec<Vec<u8>>, keys: Vec<Key>) {
        for (password, key) in passwords.into_iter().zip(keys).rev() {
            self.under_way.remove(&password);
            self.known.put(password, key);
        }
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        let mut state = self.keys.lock();
        match state.expected.peek_mut(&self.password) {
            Some(requests) if *requests > 1 => *requests -= 1,
            // The key of this password may be derived already.
            _ => drop(state.expected.pop(&self.password)),
        }
    }
}

fn empty<V>(bound: NonZeroUsize) -> LruCache<Vec<u8>, V> {
    // The cache allocates as it grows.
    let mut cache = LruCache::unbounded();
    cache.resize(bound);
    cache
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn keys(bound: usize) -> Arc<Keys> {
        let engine = Engine::available().last().unwrap();
        Arc::new(Keys::new(engine, NonZeroUsize::new(bound).unwrap()))
    }

    #[test]
    fn keys_are_those_of_the_course() {
        for engine in [Engine::Portable, Engine::available().last().unwrap()] {
            let keys = Keys::new(engine, NonZeroUsize::MIN);
            let derived = keys.derive(b"test");
            assert_eq!(u128::from_be_bytes(derived.key), 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77);
            assert_eq!(derived.lanes, 1);
            assert_eq!(keys.derive(b"test"), Derived { key: derived.key, took_ns: 0, lanes: 0 });
        }
    }

    #[test]
    fn expected_keys_are_derived_together() {
        let keys = keys(100);
        let _expectations = ["abc", "password", "test", "abc"].map(|word| keys.expect(word.as_bytes()));
        let lanes = keys.derive(b"test").lanes;
        assert_eq!(lanes, 3.min(keys.most()));
        if lanes == 3 {
            assert_eq!(
                keys.cached(b"abc").map(u128::from_be_bytes),
                Some(0x7faa_8044_02d0_fa50_ff6c_2491_de3f_f46a)
            );
            assert_eq!(keys.derive(b"password").lanes, 0);
        }
        assert_eq!(keys.derive(b"linfoo").lanes, 1, "nothing is expected any more");
    }

    #[test]
    fn a_key_is_expected_until_the_last_request_for_it_leaves() {
        let keys = keys(100);
        let [first, second, other] = ["abc", "abc", "test"].map(|word| keys.expect(word.as_bytes()));
        drop(first);
        assert_eq!(keys.lock().expected.len(), 2);
        drop((second, other));
        assert_eq!(keys.derive(b"linfoo").lanes, 1, "no request expects another key");
    }

    #[test]
    fn a_password_is_derived_once_for_concurrent_requests() {
        let keys = keys(10);
        let derived: Vec<Derived> = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| keys.derive(b"test"))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(derived.iter().all(|one| one.key == derived[0].key));
        assert_eq!(derived.iter().filter(|one| one.lanes == 1).count(), 1);
        assert_eq!(keys.counts.derived.get(), 1);
    }

    #[test]
    fn no_more_keys_are_cached_or_expected_than_the_bound() {
        let keys = keys(2);
        let _expectations = ["a", "b", "c", "d"].map(|word| keys.expect(word.as_bytes()));
        let expected: Vec<Vec<u8>> = keys.lock().expected.iter().map(|(word, _)| word.clone()).collect();
        assert_eq!(expected, [b"d", b"c"]);
        keys.derive(b"e");
        assert!(keys.cached(b"e").is_some());
        assert!(keys.lock().known.len() <= 2);
        assert!(keys.lock().under_way.is_empty());
    }
}
