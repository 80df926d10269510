//! The progress of a copy, for the program that draws it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters of a copy in progress. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    entries: AtomicU64,
    bytes: AtomicU64,
    resumed_bytes: AtomicU64,
    total: AtomicBool,
    total_entries: AtomicU64,
    total_bytes: AtomicU64,
}

impl Progress {
    /// Files, folders and links so far.
    pub fn entries(&self) -> u64 {
        self.0.entries.load(Relaxed)
    }

    /// Bytes of files so far, holes and bytes that the receiver had already included.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Relaxed)
    }

    /// The bytes, among these, that the receiver had already, from an interrupted copy.
    pub fn resumed_bytes(&self) -> u64 {
        self.0.resumed_bytes.load(Relaxed)
    }

    /// Files, folders and links, and bytes in all, once the sender has counted them.
    pub fn total(&self) -> Option<(u64, u64)> {
        let load = || (self.0.total_entries.load(Relaxed), self.0.total_bytes.load(Relaxed));
        self.0.total.load(std::sync::atomic::Ordering::Acquire).then(load)
    }

    pub(crate) fn add_entry(&self) {
        self.0.entries.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_resumed_bytes(&self, bytes: u64) {
        self.0.resumed_bytes.fetch_add(bytes, Relaxed);
        self.add_bytes(bytes);
    }

    pub(crate) fn set_total(&self, entries: u64, bytes: u64) {
        self.0.total_entries.store(entries, Relaxed);
        self.0.total_bytes.store(bytes, Relaxed);
        self.0.total.store(true, std::sync::atomic::Ordering::Release);
    }
}
