//! PostgreSQL: one statement inserts a batch, from two arrays.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Statement};

use crate::account::{Account, Inserted};
use crate::backend::{Access, Connection, Failure, Rows, Runs, Store, failure_text, with_causes};
use crate::error::StoreError;
use crate::schema;
use crate::settings::{Durability, Settings};

/// A step upgrades a schema from the previous version. Names are bytes, so that neither the database's encoding nor its
/// collation affects which names are equal.
const STEPS: [&str; 1] =
    ["CREATE TABLE kendall_accounts (name bytea PRIMARY KEY, credential bytea NOT NULL)"];

/// A number for `pg_advisory_xact_lock` that no other program is likely to use: "kaccount".
const LOCK: i64 = 0x6b61_6363_6f75_6e74;

const INSERT: &str = "INSERT INTO kendall_accounts (name, credential) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
     ON CONFLICT (name) DO NOTHING RETURNING name";
const FIND: &str = "SELECT name, credential FROM kendall_accounts WHERE name = ANY($1::bytea[])";
const REPLACE: &str = "UPDATE kendall_accounts SET credential = $3 WHERE name = $1 AND credential = $2";
const REMOVE: &str = "DELETE FROM kendall_accounts WHERE name = $1 AND credential = $2";

/// A database of PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    config: Config,
    name: String,
    durability: Durability,
}

impl Postgres {
    pub(crate) fn new(url: &str, name: String, settings: &Settings) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::Url { given: name.clone(), problem };
        let mut config = Config::from_str(url).map_err(|error| wrong(with_causes(&error)))?;
        match config.get_ssl_mode() {
            SslMode::Disable | SslMode::Prefer => {}
            _ => return Err(wrong("sslmode asks for TLS, which is not supported".to_owned())),
        }
        config.ssl_mode(SslMode::Disable).keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("kendall");
        }
        Ok(Self { config, name, durability: settings.durability })
    }

    async fn client(&self) -> Result<Client, Failure> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(lost)?;
        // Ends when the client is dropped or the connection is lost; the client's calls report either.
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    /// Applies the steps that the database lacks, all or none.
    async fn migrate(&self, client: &mut Client) -> Result<(), Unprepared> {
        if version(client).await?.is_some_and(|found| usize::try_from(found) == Ok(STEPS.len())) {
            // A user without the right to change the schema can use one that is up to date.
            return Ok(());
        }
        let transaction = client.transaction().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        transaction
            .batch_execute("CREATE TABLE IF NOT EXISTS kendall_accounts_schema (version int NOT NULL)")
            .await?;
        let row = transaction
            .query_one("SELECT coalesce(max(version), 0) FROM kendall_accounts_schema", &[])
            .await?;
        let found = u32::try_from(row.get::<_, i32>(0)).unwrap_or(u32::MAX);
        for step in schema::pending(&self.name, &STEPS, found)? {
            transaction.batch_execute(step).await?;
        }
        let now = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
        transaction.execute("DELETE FROM kendall_accounts_schema", &[]).await?;
        transaction.execute("INSERT INTO kendall_accounts_schema VALUES ($1)", &[&now]).await?;
        Ok(transaction.commit().await?)
    }

    /// Checks whether a crash of the server could lose writes.
    async fn check_durability(&self, client: &Client) -> Result<(), Unprepared> {
        for (setting, is_durable) in [
            ("fsync", (|value: &str| value == "on") as fn(&str) -> bool),
            ("full_page_writes", |value| value == "on"),
            ("synchronous_commit", |value| value != "off"),
        ] {
            let row = client.query_one("SELECT current_setting($1)", &[&setting]).await?;
            let found: String = row.get(0);
            if !is_durable(&found) {
                return Err(Unprepared::Store(StoreError::NotDurable {
                    store: self.name.clone(),
                    setting,
                    found,
                    wanted: "on",
                }));
            }
        }
        Ok(())
    }
}

/// The reason why a database cannot be used.
enum Unprepared {
    Driver(tokio_postgres::Error),
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Unprepared {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Unprepared {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The version of the schema, if there is one.
async fn version(client: &Client) -> Result<Option<i32>, tokio_postgres::Error> {
    let row = client.query_one("SELECT to_regclass('kendall_accounts_schema') IS NOT NULL", &[]).await?;
    if !row.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM kendall_accounts_schema", &[]).await?;
    Ok(row.map(|row| row.get(0)))
}

impl Store for Postgres {
    type Connection = Open;

    const RUNS: Runs = Runs::InRuntime;
    const MOST_WRITERS: usize = 16;

    async fn prepare(&self) -> Result<(), StoreError> {
        let failed = |reason| StoreError::Open { store: self.name.clone(), reason };
        let explained = |error| match error {
            Unprepared::Driver(error) => failed(with_causes(&error)),
            Unprepared::Store(error) => error,
        };
        let mut client = self.client().await.map_err(|failure| failed(failure_text(failure)))?;
        if self.durability == Durability::Required {
            self.check_durability(&client).await.map_err(explained)?;
        }
        self.migrate(&mut client).await.map_err(explained)
    }

    async fn connect(&self, access: Access) -> Result<Open, Failure> {
        let client = self.client().await?;
        let statements = match access {
            Access::Write => [INSERT, REPLACE, REMOVE].as_slice(),
            Access::Read => [FIND].as_slice(),
        };
        let mut prepared = Vec::with_capacity(statements.len());
        for sql in statements {
            prepared.push(client.prepare(sql).await.map_err(failure)?);
        }
        Ok(Open { client, prepared })
    }
}

/// A connection to the database.
#[derive(Debug)]
pub(crate) struct Open {
    client: Client,
    /// The prepared statements of its access, in order.
    prepared: Vec<Statement>,
}

impl Open {
    /// Runs a prepared statement that changes at most one account; returns whether it changed one.
    async fn changed(
        &self,
        place: usize,
        name: &str,
        old: &[u8],
        new: Option<&[u8]>,
    ) -> Result<bool, Failure> {
        let statement = self.prepared.get(place).ok_or_else(reads_only)?;
        let name = name.as_bytes();
        let rows = match new {
            Some(new) => self.client.execute(statement, &[&name, &old, &new]).await,
            None => self.client.execute(statement, &[&name, &old]).await,
        };
        Ok(rows.map_err(failure)? == 1)
    }
}

impl Connection for Open {
    async fn ping(&mut self) -> Result<(), Failure> {
        self.client.simple_query("").await.map(drop).map_err(failure)
    }

    async fn insert_many(&mut self, accounts: &[Account]) -> Result<Rows, Failure> {
        let names: Vec<&[u8]> = accounts.iter().map(|account| account.name.as_bytes()).collect();
        let credentials: Vec<&[u8]> = accounts.iter().map(|account| account.credential.as_slice()).collect();
        let statement = self.prepared.first().ok_or_else(reads_only)?;
        let rows = self.client.query(statement, &[&names, &credentials]).await.map_err(failure)?;
        if rows.len() == accounts.len() {
            return Ok(vec![Ok(Inserted::New); accounts.len()]);
        }
        let inserted: HashSet<&[u8]> = rows.iter().map(|row| row.get(0)).collect();
        let row = |name: &&[u8]| if inserted.contains(name) { Inserted::New } else { Inserted::Taken };
        Ok(names.iter().map(|name| Ok(row(name))).collect())
    }

    async fn find_many(&mut self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let wanted: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let statement = self.prepared.first().ok_or_else(reads_only)?;
        let rows = self.client.query(statement, &[&wanted]).await.map_err(failure)?;
        let credentials: HashMap<&[u8], &[u8]> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        Ok(wanted.iter().map(|name| credentials.get(name).map(|bytes| bytes.to_vec())).collect())
    }

    async fn replace(&mut self, name: &str, old: &[u8], new: &[u8]) -> Result<bool, Failure> {
        self.changed(1, name, old, Some(new)).await
    }

    async fn remove(&mut self, name: &str, old: &[u8]) -> Result<bool, Failure> {
        self.changed(2, name, old, None).await
    }

    async fn count(&mut self) -> Result<u64, Failure> {
        let row =
            self.client.query_one("SELECT count(*) FROM kendall_accounts", &[]).await.map_err(failure)?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    async fn close(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The error of a write on a connection for reading, or the reverse: a bug in this crate.
fn reads_only() -> Failure {
    Failure::Refused("the connection has no such statement".to_owned())
}

/// The meaning of a driver's error for the call (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
fn failure(error: tokio_postgres::Error) -> Failure {
    let reason = with_causes(&error);
    let Some(answer) = error.as_db_error() else { return Failure::Lost(reason) };
    if *answer.code() == SqlState::T_R_SERIALIZATION_FAILURE
        || *answer.code() == SqlState::T_R_DEADLOCK_DETECTED
    {
        Failure::Conflict(reason)
    } else if matches!(answer.severity(), "FATAL" | "PANIC") || answer.code().code().starts_with("57P") {
        Failure::Lost(reason)
    } else {
        Failure::Refused(reason)
    }
}

fn lost(error: tokio_postgres::Error) -> Failure {
    Failure::Lost(with_causes(&error))
}
