//! Redis: one pipeline inserts a batch, a command for each account.
//!
//! All accounts are fields of one hash, so that their number is known and other data in the database is unaffected. Redis
//! has no transaction over the batch, and needs none: it decides and logs each account separately, and sends no reply of
//! a pipeline before the log is flushed (`appendfsync always`).

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo, RedisError, RedisResult};

use crate::account::{Account, Inserted};
use crate::backend::{Access, Connection, Failure, Rows, Runs, Store, failure_text, with_causes};
use crate::error::StoreError;
use crate::schema;
use crate::settings::{Durability, Settings};

/// The hash of all accounts.
const ACCOUNTS: &str = "kendall:accounts";

/// The version of what is stored.
const VERSION: &str = "kendall:accounts:version";

/// A hash needs no step to be created.
const STEPS: [(); 1] = [()];

/// Sets a field if its value is the old one. Redis runs a script without interruption.
const REPLACE: &str = "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end \
     redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) return 1";

/// Deletes a field if its value is the old one.
const REMOVE: &str = "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end \
     return redis.call('HDEL', KEYS[1], ARGV[1])";

/// A database of Redis.
#[derive(Clone, Debug)]
pub(crate) struct Redis {
    client: Client,
    name: String,
    durability: Durability,
}

impl Redis {
    pub(crate) fn new(url: &str, name: String, settings: &Settings) -> Result<Self, StoreError> {
        let wrong = |error: RedisError| StoreError::Url { given: name.clone(), problem: with_causes(&error) };
        let info = url.into_connection_info().map_err(wrong)?;
        let client = Client::open(info).map_err(wrong)?;
        Ok(Self { client, name, durability: settings.durability })
    }

    async fn check_durability(&self, connection: &mut MultiplexedConnection) -> Result<(), StoreError> {
        let wrong = |setting, found, wanted| {
            Err(StoreError::NotDurable { store: self.name.clone(), setting, found, wanted })
        };
        // `yes` for the third suspends the flushes while the log is rewritten.
        let needed = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        for (setting, wanted) in needed {
            let found = self.setting(connection, setting).await?;
            if found != wanted {
                return wrong(setting, found, wanted);
            }
        }
        // All accounts are one key, which is not to be evicted.
        let policy = self.setting(connection, "maxmemory-policy").await?;
        if policy.starts_with("allkeys") && self.setting(connection, "maxmemory").await? != "0" {
            return wrong("maxmemory-policy", policy, "noeviction");
        }
        Ok(())
    }

    async fn setting(
        &self,
        connection: &mut MultiplexedConnection,
        name: &str,
    ) -> Result<String, StoreError> {
        let answer: RedisResult<Vec<String>> =
            redis::cmd("CONFIG").arg("GET").arg(name).query_async(connection).await;
        let found = answer.map_err(|error| self.failed(with_causes(&error)))?;
        Ok(found.into_iter().nth(1).unwrap_or_default())
    }

    fn failed(&self, reason: String) -> StoreError {
        StoreError::Open { store: self.name.clone(), reason }
    }
}

impl Store for Redis {
    type Connection = Open;

    const RUNS: Runs = Runs::InRuntime;
    const MOST_WRITERS: usize = 16;

    async fn prepare(&self) -> Result<(), StoreError> {
        let mut open =
            self.connect(Access::Write).await.map_err(|failure| self.failed(failure_text(failure)))?;
        if self.durability == Durability::Required {
            self.check_durability(&mut open.0).await?;
        }
        let broken = |error: RedisError| self.failed(with_causes(&error));
        let set: bool = redis::cmd("SETNX")
            .arg(VERSION)
            .arg(STEPS.len())
            .query_async(&mut open.0)
            .await
            .map_err(broken)?;
        if !set {
            let found: u32 = redis::cmd("GET").arg(VERSION).query_async(&mut open.0).await.map_err(broken)?;
            schema::pending(&self.name, &STEPS, found)?;
        }
        Ok(())
    }

    async fn connect(&self, _: Access) -> Result<Open, Failure> {
        // The caller limits the times.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connection.map(Open).map_err(|error| Failure::Lost(with_causes(&error)))
    }
}

/// A connection to the database.
pub(crate) struct Open(MultiplexedConnection);

impl Open {
    async fn script(&mut self, script: &str, arguments: &[&[u8]]) -> Result<bool, Failure> {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1).arg(ACCOUNTS).arg(arguments);
        command.query_async(&mut self.0).await.map_err(failure)
    }
}

impl Connection for Open {
    async fn ping(&mut self) -> Result<(), Failure> {
        redis::cmd("PING").query_async::<String>(&mut self.0).await.map(drop).map_err(failure)
    }

    async fn insert_many(&mut self, accounts: &[Account]) -> Result<Rows, Failure> {
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        for account in accounts {
            pipeline.cmd("HSETNX").arg(ACCOUNTS).arg(&account.name).arg(&account.credential);
        }
        let answers: Vec<RedisResult<bool>> = pipeline.query_async(&mut self.0).await.map_err(failure)?;
        let row = |answer: RedisResult<bool>| match answer {
            Ok(true) => Ok(Inserted::New),
            Ok(false) => Ok(Inserted::Taken),
            Err(error) => Err(failure(error)),
        };
        Ok(answers.into_iter().map(row).collect())
    }

    async fn find_many(&mut self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut command = redis::cmd("HMGET");
        command.arg(ACCOUNTS).arg(names);
        command.query_async(&mut self.0).await.map_err(failure)
    }

    async fn replace(&mut self, name: &str, old: &[u8], new: &[u8]) -> Result<bool, Failure> {
        self.script(REPLACE, &[name.as_bytes(), old, new]).await
    }

    async fn remove(&mut self, name: &str, old: &[u8]) -> Result<bool, Failure> {
        self.script(REMOVE, &[name.as_bytes(), old]).await
    }

    async fn count(&mut self) -> Result<u64, Failure> {
        redis::cmd("HLEN").arg(ACCOUNTS).query_async(&mut self.0).await.map_err(failure)
    }

    async fn close(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The meaning of a driver's error for the call.
fn failure(error: RedisError) -> Failure {
    let reason = with_causes(&error);
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => Failure::Refused(reason),
        _ => Failure::Lost(reason),
    }
}
