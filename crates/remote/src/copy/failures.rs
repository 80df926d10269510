//! Entries that could not be copied, for the list at the end of a copy.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::path::shown;

/// Sentences that are kept; further ones are counted.
const KEPT: usize = 1000;

/// What could not be copied. Its clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    texts: Vec<String>,
    count: u64,
    /// Numbers of entries that the receiver has reported, of which no more data needs to be sent.
    entries: HashSet<u64>,
}

impl Failures {
    /// Adds a sentence. It may come from the peer: control characters are escaped.
    pub(crate) fn add(&self, text: &str) {
        let mut list = self.lock();
        list.count += 1;
        if list.texts.len() < KEPT {
            list.texts.push(shown(text.as_bytes()).into_owned());
        }
    }

    /// Adds what the receiver reports about an entry.
    pub(crate) fn add_entry(&self, entry: u64, text: &str) {
        self.add(text);
        let mut list = self.lock();
        if list.entries.len() < KEPT {
            list.entries.insert(entry);
        }
    }

    /// Whether the receiver has reported this entry.
    pub(crate) fn has(&self, entry: u64) -> bool {
        self.lock().entries.contains(&entry)
    }

    /// The sentences that were kept, and how many there were.
    pub(crate) fn take(&self) -> (Vec<String>, u64) {
        let mut list = self.lock();
        (std::mem::take(&mut list.texts), list.count)
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
