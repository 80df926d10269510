//! Log-ins that wait for the client's proof. A change of the account withdraws them, so that the password before it does not
//! enter after it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::ConnectionId;
use crate::name::NameKey;

/// The log-ins that wait, at most one of each connection.
#[derive(Debug, Default)]
pub(super) struct LogIns {
    waiting: HashMap<ConnectionId, (NameKey, Duration)>,
    of_name: HashMap<NameKey, HashSet<ConnectionId>>,
    order: BTreeSet<(Duration, ConnectionId)>,
}

impl LogIns {
    /// A log-in waits until an instant. One that the connection had begun before is withdrawn.
    pub(super) fn begin(&mut self, connection: ConnectionId, key: &NameKey, until: Duration) {
        self.end(connection);
        self.waiting.insert(connection, (key.clone(), until));
        self.of_name.entry(key.clone()).or_default().insert(connection);
        self.order.insert((until, connection));
    }

    /// The log-in of a connection waits no more. Returns the account that it was for, unless it was withdrawn.
    pub(super) fn end(&mut self, connection: ConnectionId) -> Option<NameKey> {
        let (key, until) = self.waiting.remove(&connection)?;
        self.order.remove(&(until, connection));
        if let Some(all) = self.of_name.get_mut(&key) {
            all.remove(&connection);
            if all.is_empty() {
                self.of_name.remove(&key);
            }
        }
        Some(key)
    }

    /// Withdraws the log-ins of an account.
    pub(super) fn withdraw(&mut self, key: &NameKey) {
        for connection in self.of_name.remove(key).into_iter().flatten() {
            self.end(connection);
        }
    }

    /// Withdraws the log-in that has waited longest: in a flood of log-ins without proofs, one that is meant lasts much shorter.
    pub(super) fn withdraw_oldest(&mut self) {
        if let Some(&(_, connection)) = self.order.first() {
            self.end(connection);
        }
    }

    /// Withdraws the log-ins whose time is over.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(&(until, connection)) = self.order.first()
            && until <= now
        {
            self.end(connection);
        }
    }

    /// The number of log-ins that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The instant at which the next log-in expires.
    pub(super) fn next(&self) -> Option<Duration> {
        self.order.first().map(|&(until, _)| until)
    }
}
