//! Servers that are down, silent, unsafe or newer.

use std::time::Duration;

use kendall_accounts::{Accounts, Durability, Inserted, Settings, StoreError, StoreUrl};
use kendall_testbed::{Database, DatabaseKind, free_port};

use crate::crash::{read, wait_for};
use crate::peers::{Peer, account, open, run};

/// A write that a server has received but not answered may be executed later: it must not be retried.
#[test]
fn a_silent_server_makes_the_outcome_unknown() {
    let Some(database) = Database::start(DatabaseKind::Redis, &[]) else { return };
    run(async {
        let url = database.url(0).parse().unwrap();
        let settings =
            Settings { connections: 1, answer_within: Duration::from_millis(500), ..Settings::default() };
        let accounts = open(&url, settings).await;
        database.pause();
        let outcome = accounts.insert(account("ada")).await;
        assert!(matches!(outcome, Err(StoreError::Unknown { .. })), "{outcome:?}");
        let outcome = accounts.find("ada").await;
        assert!(matches!(outcome, Err(StoreError::Unavailable { .. })), "{outcome:?}");
        database.resume();
        wait_for(&accounts).await;
        // Redis finds the insert in its socket, and executes it.
        let mut inserted = accounts.insert(account("ada")).await;
        while let Err(StoreError::Unavailable { .. }) = inserted {
            inserted = accounts.insert(account("ada")).await;
        }
        assert_eq!(inserted, Ok(Inserted::Taken));
        let found = read(async || accounts.find("ada").await).await;
        assert_eq!(found, Some(account("ada").credential));
        accounts.close().await.unwrap();
    });
}

#[test]
fn a_restart_between_calls_is_not_noticed() {
    for kind in [DatabaseKind::Postgres, DatabaseKind::Mariadb, DatabaseKind::Redis] {
        let Some(mut database) = Database::start(kind, &[]) else { continue };
        run(async {
            let url: StoreUrl = database.url(0).parse().unwrap();
            let accounts = open(&url, Settings { connections: 1, ..Settings::default() }).await;
            assert_eq!(accounts.insert(account("ada")).await, Ok(Inserted::New));
            database.kill();
            database.start_again();
            // Until the server has read its log.
            open(&url, Settings::default()).await.close().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1100)).await;
            assert_eq!(accounts.insert(account("bob")).await, Ok(Inserted::New), "{kind:?}");
            assert_eq!(accounts.find("ada").await, Ok(Some(account("ada").credential)), "{kind:?}");
            accounts.close().await.unwrap();
        });
    }
}

#[test]
fn a_server_that_is_down_stores_nothing_and_an_error_says_so() {
    let Some(mut database) = Database::start(DatabaseKind::Redis, &[]) else { return };
    run(async {
        let accounts = open(&database.url(0).parse().unwrap(), Settings::default()).await;
        database.kill();
        // The first calls may find the broken connections.
        while !matches!(accounts.insert(account("ada")).await, Err(StoreError::Unavailable { .. })) {}
        database.start_again();
        wait_for(&accounts).await;
        assert_eq!(read(async || accounts.find("ada").await).await, None);
        accounts.close().await.unwrap();
    });
}

#[test]
fn a_database_that_loses_accounts_is_not_opened() {
    for (kind, unsafe_setting, setting) in [
        (DatabaseKind::Postgres, ["-c", "synchronous_commit=off"].as_slice(), "synchronous_commit"),
        (DatabaseKind::Postgres, &["-c", "fsync=off"], "fsync"),
        (DatabaseKind::Mariadb, &["--innodb-flush-log-at-trx-commit=2"], "innodb_flush_log_at_trx_commit"),
        (DatabaseKind::Redis, &["--appendfsync", "everysec"], "appendfsync"),
        (DatabaseKind::Mariadb, &["--log-bin=log", "--sync-binlog=0"], "sync_binlog"),
        (DatabaseKind::Redis, &["--appendonly", "no"], "appendonly"),
        (DatabaseKind::Redis, &["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync-on-rewrite"),
        (
            DatabaseKind::Redis,
            &["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
            "maxmemory-policy",
        ),
    ] {
        let Some(database) = Database::start(kind, unsafe_setting) else { continue };
        run(async {
            let url = database.url(0).parse().unwrap();
            let any = Settings { durability: Durability::AsConfigured, ..Settings::default() };
            open(&url, any).await.close().await.unwrap();
            let error = Accounts::open(&url, Settings::default()).await.unwrap_err();
            let expected =
                matches!(&error, StoreError::NotDurable { setting: found, .. } if *found == setting);
            assert!(expected, "{error}");
        });
    }
}

#[test]
fn a_database_that_keeps_accounts_in_another_way_is_opened() {
    for (kind, settings) in [
        (DatabaseKind::Mariadb, ["--log-bin=log", "--sync-binlog=1"].as_slice()),
        (DatabaseKind::Mariadb, &["--log-bin=log", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=3"]),
        (DatabaseKind::Redis, &["--maxmemory-policy", "allkeys-lru"]),
        (DatabaseKind::Redis, &["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"]),
    ] {
        let Some(database) = Database::start(kind, settings) else { continue };
        let url = database.url(0).parse().unwrap();
        run(async { open(&url, Settings::default()).await.close().await.unwrap() });
    }
}

#[test]
fn a_newer_schema_is_an_error() {
    run(async {
        let peer = Peer::sqlite();
        let url = peer.url(0);
        open(&url, Settings::default()).await.close().await.unwrap();
        let path = url.to_string();
        let database = rusqlite::Connection::open(path.strip_prefix("sqlite:").unwrap()).unwrap();
        database.execute_batch("PRAGMA user_version = 7").unwrap();
        drop(database);
        expect_newer(&url).await;
    });
    if let Some(database) = Database::start(DatabaseKind::Postgres, &[]) {
        run(async {
            let url = opened_once(&database).await;
            let (client, connection) =
                tokio_postgres::connect(&database.url(0), tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute("UPDATE kendall_accounts_schema SET version = 7").await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
            expect_newer(&url).await;
        });
    }
    if let Some(database) = Database::start(DatabaseKind::Mariadb, &[]) {
        run(async {
            use mysql_async::prelude::Queryable;
            let url = opened_once(&database).await;
            let mut connection = mysql_async::Conn::from_url(database.url(0)).await.unwrap();
            connection.query_drop("UPDATE kendall_accounts_schema SET version = 7").await.unwrap();
            connection.disconnect().await.unwrap();
            expect_newer(&url).await;
        });
    }
    if let Some(database) = Database::start(DatabaseKind::Redis, &[]) {
        run(async {
            let url = opened_once(&database).await;
            let client = redis::Client::open(database.url(0)).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let mut command = redis::cmd("SET");
            command.arg("kendall:accounts:version").arg(7);
            command.exec_async(&mut connection).await.unwrap();
            expect_newer(&url).await;
        });
    }
}

/// The server's first database, once a store has created its schema there.
async fn opened_once(database: &Database) -> StoreUrl {
    let url = database.url(0).parse().unwrap();
    open(&url, Settings::default()).await.close().await.unwrap();
    url
}

async fn expect_newer(url: &StoreUrl) {
    let error = Accounts::open(url, Settings::default()).await.unwrap_err();
    let store = url.to_string();
    assert_eq!(error, StoreError::NewerSchema { store, found: 7, known: 1 });
}

#[test]
fn an_open_error_hides_the_password() {
    run(async {
        let port = free_port();
        for scheme in ["postgres", "mysql", "redis"] {
            let url = format!("{scheme}://ada:s3cret@127.0.0.1:{port}/0").parse().unwrap();
            let error = Accounts::open(&url, Settings::default()).await.unwrap_err();
            assert!(matches!(error, StoreError::Open { .. }), "{error}");
            assert!(
                error.to_string().contains("refused") && !error.to_string().contains("s3cret"),
                "{error}"
            );
        }
        for url in [
            "postgres://ada@localhost/chat?sslmode=require",
            "postgres://ada@localhost:port/chat",
            "mysql://ada@localhost/chat?require_ssl=true",
            "mysql://ada@localhost",
        ] {
            let error = Accounts::open(&url.parse().unwrap(), Settings::default()).await.unwrap_err();
            assert!(matches!(error, StoreError::Url { .. }), "{url}: {error}");
        }
        let url = "sqlite:/missing/folder/chat.db".parse().unwrap();
        let error = Accounts::open(&url, Settings::default()).await.unwrap_err();
        assert!(error.to_string().contains("there is no folder /missing/folder"), "{error}");
        let many = Settings { connections: 17, ..Settings::default() };
        let error = Accounts::open(&url, many).await.unwrap_err();
        assert_eq!(error.to_string(), "connections is 17; it must be 1 to 16");
    });
}
