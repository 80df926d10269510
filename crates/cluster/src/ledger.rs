//! The ledger: which candidates of which job are tested, on disk.
//!
//! It is the truth about a search. A range is written once, however often it is reported; ranges that touch are one row, so a
//! search has few rows. A job is kept after its end, so that the next server that gets the same request goes on from there.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::error::ClusterError;
use crate::protocol::CoordinatorId;
use crate::ranges::RangeSet;
use crate::spec::JobId;

/// Marks the files, as <https://www.sqlite.org/fileformat2.html#application_id> proposes: "kclu".
const APPLICATION: i32 = 0x6b63_6c75;
const VERSION: i32 = 1;
/// How long to wait for a server that is ending.
const BUSY: Duration = Duration::from_secs(1);
/// The most jobs that are kept; those that were begun the longest ago are dropped first.
const MOST_JOBS: i64 = 10_000;
/// Numbers are stored with their sign bit inverted, so that SQLite's order is theirs.
const SCHEMA: &str = "
    CREATE TABLE coordinator (name INTEGER NOT NULL) STRICT;
    CREATE TABLE job (id BLOB PRIMARY KEY, found INTEGER, begun INTEGER NOT NULL) STRICT;
    CREATE INDEX job_by_begin ON job (begun);
    CREATE TABLE tested (job BLOB NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, PRIMARY KEY (job, start))
        STRICT, WITHOUT ROWID;
";

/// What is known of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Candidates that are not behind the digest.
    pub tested: RangeSet,
    /// The candidate behind the digest.
    pub found: Option<u64>,
}

/// A change of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRecord {
    /// The job.
    pub job: JobId,
    /// Candidates that are not behind the digest.
    pub tested: Vec<Range<u64>>,
    /// The candidate behind the digest.
    pub found: Option<u64>,
}

/// A ledger, open for one server.
#[derive(Debug)]
pub struct Ledger {
    database: Connection,
    name: CoordinatorId,
}

impl Ledger {
    /// Opens a file for this process alone, and creates it if it does not exist. `fresh` is the name of the coordinator in a new
    /// file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, is another program's, or another server has it open.
    pub fn open(path: &Path, fresh: CoordinatorId) -> Result<Self, ClusterError> {
        let failed = |reason: String| ClusterError::Ledger { path: path.to_owned(), reason };
        create(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed("its folder does not exist; create it".into()),
            _ => failed(error.to_string()),
        })?;
        Self::prepare(path, fresh).map_err(|error| {
            let is_busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
            failed(match is_busy {
                true => "another server uses it; give each server its own with --cluster-ledger".into(),
                false => error.to_string(),
            })
        })
    }

    /// A ledger that ends with this process.
    ///
    /// # Errors
    /// Fails if there is no memory.
    pub fn in_memory(fresh: CoordinatorId) -> Result<Self, ClusterError> {
        let path = Path::new(":memory:");
        let failed = |error: rusqlite::Error| ClusterError::Ledger {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        Self::prepare(path, fresh).map_err(failed)
    }

    fn prepare(path: &Path, fresh: CoordinatorId) -> rusqlite::Result<Self> {
        let mut database = Connection::open(path)?;
        database.busy_timeout(BUSY)?;
        database.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA trusted_schema = OFF",
        )?;
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i32>(0));
        if number("SELECT count(*) FROM sqlite_schema")? == 0 {
            transaction.execute_batch(SCHEMA)?;
            transaction.execute("INSERT INTO coordinator VALUES (?)", [stored(fresh.0)])?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        } else if number("PRAGMA application_id")? != APPLICATION || number("PRAGMA user_version")? != VERSION
        {
            return Err(rusqlite::Error::InvalidParameterName(
                "the file is not a ledger of this version of kendall; name another file".into(),
            ));
        }
        let name = transaction.query_row("SELECT name FROM coordinator", [], |row| row.get(0))?;
        transaction.commit()?;
        Ok(Self { database, name: CoordinatorId(number_of(name)) })
    }

    /// The name of the coordinator, always the same for a file.
    pub fn name(&self) -> CoordinatorId {
        self.name
    }

    /// Begins a job and returns what is known of it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn begin(&mut self, job: JobId) -> rusqlite::Result<LedgerEntry> {
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let last: i64 =
            transaction.query_row("SELECT coalesce(max(begun), 0) FROM job", [], |row| row.get(0))?;
        transaction.execute(
            "INSERT INTO job VALUES (?1, NULL, ?2) ON CONFLICT DO UPDATE SET begun = ?2",
            params![job.0, last + 1],
        )?;
        let old = "SELECT id FROM job ORDER BY begun DESC LIMIT -1 OFFSET ?";
        transaction.execute(&format!("DELETE FROM tested WHERE job IN ({old})"), [MOST_JOBS])?;
        transaction.execute(&format!("DELETE FROM job WHERE id IN ({old})"), [MOST_JOBS])?;
        let entry = entry(&transaction, job)?;
        transaction.commit()?;
        Ok(entry)
    }

    /// What is known of a job.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn entry(&mut self, job: JobId) -> rusqlite::Result<LedgerEntry> {
        let transaction = self.database.transaction()?;
        entry(&transaction, job)
    }

    /// Writes changes, all or none. They are on disk when this returns.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn record(&mut self, records: &[LedgerRecord]) -> rusqlite::Result<()> {
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for LedgerRecord { job, tested, found } in records {
            for range in tested.iter().filter(|range| !range.is_empty()) {
                insert(&transaction, *job, range.clone())?;
            }
            if let Some(value) = found {
                transaction
                    .prepare_cached("UPDATE job SET found = ?2 WHERE id = ?1")?
                    .execute(params![job.0, stored(*value)])?;
            }
        }
        transaction.commit()
    }

    /// Makes writes fail, as a full disk does, or succeed again.
    #[cfg(test)]
    pub(crate) fn set_writable(&self, is_writable: bool) {
        self.database.pragma_update(None, "query_only", !is_writable).expect("it is a setting of SQLite");
    }
}

/// Adds a range to those of a job, as one row with all that touch it.
fn insert(transaction: &Transaction<'_>, job: JobId, range: Range<u64>) -> rusqlite::Result<()> {
    let (mut start, mut end) = (range.start, range.end);
    let mut last = transaction.prepare_cached(
        "SELECT start, stop FROM tested WHERE job = ?1 AND start <= ?2 ORDER BY start DESC LIMIT 1",
    )?;
    let mut delete = transaction.prepare_cached("DELETE FROM tested WHERE job = ?1 AND start = ?2")?;
    loop {
        let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: Option<(i64, i64)> = last.query_row(params![job.0, stored(end)], pair).optional()?;
        let Some((other_start, other_end)) = found else { break };
        if number_of(other_end) < start {
            break;
        }
        delete.execute(params![job.0, other_start])?;
        start = start.min(number_of(other_start));
        end = end.max(number_of(other_end));
    }
    transaction.prepare_cached("INSERT INTO tested VALUES (?1, ?2, ?3)")?.execute(params![
        job.0,
        stored(start),
        stored(end)
    ])?;
    Ok(())
}

fn entry(transaction: &Transaction<'_>, job: JobId) -> rusqlite::Result<LedgerEntry> {
    let found: Option<Option<i64>> = transaction
        .query_row("SELECT found FROM job WHERE id = ?", params![job.0], |row| row.get(0))
        .optional()?;
    let mut statement = transaction.prepare_cached("SELECT start, stop FROM tested WHERE job = ?")?;
    let rows = statement.query_map(params![job.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut tested = RangeSet::default();
    for row in rows {
        let (start, end) = row?;
        tested.insert(number_of(start)..number_of(end));
    }
    Ok(LedgerEntry { tested, found: found.flatten().map(number_of) })
}

/// Creates an empty file that only its owner can read.
fn create(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(0o600)) }
}

fn stored(number: u64) -> i64 {
    (number ^ 1 << 63) as i64
}

fn number_of(stored: i64) -> u64 {
    stored as u64 ^ 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::iter::once;

    const JOB: JobId = JobId([7; 16]);

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.db"), CoordinatorId(u64::MAX - 1)).unwrap();
        (folder, ledger)
    }

    fn record(job: JobId, tested: impl Iterator<Item = Range<u64>>, found: Option<u64>) -> LedgerRecord {
        LedgerRecord { job, tested: tested.collect(), found }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// Whatever overlaps and however often, the ledger holds the union, in as few rows as possible.
        #[test]
        fn the_ledger_holds_each_range_once(
            ranges in prop::collection::vec((0u64..200, 0u64..30, any::<bool>()), 1..60),
        ) {
            let (folder, mut ledger) = ledger();
            ledger.begin(JOB).unwrap();
            let mut expected = RangeSet::default();
            for (start, width, is_high) in ranges {
                let offset = if is_high { (1 << 63) - 100 } else { 0 };
                let range = offset + start..offset + start + width;
                expected.insert(range.clone());
                ledger.record(&[record(JOB, once(range), None)]).unwrap();
            }
            prop_assert_eq!(&ledger.entry(JOB).unwrap().tested, &expected);
            let rows: i64 = ledger.database.query_row("SELECT count(*) FROM tested", [], |row| row.get(0)).unwrap();
            prop_assert_eq!(rows as usize, expected.parts());
            drop(ledger);
            let mut again = Ledger::open(&folder.path().join("ledger.db"), CoordinatorId(1)).unwrap();
            prop_assert_eq!(again.begin(JOB).unwrap().tested, expected);
            prop_assert_eq!(again.name(), CoordinatorId(u64::MAX - 1));
        }
    }

    #[test]
    fn finds_and_other_jobs_are_kept_apart() {
        let (_folder, mut ledger) = ledger();
        let other = JobId([8; 16]);
        assert_eq!(ledger.begin(JOB).unwrap(), LedgerEntry::default());
        ledger.begin(other).unwrap();
        ledger
            .record(&[record(JOB, once(0..u64::MAX), Some(u64::MAX)), record(other, once(3..4), None)])
            .unwrap();
        let entry = ledger.begin(JOB).unwrap();
        assert_eq!((entry.found, entry.tested.candidates()), (Some(u64::MAX), u64::MAX));
        assert_eq!(ledger.begin(other).unwrap(), LedgerEntry { tested: RangeSet::of(3..4), found: None });
    }

    #[test]
    fn a_ledger_has_one_server() {
        let (folder, ledger) = ledger();
        let path = folder.path().join("ledger.db");
        let error = Ledger::open(&path, CoordinatorId(1)).unwrap_err().to_string();
        assert!(error.contains("another server uses it"), "{error}");
        drop(ledger);
        Ledger::open(&path, CoordinatorId(1)).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_of_another_program_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        let error = Ledger::open(&path, CoordinatorId(1)).unwrap_err().to_string();
        assert!(error.contains("not a ledger"), "{error}");
        let error =
            Ledger::open(&folder.path().join("missing/ledger.db"), CoordinatorId(1)).unwrap_err().to_string();
        assert!(error.contains("its folder does not exist"), "{error}");
    }

    #[test]
    fn the_oldest_jobs_are_dropped() {
        let (_folder, mut ledger) = ledger();
        ledger.begin(JOB).unwrap();
        ledger.record(&[record(JOB, once(1..2), None)]).unwrap();
        let many = format!(
            "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_JOBS}) \
             INSERT INTO job SELECT randomblob(16), NULL, 100 + i FROM n"
        );
        ledger.database.execute_batch(&many).unwrap();
        ledger.begin(JobId([9; 16])).unwrap();
        assert_eq!(ledger.entry(JOB).unwrap(), LedgerEntry::default());
        let jobs: i64 = ledger.database.query_row("SELECT count(*) FROM job", [], |row| row.get(0)).unwrap();
        assert_eq!(jobs, MOST_JOBS);
    }
}
