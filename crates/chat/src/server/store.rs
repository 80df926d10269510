//! Where accounts are kept. A store knows keys of names and bytes, and not what either means.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};

/// The result of a call to a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreFault>> + Send + 'a>>;

/// A call failed, and it may be unknown whether it stored data. For the log; clients learn only that it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFault(pub String);

/// Whether a name was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The account is kept.
    New,
    /// There is an account of this name, and nothing was stored.
    Taken,
}

/// A store of accounts.
pub trait Store: Send + Sync + 'static {
    /// Keeps an account if its name is free.
    fn insert<'a>(&'a self, key: &'a str, record: Vec<u8>) -> StoreFuture<'a, Inserted>;

    /// The record of an account, if there is one.
    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Vec<u8>>>;

    /// Replaces the record of an account if it is still the old one; returns whether it was.
    fn replace<'a>(&'a self, key: &'a str, old: &'a [u8], new: Vec<u8>) -> StoreFuture<'a, bool>;

    /// Removes an account if its record is still the old one; returns whether it was.
    fn remove<'a>(&'a self, key: &'a str, old: &'a [u8]) -> StoreFuture<'a, bool>;

    /// How many accounts there are.
    fn count(&self) -> StoreFuture<'_, u64>;

    /// Ends the store; what it has acknowledged is kept.
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// A store in memory, which ends with the server: for tests, and to measure a server without a disk.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl Memory {
    /// Every record that is kept, by its key.
    pub fn all(&self) -> HashMap<String, Vec<u8>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        self.0.lock().expect("no thread panics while it holds the accounts")
    }
}

impl Store for Memory {
    fn insert<'a>(&'a self, key: &'a str, record: Vec<u8>) -> StoreFuture<'a, Inserted> {
        let inserted = match self.lock().entry(key.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(record);
                Inserted::New
            }
            Entry::Occupied(_) => Inserted::Taken,
        };
        Box::pin(ready(Ok(inserted)))
    }

    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(ready(Ok(self.lock().get(key).cloned())))
    }

    fn replace<'a>(&'a self, key: &'a str, old: &'a [u8], new: Vec<u8>) -> StoreFuture<'a, bool> {
        let mut all = self.lock();
        let found = all.get_mut(key).filter(|record| record.as_slice() == old);
        let is_replaced = found.map(|record| *record = new).is_some();
        Box::pin(ready(Ok(is_replaced)))
    }

    fn remove<'a>(&'a self, key: &'a str, old: &'a [u8]) -> StoreFuture<'a, bool> {
        let mut all = self.lock();
        let is_old = all.get(key).is_some_and(|record| record == old);
        if is_old {
            all.remove(key);
        }
        Box::pin(ready(Ok(is_old)))
    }

    fn count(&self) -> StoreFuture<'_, u64> {
        Box::pin(ready(Ok(self.lock().len() as u64)))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} accounts)", self.lock().len())
    }
}
