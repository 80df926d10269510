//! Hash tables keyed by what clients choose: SipHash-1-3 with a random key, so that clients cannot make entries collide.

use rand_core::CryptoRng;
use siphasher::sip::SipHasher13;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// A table of values by keys that clients choose.
pub(crate) type Table<K, V> = HashMap<K, V, KeyedHash>;
/// A set of keys that clients choose.
pub(crate) type Set<K> = HashSet<K, KeyedHash>;

/// The random key of a table.
#[derive(Clone, Debug)]
pub(crate) struct KeyedHash(u64, u64);

impl KeyedHash {
    pub(crate) fn new(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        Self(rng.next_u64(), rng.next_u64())
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}
