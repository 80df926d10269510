//! The file: its permissions, its schema, and its connections.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rusqlite::{Connection as Database, OpenFlags, TransactionBehavior};

use super::BUSY;
use crate::error::StoreError;
use crate::schema;
use crate::store_url::folder_of;

/// Marks the files of this store, as <https://www.sqlite.org/fileformat2.html#application_id> proposes: "kacc".
const APPLICATION: i32 = 0x6b61_6363;

/// A step upgrades a schema from the previous version.
///
/// A table with row ids and an index of names: new rows go to the end of the table, so that an insert dirties one page of a
/// small index, and not one of a table that holds the credentials.
const STEPS: [&str; 1] =
    ["CREATE TABLE accounts (name TEXT NOT NULL UNIQUE, credential BLOB NOT NULL) STRICT"];

/// Creates the file if it does not exist, for its owner alone, and brings its schema up to date.
pub(super) fn prepare(path: &Path, store: &str) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::Open { store: store.to_owned(), reason };
    create(path).map_err(|error| failed(open_error(path, &error)))?;
    let mut database = connect(path).map_err(|error| failed(error.to_string()))?;
    migrate(&mut database, store, &STEPS)
}

/// Creates an empty file that only its owner can read. The log and its index take their permissions from it.
fn create(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(0o600)) }
}

fn open_error(path: &Path, error: &io::Error) -> String {
    let folder = folder_of(path);
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {}; create it", folder.display()),
        _ => error.to_string(),
    }
}

/// Opens a connection that flushes every commit.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Database> {
    let database =
        Database::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.busy_timeout(BUSY)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF",
    )?;
    Ok(database)
}

/// Applies the steps that the file lacks, all or none.
fn migrate(database: &mut Database, store: &str, steps: &[&str]) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::Open { store: store.to_owned(), reason };
    let broken = |error: rusqlite::Error| failed(error.to_string());
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
    let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(broken);
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    if !is_empty && number("PRAGMA application_id")? != APPLICATION {
        return Err(failed("the file is a database of another program; name another file".to_owned()));
    }
    let found = u32::try_from(number("PRAGMA user_version")?).unwrap_or(u32::MAX);
    let pending = schema::pending(store, steps, found)?;
    if pending.is_empty() {
        return Ok(());
    }
    for step in pending {
        transaction.execute_batch(step).map_err(broken)?;
    }
    let version = steps.len();
    let marks = format!("PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION}");
    transaction.execute_batch(&marks).map_err(broken)?;
    transaction.commit().map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "sqlite:test";

    fn database() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        create(&path).unwrap();
        let database = connect(&path).unwrap();
        (folder, database)
    }

    #[test]
    fn an_older_schema_gets_the_later_steps_alone() {
        let (_folder, mut database) = database();
        let first = "CREATE TABLE accounts (name TEXT)";
        migrate(&mut database, NAME, &[first]).unwrap();
        database.execute("INSERT INTO accounts VALUES ('ada')", []).unwrap();
        let second = "ALTER TABLE accounts ADD COLUMN note TEXT DEFAULT 'none'";
        migrate(&mut database, NAME, &[first, second]).unwrap();
        migrate(&mut database, NAME, &[first, second]).unwrap();
        let note = database.query_row("SELECT note FROM accounts WHERE name = 'ada'", [], |row| row.get(0));
        assert_eq!(note, Ok("none".to_owned()));
        let newer = StoreError::NewerSchema { store: NAME.to_owned(), found: 2, known: 1 };
        assert_eq!(migrate(&mut database, NAME, &[first]), Err(newer));
    }

    #[test]
    fn a_step_that_fails_leaves_the_schema_as_it_was() {
        let (_folder, mut database) = database();
        let steps = ["CREATE TABLE accounts (name TEXT)", "CREATE NONSENSE"];
        assert!(migrate(&mut database, NAME, &steps).is_err());
        let tables = database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
        assert_eq!(tables, Ok(0));
    }

    #[test]
    fn the_files_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        prepare(&path, NAME).unwrap();
        let database = connect(&path).unwrap();
        database.execute("INSERT INTO accounts VALUES ('ada', x'00')", []).unwrap();
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 3, "the file, its log and the log's index");
        for file in files {
            let mode = file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.path().display());
        }
    }

    #[test]
    fn a_file_of_another_program_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        Database::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        let error = prepare(&path, NAME).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        let error = prepare(&folder.path().join("missing/accounts.db"), NAME).unwrap_err().to_string();
        assert!(error.contains("there is no folder"), "{error}");
        let text = folder.path().join("notes.txt");
        fs::write(&text, "not a database, but long enough to be read as the head of one, of a hundred bytes at the least, so")
            .unwrap();
        let error = prepare(&text, NAME).unwrap_err().to_string();
        assert!(error.contains("not a database"), "{error}");
    }
}
