//! MariaDB: one statement inserts a batch.
//!
//! The statement is text, with every value as a hexadecimal literal: those need no escaping in any SQL mode, and a text of
//! any number of rows needs no preparation, while each number of rows would need a separate prepared statement. MySQL
//! lacks `RETURNING`, by which an insert reports which names were free.

use std::collections::{HashMap, HashSet};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};

use crate::account::{Account, Inserted, MOST_CREDENTIAL_BYTES, MOST_NAME_BYTES};
use crate::backend::{Access, Connection, Failure, Rows, Runs, Store, failure_text, with_causes};
use crate::error::StoreError;
use crate::schema;
use crate::settings::{Durability, Settings};

/// The oldest version with `INSERT … RETURNING`.
const OLDEST: (u16, u16, u16) = (10, 5, 0);

/// Errors of the server after which the same call can succeed: a deadlock, and a lock that was not free in time
/// (<https://mariadb.com/kb/en/mariadb-error-code-reference/>).
const CONFLICTS: [u16; 2] = [1213, 1205];

/// Errors of the server that leave the outcome of the call open: shutdown, an aborted query, a killed connection.
const LOSSES: [u16; 4] = [1053, 1317, 1927, 3024];

/// A step upgrades a schema from the previous version. Running it twice must do no harm, because MariaDB commits each
/// change of a schema at once.
fn steps() -> [String; 1] {
    [format!(
        "CREATE TABLE IF NOT EXISTS kendall_accounts (name VARBINARY({MOST_NAME_BYTES}) PRIMARY KEY, \
         credential VARBINARY({MOST_CREDENTIAL_BYTES}) NOT NULL) ENGINE=InnoDB"
    )]
}

/// A database of MariaDB.
#[derive(Clone, Debug)]
pub(crate) struct Mysql {
    opts: Opts,
    name: String,
    durability: Durability,
}

impl Mysql {
    pub(crate) fn new(url: &str, name: String, settings: &Settings) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::Url { given: name.clone(), problem };
        let opts = Opts::from_url(url).map_err(|error| wrong(with_causes(&error)))?;
        if opts.ssl_opts().is_some() {
            return Err(wrong("TLS is not supported".to_owned()));
        }
        if opts.db_name().is_none() {
            return Err(wrong("there is no database".to_owned()));
        }
        // An update to the same bytes counts as one.
        let opts = OptsBuilder::from_opts(opts).client_found_rows(true).into();
        Ok(Self { opts, name, durability: settings.durability })
    }

    async fn check_server(&self, connection: &mut Conn) -> Result<(), Unprepared> {
        let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
        let version = version.unwrap_or_default();
        if !version.contains("MariaDB") || connection.server_version() < OLDEST {
            let reason = format!("the server is {version}, and MariaDB 10.5 or newer is needed");
            return Err(StoreError::Open { store: self.name.clone(), reason }.into());
        }
        if self.durability == Durability::AsConfigured {
            return Ok(());
        }
        let settings = "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog";
        let found: Option<(u8, u8, u64)> = connection.query_first(settings).await?;
        let (setting, found) = match found.unwrap_or_default() {
            (1, 0, _) | (1, _, 1) | (3, ..) => return Ok(()),
            // With a binary log, 1 leaves the flush of a commit to that log:
            // <https://mariadb.com/kb/en/binary-log-group-commit-and-innodb-flushing-performance/>.
            (1, _, found) => ("sync_binlog", found),
            (found, ..) => ("innodb_flush_log_at_trx_commit", found.into()),
        };
        let (store, found) = (self.name.clone(), found.to_string());
        Err(StoreError::NotDurable { store, setting, found, wanted: "1" }.into())
    }

    /// Applies the steps that the database lacks.
    async fn migrate(&self, connection: &mut Conn) -> Result<(), Unprepared> {
        let steps = steps();
        // A user without the right to change the schema can use one that is up to date.
        if version(connection).await?.is_some_and(|found| usize::try_from(found) == Ok(steps.len())) {
            return Ok(());
        }
        // Losing the connection releases it, too.
        let got: Option<Option<u8>> =
            connection.query_first("SELECT GET_LOCK('kendall_accounts', 5)").await?;
        if got.flatten() != Some(1) {
            let reason = "another program is changing its schema; retry later".to_owned();
            return Err(StoreError::Open { store: self.name.clone(), reason }.into());
        }
        let found = version(connection).await?.unwrap_or(0);
        for step in schema::pending(&self.name, &steps, found)? {
            connection.query_drop(step).await?;
        }
        let table = "CREATE TABLE IF NOT EXISTS kendall_accounts_schema \
                     (one TINYINT PRIMARY KEY, version INT UNSIGNED NOT NULL) ENGINE=InnoDB";
        connection.query_drop(table).await?;
        let now = steps.len();
        let note = format!("REPLACE INTO kendall_accounts_schema VALUES (1, {now})");
        connection.query_drop(note).await?;
        Ok(connection.query_drop("DO RELEASE_LOCK('kendall_accounts')").await?)
    }
}

/// The reason why a database cannot be used.
enum Unprepared {
    Driver(Error),
    Store(StoreError),
}

impl From<Error> for Unprepared {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Unprepared {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The version of the schema, if there is one.
async fn version(connection: &mut Conn) -> Result<Option<u32>, Error> {
    let table: Option<u8> = connection
        .query_first(
            "SELECT 1 FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = 'kendall_accounts_schema'",
        )
        .await?;
    match table {
        Some(_) => connection.query_first("SELECT version FROM kendall_accounts_schema").await,
        None => Ok(None),
    }
}

impl Store for Mysql {
    type Connection = Open;

    const RUNS: Runs = Runs::InRuntime;
    const MOST_WRITERS: usize = 16;

    async fn prepare(&self) -> Result<(), StoreError> {
        let failed = |reason| StoreError::Open { store: self.name.clone(), reason };
        let explained = |error| match error {
            Unprepared::Driver(error) => failed(with_causes(&error)),
            Unprepared::Store(error) => error,
        };
        let mut open = self.connect(Access::Write).await.map_err(|failure| failed(failure_text(failure)))?;
        self.check_server(&mut open.0).await.map_err(explained)?;
        self.migrate(&mut open.0).await.map_err(explained)?;
        open.close().await.map_err(|failure| failed(failure_text(failure)))
    }

    async fn connect(&self, _: Access) -> Result<Open, Failure> {
        Conn::new(self.opts.clone()).await.map(Open).map_err(|error| Failure::Lost(with_causes(&error)))
    }
}

/// A connection to the database.
#[derive(Debug)]
pub(crate) struct Open(Conn);

impl Open {
    /// Runs a statement that changes at most one account; returns whether it changed one.
    async fn changed(&mut self, sql: String) -> Result<bool, Failure> {
        self.0.query_drop(sql).await.map_err(failure)?;
        Ok(self.0.affected_rows() == 1)
    }
}

impl Connection for Open {
    async fn ping(&mut self) -> Result<(), Failure> {
        self.0.ping().await.map_err(failure)
    }

    async fn insert_many(&mut self, accounts: &[Account]) -> Result<Rows, Failure> {
        let returned: Vec<Vec<u8>> = self.0.query(insert_text(accounts)).await.map_err(failure)?;
        if returned.len() == accounts.len() {
            return Ok(vec![Ok(Inserted::New); accounts.len()]);
        }
        let inserted: HashSet<&[u8]> = returned.iter().map(Vec::as_slice).collect();
        let row = |account: &Account| match inserted.contains(account.name.as_bytes()) {
            true => Inserted::New,
            false => Inserted::Taken,
        };
        Ok(accounts.iter().map(|account| Ok(row(account))).collect())
    }

    async fn find_many(&mut self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut sql = "SELECT name, credential FROM kendall_accounts WHERE name IN (".to_owned();
        for (place, name) in names.iter().enumerate() {
            sql.push_str(if place == 0 { "" } else { "," });
            push_hex(&mut sql, name.as_bytes());
        }
        sql.push(')');
        let rows: Vec<(Vec<u8>, Vec<u8>)> = self.0.query(sql).await.map_err(failure)?;
        let credentials: HashMap<Vec<u8>, Vec<u8>> = rows.into_iter().collect();
        Ok(names.iter().map(|name| credentials.get(name.as_bytes()).cloned()).collect())
    }

    async fn replace(&mut self, name: &str, old: &[u8], new: &[u8]) -> Result<bool, Failure> {
        let mut sql = "UPDATE kendall_accounts SET credential = ".to_owned();
        push_hex(&mut sql, new);
        push_condition(&mut sql, name, old);
        self.changed(sql).await
    }

    async fn remove(&mut self, name: &str, old: &[u8]) -> Result<bool, Failure> {
        let mut sql = "DELETE FROM kendall_accounts".to_owned();
        push_condition(&mut sql, name, old);
        self.changed(sql).await
    }

    async fn count(&mut self) -> Result<u64, Failure> {
        let count = self.0.query_first("SELECT count(*) FROM kendall_accounts").await.map_err(failure)?;
        Ok(count.unwrap_or_default())
    }

    async fn close(self) -> Result<(), Failure> {
        // The server also closes a connection that ends without notice.
        let _ = self.0.disconnect().await;
        Ok(())
    }
}

/// The statement that inserts a batch and returns the names that were free.
fn insert_text(accounts: &[Account]) -> String {
    let bytes: usize = accounts.iter().map(|account| account.name.len() + account.credential.len()).sum();
    let mut sql = String::with_capacity(100 + 2 * bytes + 10 * accounts.len());
    sql.push_str("INSERT IGNORE INTO kendall_accounts (name, credential) VALUES ");
    for (place, account) in accounts.iter().enumerate() {
        sql.push_str(if place == 0 { "(" } else { ",(" });
        push_hex(&mut sql, account.name.as_bytes());
        sql.push(',');
        push_hex(&mut sql, &account.credential);
        sql.push(')');
    }
    sql.push_str(" RETURNING name");
    sql
}

fn push_condition(sql: &mut String, name: &str, old: &[u8]) {
    sql.push_str(" WHERE name = ");
    push_hex(sql, name.as_bytes());
    sql.push_str(" AND credential = ");
    push_hex(sql, old);
}

/// Appends bytes as a literal, `x'…'`.
fn push_hex(sql: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    sql.push_str("x'");
    for byte in bytes {
        sql.push(DIGITS[usize::from(byte >> 4)]);
        sql.push(DIGITS[usize::from(byte & 15)]);
    }
    sql.push('\'');
}

/// The meaning of a driver's error for the call.
fn failure(error: Error) -> Failure {
    let reason = with_causes(&error);
    match error {
        Error::Server(answer) if CONFLICTS.contains(&answer.code) => Failure::Conflict(reason),
        Error::Server(answer) if !LOSSES.contains(&answer.code) => Failure::Refused(reason),
        _ => Failure::Lost(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_its_literal() {
        let account = Account { name: "o'x\\".to_owned(), credential: vec![0x27, 0x00, 0xff] };
        let sql = insert_text(&[account.clone(), account]);
        let row = "(x'6f27785c',x'2700ff')";
        let columns = "INSERT IGNORE INTO kendall_accounts (name, credential) VALUES ";
        assert_eq!(sql, format!("{columns}{row},{row} RETURNING name"));
    }
}
