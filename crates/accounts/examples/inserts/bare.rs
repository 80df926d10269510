//! The same inserts in batches of one size, each in the idiom of its driver, without the store around it.

use std::error::Error;
use std::time::{Duration, Instant};

use kendall_accounts::Account;
use mysql_async::prelude::Queryable;
use redis::aio::MultiplexedConnection;
use rusqlite::params;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::account;

type Failed = Box<dyn Error + Send + Sync>;

/// The number of accounts inserted per second, over several connections of a driver. The schema must exist.
pub(crate) async fn per_second(
    scheme: &str,
    url: &str,
    connections: usize,
    batch: usize,
    span: Duration,
) -> Result<f64, Box<dyn Error>> {
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let url = url.to_owned();
        match scheme {
            "postgres" => {
                drop(tasks.spawn(async move { repeat(Postgres::new(&url).await?, batch, span).await }))
            }
            "mysql" => {
                drop(tasks.spawn(async move { repeat(Mysql::new(&url, batch).await?, batch, span).await }))
            }
            "redis" => drop(tasks.spawn(async move { repeat(Redis::new(&url).await?, batch, span).await })),
            _ => drop(tasks.spawn_blocking(move || sqlite(&url, batch, span))),
        }
    }
    let mut sum = 0.0;
    while let Some(rate) = tasks.join_next().await {
        sum += rate?.map_err(|error| error.to_string())?;
    }
    Ok(sum)
}

/// A driver's connection.
trait Bare {
    /// Inserts accounts with unused names; returns their number.
    fn insert(&mut self, accounts: Vec<Account>) -> impl Future<Output = Result<usize, Failed>> + Send;
}

/// Inserts batch after batch; the first fifth of the time does not count.
async fn repeat(mut bare: impl Bare, batch: usize, span: Duration) -> Result<f64, Failed> {
    let counted_from = Instant::now() + span / 5;
    let until = counted_from + span;
    let mut inserted = 0;
    loop {
        let begun = Instant::now();
        if begun >= until {
            return Ok(inserted as f64 / span.as_secs_f64());
        }
        let new = bare.insert((0..batch).map(|_| account()).collect()).await?;
        inserted += if begun >= counted_from { new } else { 0 };
    }
}

struct Postgres(Client, Statement);

impl Postgres {
    async fn new(url: &str) -> Result<Self, Failed> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let sql = "INSERT INTO kendall_accounts (name, credential) \
                   SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (name) DO NOTHING RETURNING name";
        let statement = client.prepare(sql).await?;
        Ok(Self(client, statement))
    }
}

impl Bare for Postgres {
    async fn insert(&mut self, accounts: Vec<Account>) -> Result<usize, Failed> {
        let names: Vec<&[u8]> = accounts.iter().map(|account| account.name.as_bytes()).collect();
        let credentials: Vec<&[u8]> = accounts.iter().map(|account| account.credential.as_slice()).collect();
        Ok(self.0.query(&self.1, &[&names, &credentials]).await?.len())
    }
}

struct Mysql(mysql_async::Conn, mysql_async::Statement);

impl Mysql {
    async fn new(url: &str, batch: usize) -> Result<Self, Failed> {
        let mut connection = mysql_async::Conn::from_url(url).await?;
        let rows = vec!["(?,?)"; batch].join(",");
        let sql =
            format!("INSERT IGNORE INTO kendall_accounts (name, credential) VALUES {rows} RETURNING name");
        let statement = connection.prep(sql).await?;
        Ok(Self(connection, statement))
    }
}

impl Bare for Mysql {
    async fn insert(&mut self, accounts: Vec<Account>) -> Result<usize, Failed> {
        let values = accounts.into_iter().flat_map(|account| [account.name.into_bytes(), account.credential]);
        let values = values.map(mysql_async::Value::from).collect::<Vec<_>>();
        let names: Vec<Vec<u8>> = self.0.exec(&self.1, values).await?;
        Ok(names.len())
    }
}

struct Redis(MultiplexedConnection);

impl Redis {
    async fn new(url: &str) -> Result<Self, Failed> {
        Ok(Self(redis::Client::open(url)?.get_multiplexed_async_connection().await?))
    }
}

impl Bare for Redis {
    async fn insert(&mut self, accounts: Vec<Account>) -> Result<usize, Failed> {
        let mut pipeline = redis::pipe();
        for account in &accounts {
            pipeline.cmd("HSETNX").arg("kendall:accounts").arg(&account.name).arg(&account.credential);
        }
        let new: Vec<bool> = pipeline.query_async(&mut self.0).await?;
        Ok(new.into_iter().filter(|new| *new).count())
    }
}

struct Sqlite(rusqlite::Connection);

impl Bare for Sqlite {
    async fn insert(&mut self, accounts: Vec<Account>) -> Result<usize, Failed> {
        let transaction = self.0.unchecked_transaction()?;
        let mut new = 0;
        for account in accounts {
            let sql = "INSERT INTO accounts VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
            new += transaction.prepare_cached(sql)?.execute(params![account.name, account.credential])?;
        }
        transaction.commit()?;
        Ok(new)
    }
}

fn sqlite(url: &str, batch: usize, span: Duration) -> Result<f64, Failed> {
    let database = rusqlite::Connection::open(url.trim_start_matches("sqlite:"))?;
    database.execute_batch("PRAGMA synchronous = FULL")?;
    // This database has no writer queue.
    tokio::runtime::Handle::current().block_on(repeat(Sqlite(database), batch, span))
}
