//! An acknowledged account survives every kill of the program or the server at any time: 50 kills in all.
//!
//! A kill proves that nothing is acknowledged before it is written, and that half-written data does no harm. It does not
//! prove the flush to the disk, because the kernel outlives the process.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use kendall_accounts::{Accounts, Inserted, Settings, StoreError};
use kendall_testbed::{Database, DatabaseKind, wait_until};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::task::JoinSet;

use crate::peers::{Peer, account, open, run};

/// Names the store and the round of a process that will be killed.
const ROLE: &str = "KENDALL_ACCOUNTS_KILLED";

const CALLERS: usize = 16;

/// When to kill: after this many acknowledgements, and a delay that is shorter than a few batches.
fn instants(seed: u64, kills: usize) -> impl Iterator<Item = (usize, Duration)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..kills)
        .map(move |_| (random.random_range(1..300), Duration::from_micros(random.random_range(0..3000))))
}

#[test]
fn a_killed_program_loses_nothing_from_sqlite() {
    if let Ok(role) = env::var(ROLE) {
        let (url, round) = role.rsplit_once(' ').unwrap();
        return run(write_until_killed(url, round));
    }
    let peer = Peer::sqlite();
    let url = peer.url(0);
    let mut acknowledged = HashSet::new();
    for (round, (acknowledgements, pause)) in instants(1, 20).enumerate() {
        let before = acknowledged.len();
        let mut child = start_writer(&format!("{url} {round}"));
        let lines = BufReader::new(child.stdout.take().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let reader = thread::spawn(move || names(lines, &counter));
        wait_until("the program has stored accounts", || count.load(Ordering::Relaxed) >= acknowledgements);
        thread::sleep(pause);
        child.kill().unwrap();
        child.wait().unwrap();
        // Names in the pipe were acknowledged.
        acknowledged.extend(reader.join().unwrap());
        assert!(acknowledged.len() >= before + acknowledgements);
        run(async {
            let accounts = open(&url, Settings::default()).await;
            check(&accounts, &acknowledged).await;
            assert!(accounts.count().await.unwrap() >= acknowledged.len() as u64);
            accounts.close().await.unwrap();
        });
    }
    let database = rusqlite::Connection::open(url.to_string().strip_prefix("sqlite:").unwrap()).unwrap();
    let integrity = database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(integrity.as_deref(), Ok("ok"));
}

/// Starts this test program again, as the program that is killed.
fn start_writer(role: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["crash::a_killed_program_loses_nothing_from_sqlite", "--exact", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The names in the lines `stored NAME`. A truncated line does not count.
fn names(mut lines: impl BufRead, count: &AtomicUsize) -> Vec<String> {
    let mut names = Vec::new();
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        if let Some(name) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("stored ")) {
            names.push(name.to_owned());
            count.fetch_add(1, Ordering::Relaxed);
        }
        line.clear();
    }
    names
}

/// Inserts without end, and prints the name of each account once it is acknowledged.
async fn write_until_killed(url: &str, round: &str) {
    println!();
    let accounts = open(&url.parse().unwrap(), Settings::default()).await;
    let caller = async |caller: usize| {
        for number in 0.. {
            let name = format!("{round}-{caller}-{number}");
            assert_eq!(accounts.insert(account(&name)).await, Ok(Inserted::New));
            let mut out = std::io::stdout().lock();
            out.write_all(format!("stored {name}\n").as_bytes()).unwrap();
            out.flush().unwrap();
        }
    };
    join_all((0..CALLERS).map(caller)).await;
}

/// Every account that was acknowledged has its credential.
async fn check(accounts: &Accounts, acknowledged: &HashSet<String>) {
    for name in acknowledged {
        let found = read(async || accounts.find(name).await).await;
        assert_eq!(found, Some(account(name).credential), "{name} was acknowledged");
    }
}

#[test]
fn a_killed_postgres_loses_nothing() {
    kill_server(DatabaseKind::Postgres, 2, 10);
}

#[test]
fn a_killed_mariadb_loses_nothing() {
    kill_server(DatabaseKind::Mariadb, 3, 10);
}

#[test]
fn a_killed_redis_loses_nothing() {
    kill_server(DatabaseKind::Redis, 4, 10);
}

/// Kills a server under load repeatedly. One handle survives all kills: it reconnects.
fn kill_server(kind: DatabaseKind, seed: u64, kills: usize) {
    let Some(mut database) = Database::start(kind, &[]) else { return };
    run(async {
        let url = database.url(0).parse().unwrap();
        let accounts = open(&url, Settings::default()).await;
        let mut outcomes = Outcomes::default();
        for (round, (acknowledgements, pause)) in instants(seed, kills).enumerate() {
            let stored = Arc::new(AtomicUsize::new(0));
            let mut callers = JoinSet::new();
            for caller in 0..CALLERS {
                let (accounts, stored) = (accounts.clone(), Arc::clone(&stored));
                callers.spawn(write_until_failed(accounts, format!("{round}-{caller}"), stored));
            }
            wait_until("accounts are stored", || stored.load(Ordering::Relaxed) >= acknowledgements);
            thread::sleep(pause);
            database.kill();
            callers.join_all().await.into_iter().for_each(|more| outcomes.add(more));
            database.start_again();
            wait_for(&accounts).await;
            check(&accounts, &outcomes.acknowledged).await;
            for name in &outcomes.refused {
                let found = read(async || accounts.find(name).await).await;
                assert_eq!(found, None, "{name} must not be stored");
            }
        }
        let count = read(async || accounts.count().await).await;
        assert!(count >= outcomes.acknowledged.len() as u64);
        accounts.close().await.unwrap();
    });
}

/// The answers of callers, by name.
#[derive(Default)]
struct Outcomes {
    acknowledged: HashSet<String>,
    /// The names of errors that exclude that the account was stored.
    refused: Vec<String>,
}

impl Outcomes {
    fn add(&mut self, more: Self) {
        self.acknowledged.extend(more.acknowledged);
        self.refused.extend(more.refused);
    }
}

/// Inserts accounts of new names until the server is gone.
async fn write_until_failed(accounts: Accounts, prefix: String, stored: Arc<AtomicUsize>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for number in 0.. {
        let name = format!("{prefix}-{number}");
        match accounts.insert(account(&name)).await {
            Ok(inserted) => {
                assert_eq!(inserted, Inserted::New, "{name} is not tried twice");
                outcomes.acknowledged.insert(name);
                stored.fetch_add(1, Ordering::Relaxed);
            }
            Err(StoreError::Unknown { .. }) => break,
            Err(error) => {
                assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
                outcomes.refused.push(name);
                break;
            }
        }
    }
    outcomes
}

/// Reads again if the server has lost the connection.
pub(crate) async fn read<T>(call: impl AsyncFn() -> Result<T, StoreError>) -> T {
    loop {
        match call().await {
            Err(StoreError::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            outcome => return outcome.unwrap(),
        }
    }
}

/// Waits until an unreachable store answers again.
pub(crate) async fn wait_for(accounts: &Accounts) {
    while let Err(error) = accounts.count().await {
        assert!(matches!(error, StoreError::Unavailable { .. } | StoreError::Refused { .. }), "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
