//! A registration that was acknowledged is there after a kill under load: of the directory server, and of the database behind a
//! server that goes on. 50 kills in all.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kendall_chat::client::Client;
use kendall_chat::client::security::Security;
use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::protocol::Blame;
use kendall_chat::server::store::{Memory, Store};
use kendall_chat::server::{DirectoryOptions, bind};
use kendall_testbed::{Database, DatabaseKind, tempdir};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::durable::{kept, open};
use crate::serving::{PASSWORD, blame, clients, options, run};

/// Names the folder of a server that is to be killed.
const FOLDER: &str = "KENDALL_CHAT_KILLED";
const KILLS: usize = 20;
const KILLS_OF_DATABASE: usize = 10;
const CLIENTS: usize = 8;
const LISTENS: &str = "listens on ";

#[test]
fn a_killed_server_loses_no_registration() {
    if let Ok(folder) = env::var(FOLDER) {
        let limits = Limits { attempts: None, ..Limits::default() };
        let server = bind(DirectoryOptions { limits, ..kept(Path::new(&folder)) }).unwrap();
        println!("\n{LISTENS}{}", server.local_addr());
        return server.run().unwrap();
    }
    let folder = tempdir().unwrap();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..KILLS {
        let (mut server, address) = start(folder.path());
        clients(async {
            check(address, &acknowledged).await;
            let count = Arc::new(AtomicUsize::new(0));
            let mut users = JoinSet::new();
            for user in 0..CLIENTS {
                users.spawn(register_until(None, address, format!("{round}-{user}"), Arc::clone(&count)));
            }
            wait_to_kill(round, &count).await;
            server.kill().unwrap();
            acknowledged.extend(users.join_all().await.into_iter().flatten());
        });
        server.wait().unwrap();
    }
    let (mut server, address) = start(folder.path());
    clients(check(address, &acknowledged));
    server.kill().unwrap();
    server.wait().unwrap();
}

/// This test program once more, as the server that is killed.
fn start(folder: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["killed::a_killed_server_loses_no_registration", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The child keeps the pipe, so that it may go on writing.
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix(LISTENS)?.parse().ok());
    (child, address.expect("the server says where it listens"))
}

/// Waits for another point of a batch in each round.
async fn wait_to_kill(round: usize, count: &AtomicUsize) {
    while count.load(Ordering::Relaxed) < 5 + 7 * round % 40 {
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_micros(170 * round as u64)).await;
}

/// Registers accounts of new names until one fails: by this refusal of the server or, for `None`, because the server has ended.
/// Returns the acknowledged ones.
async fn register_until(
    refusal: Option<Blame>,
    address: SocketAddr,
    prefix: String,
    count: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut names = Vec::new();
    let mut client = Client::connect(address, &Security::Plain).await.unwrap();
    for number in 0.. {
        let name = format!("{prefix}-{number}");
        match client.register(&name, PASSWORD, Stretch::Off).await {
            Ok(()) => names.push(name),
            Err(error) => {
                assert_eq!(error.blame(), refusal, "the end of the registration of {name}");
                break;
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    names
}

/// Every account that was acknowledged is there, and the last one opens with its password.
async fn check(address: SocketAddr, acknowledged: &[String]) {
    let mut client = Client::connect(address, &Security::Plain).await.unwrap();
    for name in acknowledged {
        let again = client.register(name, PASSWORD, Stretch::Off).await;
        assert_eq!(blame(again), Blame::NameTaken, "{name} was acknowledged");
    }
    if let Some(name) = acknowledged.last() {
        client.log_in(name, PASSWORD, Stretch::Off).await.unwrap();
    }
}

#[test]
fn a_killed_postgres_behind_the_server_loses_no_registration() {
    kill_database(DatabaseKind::Postgres);
}

#[test]
fn a_killed_mariadb_behind_the_server_loses_no_registration() {
    kill_database(DatabaseKind::Mariadb);
}

#[test]
fn a_killed_redis_behind_the_server_loses_no_registration() {
    kill_database(DatabaseKind::Redis);
}

/// Kills a database under load again and again. One server lives through it all: while the database is away, it refuses
/// registrations, and then it continues.
fn kill_database(kind: DatabaseKind) {
    let Some(mut database) = Database::start(kind, &[]) else { return };
    let limits = Limits { attempts: None, ..Limits::default() };
    let usual = options(Arc::new(Memory::default()), limits, None);
    let store: Arc<dyn Store> = Arc::new(usual.runtime.block_on(open(&database.url(0))));
    let server = run(DirectoryOptions { store, ..usual });
    let address = server.address;
    clients(async {
        let mut acknowledged: Vec<String> = Vec::new();
        for round in 0..KILLS_OF_DATABASE {
            let count = Arc::new(AtomicUsize::new(0));
            let mut users = JoinSet::new();
            for user in 0..CLIENTS {
                let prefix = format!("{round}-{user}");
                users.spawn(register_until(Some(Blame::StoreFailed), address, prefix, Arc::clone(&count)));
            }
            wait_to_kill(round, &count).await;
            database.kill();
            let before = acknowledged.len();
            acknowledged.extend(users.join_all().await.into_iter().flatten());
            database.start_again();
            wait_for_store(address, &format!("again-{round}")).await;
            check(address, &acknowledged[before..]).await;
        }
        check(address, &acknowledged).await;
    });
    server.stop();
}

/// Waits until registrations and log-ins succeed again; on the way, connections that the store has lost are found.
async fn wait_for_store(address: SocketAddr, prefix: &str) {
    // The store has two connections that write and two that read.
    let mut in_a_row = 0;
    for number in 0.. {
        let name = format!("{prefix}-{number}");
        let mut client = Client::connect(address, &Security::Plain).await.unwrap();
        let mut outcome = client.register(&name, PASSWORD, Stretch::Off).await;
        if outcome.is_ok() {
            outcome = client.log_in(&name, PASSWORD, Stretch::Off).await.map(drop);
        }
        match outcome {
            Ok(()) => in_a_row += 1,
            Err(error) => {
                assert_eq!(error.blame(), Some(Blame::StoreFailed));
                in_a_row = 0;
            }
        }
        if in_a_row == 8 {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
}
