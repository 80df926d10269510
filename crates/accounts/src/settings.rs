//! The settings of a store.

use std::time::Duration;

use crate::error::StoreError;

/// Whether a store may lose acknowledged accounts in a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Opening a database that is configured to lose acknowledged writes is an error.
    #[default]
    Required,
    /// The database's own configuration applies unchecked.
    AsConfigured,
}

/// The settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Connections that write, 1 to 16. SQLite always has one writer.
    pub connections: usize,
    /// Connections that read, 1 to 16.
    pub readers: usize,
    /// The most waiting calls, separately for writes and reads, 1 to 1,000,000; one more gets [`StoreError::Busy`].
    pub queue: usize,
    /// The most accounts of one transaction, 1 to 1,024.
    pub most_in_batch: usize,
    /// Whether one transaction takes all queued inserts. If `false`, each insert is a separate transaction, for
    /// experiments.
    pub group_commit: bool,
    /// The longest time for a database to answer one batch, and to open a connection. SQLite has no such limit, because
    /// its calls cannot be interrupted.
    pub answer_within: Duration,
    /// Whether to accept a database that can lose accounts.
    pub durability: Durability,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 2,
            readers: 2,
            queue: 4096,
            most_in_batch: 256,
            group_commit: true,
            answer_within: Duration::from_secs(10),
            durability: Durability::Required,
        }
    }
}

impl Settings {
    /// # Errors
    /// [`StoreError::Setting`] names the first setting outside its range.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let ranges = [
            ("connections", self.connections, 16, "1 to 16"),
            ("readers", self.readers, 16, "1 to 16"),
            ("queue", self.queue, 1_000_000, "1 to 1000000"),
            ("most_in_batch", self.most_in_batch, 1024, "1 to 1024"),
        ];
        for (setting, value, most, range) in ranges {
            if value == 0 || value > most {
                return Err(StoreError::Setting { setting, value, range });
            }
        }
        if self.answer_within.is_zero() {
            return Err(StoreError::Setting { setting: "answer_within", value: 0, range: "greater than 0" });
        }
        Ok(())
    }

    /// The most accounts that a writer takes at a time.
    pub(crate) fn batch(&self) -> usize {
        if self.group_commit { self.most_in_batch } else { 1 }
    }
}
