//! The sessions of a server, by number, within limits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kendall_curve::curvecp::PublicKey;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;

use crate::shell::protocol::SessionId;
use crate::shell::session::{About, Request};

/// A session cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// All places of the server are taken.
    #[error("all {0} sessions of the server are in use; try again later, or raise its --max-sessions")]
    Server(usize),
    /// All places of a key are taken.
    #[error(
        "your key has {0} sessions, which is the limit; end one with --end, or raise the server's --max-sessions-per-key"
    )]
    Key(usize),
}

/// The sessions of a server.
pub(super) struct Registry {
    table: Arc<Mutex<Table>>,
    limit: usize,
    limit_per_key: usize,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<SessionId, Entry>,
    last: u32,
}

struct Entry {
    key: PublicKey,
    /// Absent while the program starts.
    running: Option<Running>,
}

struct Running {
    about: Arc<About>,
    requests: Sender<Request>,
    task: JoinHandle<()>,
}

/// A place for a session, given back when this is dropped.
pub(super) struct Reserved {
    table: Arc<Mutex<Table>>,
    session: SessionId,
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(super) fn new(limit: usize, limit_per_key: usize) -> Self {
        Self { table: Arc::default(), limit, limit_per_key }
    }

    /// A place for a session of this key.
    pub(super) fn reserve(&self, key: PublicKey) -> Result<Reserved, Full> {
        let mut table = lock(&self.table);
        if table.sessions.len() >= self.limit {
            return Err(Full::Server(self.limit));
        }
        if table.sessions.values().filter(|entry| entry.key == key).count() >= self.limit_per_key {
            return Err(Full::Key(self.limit_per_key));
        }
        let mut number = table.last;
        let session = loop {
            number = number.wrapping_add(1).max(1);
            if !table.sessions.contains_key(&SessionId(number)) {
                break SessionId(number);
            }
        };
        table.last = number;
        table.sessions.insert(session, Entry { key, running: None });
        Ok(Reserved { table: self.table.clone(), session })
    }

    /// Where requests for a session of this key go.
    pub(super) fn find(&self, session: SessionId, key: PublicKey) -> Option<Sender<Request>> {
        let table = lock(&self.table);
        let entry = table.sessions.get(&session).filter(|entry| entry.key == key)?;
        entry.running.as_ref().map(|running| running.requests.clone())
    }

    /// The sessions of this key in order of their numbers.
    pub(super) fn list(&self, key: PublicKey) -> Vec<Arc<About>> {
        let table = lock(&self.table);
        let own = table.sessions.values().filter(|entry| entry.key == key);
        let mut listed: Vec<_> =
            own.filter_map(|entry| Some(entry.running.as_ref()?.about.clone())).collect();
        listed.sort_by_key(|about| about.session);
        listed
    }

    /// Ends all sessions and waits until they are over.
    pub(super) async fn stop(&self) {
        let running: Vec<Running> =
            lock(&self.table).sessions.values_mut().filter_map(|entry| entry.running.take()).collect();
        for Running { requests, .. } in &running {
            // A session without capacity for this request sees that no further ones will arrive.
            _ = requests.try_send(Request::Stop);
        }
        for Running { requests, task, .. } in running {
            drop(requests);
            _ = task.await;
        }
    }
}

impl Reserved {
    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Spawns the session's task; its place is free again when that ends.
    pub(super) fn fill(
        self,
        about: Arc<About>,
        requests: Sender<Request>,
        run: impl Future<Output = ()> + Send + 'static,
    ) {
        let (table, session) = (self.table.clone(), self.session);
        // Held, so that the task cannot end before it is entered.
        let mut locked = lock(&table);
        let task = tokio::spawn(async move {
            run.await;
            drop(self);
        });
        if let Some(entry) = locked.sessions.get_mut(&session) {
            entry.running = Some(Running { about, requests, task });
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        lock(&self.table).sessions.remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_for_each_key_and_in_all_and_come_back() {
        let registry = Registry::new(3, 2);
        let (one, other) = (PublicKey([1; 32]), PublicKey([2; 32]));
        let first = registry.reserve(one).unwrap();
        let _second = registry.reserve(one).unwrap();
        assert_eq!(registry.reserve(one).err(), Some(Full::Key(2)));
        let _third = registry.reserve(other).unwrap();
        assert_eq!(registry.reserve(other).err(), Some(Full::Server(3)));
        assert_eq!(first.session(), SessionId(1));
        drop(first);
        assert_eq!(registry.reserve(other).unwrap().session(), SessionId(4));
        assert!(registry.find(SessionId(2), one).is_none() && registry.list(one).is_empty());
    }
}
