//! The open files of the history.

use std::collections::HashMap;

use crate::history::{Entry, History, HistoryError, Log, Recalled};

/// The histories of a profile, and the files to which records are appended.
pub(crate) struct Histories {
    history: History,
    logs: HashMap<String, Log>,
}

impl Histories {
    pub(crate) fn new(history: History) -> Self {
        Self { history, logs: HashMap::new() }
    }

    /// What was said with a contact.
    pub(crate) fn recall(&mut self, name: &str) -> Result<Recalled, HistoryError> {
        let (log, recalled) = self.history.log(name)?;
        self.logs.insert(name.to_owned(), log);
        Ok(recalled)
    }

    /// Keeps what was said.
    pub(crate) fn append(&mut self, name: &str, entry: &Entry) -> Result<(), HistoryError> {
        if !self.logs.contains_key(name) {
            self.recall(name)?;
        }
        let log = self.logs.get_mut(name).expect("it was just opened");
        self.history.append(log, entry)
    }
}
