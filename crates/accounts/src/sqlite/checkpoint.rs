//! Moving the write-ahead log into the file, on a separate thread and connection.
//!
//! A checkpoint flushes log and file; run by the writer, it makes one insert in a thousand wait for both. Run concurrently,
//! it cannot reset the log while a writer that never pauses keeps appending. So the log's length has a limit, above which
//! the writer itself moves the rest.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection as Database;

use super::file;
use crate::backend::Failure;

/// The number of changed rows after which the log is moved. A row changes one page of 4 KiB or two.
const ROWS: usize = 4096;

/// The length of the log above which the writer waits until it is empty, in pages of 4 KiB: 256 MiB.
const MOST_PAGES: i64 = 65_536;

/// The thread that moves the log.
#[derive(Debug)]
pub(super) struct Checkpointer {
    rows: usize,
    request: Option<SyncSender<()>>,
    log_is_long: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path) -> Result<Self, Failure> {
        let database = file::connect(path).map_err(|error| Failure::Lost(error.to_string()))?;
        // One waiting request stands for any number.
        let (request, requests) = sync_channel(1);
        let log_is_long = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&log_is_long);
        let thread = thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || serve(&database, &requests, &flag))
            .map_err(|error| Failure::Lost(error.to_string()))?;
        Ok(Self { rows: 0, request: Some(request), log_is_long, thread: Some(thread) })
    }

    /// Records changed rows, after their commit.
    pub(super) fn wrote(&mut self, rows: usize, writer: &Database) {
        self.rows += rows;
        if self.rows < ROWS {
            return;
        }
        self.rows = 0;
        if self.log_is_long.swap(false, Ordering::AcqRel) {
            // If a reader blocks it, the next round retries.
            let _ = checkpoint(writer, "PRAGMA wal_checkpoint(RESTART)");
        } else if let Some(request) = &self.request {
            let _ = request.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.request = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Moves the log whenever that is requested, until the writer ends.
fn serve(database: &Database, requests: &Receiver<()>, log_is_long: &AtomicBool) {
    while requests.recv().is_ok() {
        if checkpoint(database, "PRAGMA wal_checkpoint(PASSIVE)").is_ok_and(|pages| pages > MOST_PAGES) {
            log_is_long.store(true, Ordering::Release);
        }
    }
}

/// Runs a checkpoint; returns the length of the log in pages.
fn checkpoint(database: &Database, pragma: &str) -> rusqlite::Result<i64> {
    database.query_row(pragma, [], |row| row.get(1))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kendall_testbed::wait_until;

    use super::*;

    /// A file whose log holds 100 pages and more.
    fn file_with_a_log(path: &Path) -> Database {
        fs::write(path, "").unwrap();
        let database = file::connect(path).unwrap();
        database.execute_batch("CREATE TABLE bytes (bytes BLOB)").unwrap();
        database.execute("INSERT INTO bytes VALUES (zeroblob(409600))", []).unwrap();
        database
    }

    #[test]
    fn the_log_is_moved_beside_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        let database = file_with_a_log(&path);
        let length = || fs::metadata(&path).unwrap().len();
        assert!(length() < 409_600, "a commit adds to the log alone");
        let mut checkpointer = Checkpointer::start(&path).unwrap();
        checkpointer.wrote(ROWS - 1, &database);
        assert!(length() < 409_600, "a few rows are not worth a checkpoint");
        checkpointer.wrote(1, &database);
        wait_until("the log is moved", || length() > 409_600);
    }

    #[test]
    fn a_long_log_is_moved_by_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        let database = file_with_a_log(&path);
        let mut checkpointer = Checkpointer::start(&path).unwrap();
        checkpointer.log_is_long.store(true, Ordering::Release);
        checkpointer.wrote(ROWS, &database);
        assert!(fs::metadata(&path).unwrap().len() > 409_600);
        // The log restarts.
        let log = folder.path().join("accounts.db-wal");
        let length = fs::metadata(&log).unwrap().len();
        database.execute("INSERT INTO bytes VALUES (zeroblob(4096))", []).unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), length);
    }
}
