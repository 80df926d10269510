//! Which sessions watch which accounts.

use std::collections::HashMap;

use super::SessionId;
use crate::name::NameKey;

/// Which sessions watch which accounts. Names without an account can be watched like any other.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// The sessions that watch an account, and the name that each used.
    watchers: HashMap<NameKey, Vec<(SessionId, String)>>,
    watched: HashMap<SessionId, Vec<NameKey>>,
}

impl Watches {
    /// A session watches an account; once more changes only the name by which it asked. Returns whether it may, by the number
    /// that it may watch.
    pub(super) fn watch(&mut self, session: SessionId, key: &NameKey, asked: String, most: usize) -> bool {
        let watched = self.watched.entry(session).or_default();
        if !watched.contains(key) {
            if watched.len() >= most {
                return false;
            }
            watched.push(key.clone());
        }
        let watchers = self.watchers.entry(key.clone()).or_default();
        watchers.retain(|(watcher, _)| *watcher != session);
        watchers.push((session, asked));
        true
    }

    /// A session watches an account no more.
    pub(super) fn unwatch(&mut self, session: SessionId, key: &NameKey) {
        if let Some(watched) = self.watched.get_mut(&session) {
            watched.retain(|one| one != key);
            if watched.is_empty() {
                self.watched.remove(&session);
            }
        }
        self.forget(session, key);
    }

    /// A session watches no account any more.
    pub(super) fn end(&mut self, session: SessionId) {
        for key in self.watched.remove(&session).unwrap_or_default() {
            self.forget(session, &key);
        }
    }

    /// The sessions that watch an account, and the name by which each asked.
    pub(super) fn of(&self, key: &NameKey) -> &[(SessionId, String)] {
        self.watchers.get(key).map_or(&[], Vec::as_slice)
    }

    /// How many watches there are.
    pub(super) fn len(&self) -> usize {
        self.watchers.values().map(Vec::len).sum()
    }

    fn forget(&mut self, session: SessionId, key: &NameKey) {
        if let Some(watchers) = self.watchers.get_mut(key) {
            watchers.retain(|(watcher, _)| *watcher != session);
            if watchers.is_empty() {
                self.watchers.remove(key);
            }
        }
    }
}
