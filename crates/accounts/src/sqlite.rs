//! SQLite: one file, one thread that writes, threads that read.
//!
//! The journal is a write-ahead log and every commit flushes it (`synchronous=FULL`), so an acknowledged account survives a
//! loss of power. A separate connection moves the log into the file (`checkpoint`), so that the writer does not pause for
//! it.

mod checkpoint;
mod file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection as Database, ErrorCode, OptionalExtension, params};

use crate::account::{Account, Inserted};
use crate::backend::{Access, Connection, Failure, Rows, Runs, Store};
use crate::error::StoreError;
use checkpoint::Checkpointer;

/// How long a call waits for another program that writes to the same file.
const BUSY: Duration = Duration::from_secs(5);

/// A file of SQLite.
#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    name: String,
}

impl Sqlite {
    pub(crate) fn new(path: &Path, name: String) -> Self {
        Self { path: path.to_owned(), name }
    }
}

impl Store for Sqlite {
    type Connection = Open;

    const RUNS: Runs = Runs::OnThreads;
    const MOST_WRITERS: usize = 1;

    async fn prepare(&self) -> Result<(), StoreError> {
        let Self { path, name } = self.clone();
        off_the_runtime(move || file::prepare(&path, &name)).await
    }

    async fn connect(&self, access: Access) -> Result<Open, Failure> {
        let path = self.path.clone();
        off_the_runtime(move || Open::new(&path, access)).await
    }
}

/// Runs a call that blocks for milliseconds where it delays no other task.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A connection to the file.
#[derive(Debug)]
pub(crate) struct Open {
    database: Database,
    /// Only a connection that writes has one.
    checkpointer: Option<Checkpointer>,
}

impl Open {
    fn new(path: &Path, access: Access) -> Result<Self, Failure> {
        let database = file::connect(path).map_err(lost)?;
        let checkpointer = match access {
            Access::Write => {
                // The page cache holds the inner pages of an index of millions of names.
                database.execute_batch("PRAGMA cache_size = -65536").map_err(lost)?;
                Some(Checkpointer::start(path)?)
            }
            Access::Read => {
                database.execute_batch("PRAGMA query_only = ON").map_err(lost)?;
                None
            }
        };
        Ok(Self { database, checkpointer })
    }

    fn step(&self, sql: &str) -> rusqlite::Result<()> {
        self.database.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Runs changes in one transaction; returns when they are durable.
    fn transaction<T>(&self, changes: impl FnOnce(&Database) -> rusqlite::Result<T>) -> Result<T, Failure> {
        self.step("BEGIN IMMEDIATE").map_err(refused)?;
        let undo = |error| {
            if !self.database.is_autocommit() {
                let _ = self.step("ROLLBACK");
            }
            refused(error)
        };
        let value = changes(&self.database).map_err(undo)?;
        match self.step("COMMIT") {
            Ok(()) => Ok(value),
            // The commit record did not fit, or was not written: the log has none of it.
            Err(error) if is(&error, ErrorCode::DiskFull) || is(&error, ErrorCode::DatabaseBusy) => {
                Err(undo(error))
            }
            // The flush failed: the log may or may not have the commit.
            Err(error) => Err(lost(error)),
        }
    }

    /// Requests a checkpoint from time to time.
    fn wrote(&mut self, rows: usize) {
        if let Some(checkpointer) = &mut self.checkpointer {
            checkpointer.wrote(rows, &self.database);
        }
    }
}

impl Connection for Open {
    async fn ping(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn insert_many(&mut self, accounts: &[Account]) -> Result<Rows, Failure> {
        let rows = self.transaction(|database| {
            let mut statement = database.prepare_cached(
                "INSERT INTO accounts (name, credential) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
            )?;
            let row = |account: &Account| {
                let changed = statement.execute(params![account.name, account.credential])?;
                Ok(Ok(if changed == 1 { Inserted::New } else { Inserted::Taken }))
            };
            accounts.iter().map(row).collect()
        })?;
        self.wrote(accounts.len());
        Ok(rows)
    }

    async fn find_many(&mut self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut statement = self
            .database
            .prepare_cached("SELECT credential FROM accounts WHERE name = ?1")
            .map_err(refused)?;
        let find = |name: &String| statement.query_row([name], |row| row.get(0)).optional();
        names.iter().map(find).collect::<rusqlite::Result<_>>().map_err(refused)
    }

    async fn replace(&mut self, name: &str, old: &[u8], new: &[u8]) -> Result<bool, Failure> {
        let changed = self.transaction(|database| {
            database
                .prepare_cached("UPDATE accounts SET credential = ?3 WHERE name = ?1 AND credential = ?2")?
                .execute(params![name, old, new])
        })?;
        self.wrote(1);
        Ok(changed == 1)
    }

    async fn remove(&mut self, name: &str, old: &[u8]) -> Result<bool, Failure> {
        let changed = self.transaction(|database| {
            database
                .prepare_cached("DELETE FROM accounts WHERE name = ?1 AND credential = ?2")?
                .execute(params![name, old])
        })?;
        self.wrote(1);
        Ok(changed == 1)
    }

    async fn count(&mut self) -> Result<u64, Failure> {
        let count = self.database.query_row("SELECT count(*) FROM accounts", [], |row| row.get::<_, i64>(0));
        count.map(i64::unsigned_abs).map_err(refused)
    }

    async fn close(self) -> Result<(), Failure> {
        drop(self.checkpointer);
        // The last connection moves the rest of the log into the file, and removes the log.
        self.database.close().map_err(|(_, error)| refused(error))
    }
}

fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

fn refused(error: rusqlite::Error) -> Failure {
    Failure::Refused(error.to_string())
}

fn lost(error: rusqlite::Error) -> Failure {
    Failure::Lost(error.to_string())
}
