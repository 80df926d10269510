//! The common behaviour of all stores.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use kendall_accounts::{
    Account, Accounts, Inserted, MOST_CREDENTIAL_BYTES, MOST_NAME_BYTES, Settings, StoreError,
};
use kendall_testbed::DatabaseKind;
use tokio::task::JoinSet;

use crate::peers::{Peer, account, open, run};

#[test]
fn sqlite() {
    run(every_case(&Peer::sqlite()));
}

#[test]
fn postgres() {
    if let Some(peer) = Peer::server(DatabaseKind::Postgres) {
        run(every_case(&peer));
    }
}

#[test]
fn mariadb() {
    if let Some(peer) = Peer::server(DatabaseKind::Mariadb) {
        run(every_case(&peer));
    }
}

#[test]
fn redis() {
    if let Some(peer) = Peer::server(DatabaseKind::Redis) {
        run(every_case(&peer));
    }
}

/// Each case has its own store. The last line that is printed names the case that failed.
async fn every_case(peer: &Peer) {
    eprintln!("a stored account is found");
    what_is_stored_is_found(peer).await;
    eprintln!("a name is given once");
    a_name_is_given_once(peer).await;
    eprintln!("a name is given once without group commit");
    a_name_is_given_once_without_group_commit(peer).await;
    eprintln!("only the old credential is replaced");
    only_the_old_credential_is_replaced(peer).await;
    eprintln!("one of many replacements wins");
    one_of_many_replacements_wins(peer).await;
    eprintln!("a full queue is an error");
    a_full_queue_is_an_error(peer).await;
    eprintln!("queued calls are written at the end");
    what_is_queued_is_written_at_the_end(peer).await;
    eprintln!("two programs share a store");
    two_programs_share_a_store(peer).await;
}

async fn what_is_stored_is_found(peer: &Peer) {
    let url = peer.url(0);
    let accounts = open(&url, Settings::default()).await;
    // Names that a database might take as equal, or as the end of a literal.
    let names =
        ["ada", "Ada", "ada ", "ädä", "a\u{308}da", "o'x\\", "\0", "%", "🦀", &"x".repeat(MOST_NAME_BYTES)];
    for (number, name) in names.iter().enumerate() {
        let credential = vec![u8::try_from(number).unwrap(); number];
        let account = Account { name: (*name).to_owned(), credential };
        assert_eq!(accounts.insert(account).await, Ok(Inserted::New), "{name:?}");
    }
    let every_byte = (0..MOST_CREDENTIAL_BYTES).map(|byte| byte.to_le_bytes()[0]).collect::<Vec<u8>>();
    let bytes = Account { name: "bytes".to_owned(), credential: every_byte.clone() };
    assert_eq!(accounts.insert(bytes.clone()).await, Ok(Inserted::New));
    assert_eq!(accounts.insert(bytes).await, Ok(Inserted::Taken));
    accounts.close().await.unwrap();

    let accounts = open(&url, Settings::default()).await;
    for (number, name) in names.iter().enumerate() {
        let credential = vec![u8::try_from(number).unwrap(); number];
        assert_eq!(accounts.find(name).await, Ok(Some(credential)), "{name:?}");
    }
    assert_eq!(accounts.find("bytes").await, Ok(Some(every_byte)));
    assert_eq!(accounts.find("no one").await, Ok(None));
    assert_eq!(accounts.count().await, Ok(names.len() as u64 + 1));
    let found = names.map(|name| accounts.find(name));
    for found in join_all(found).await {
        assert!(found.unwrap().is_some());
    }
    for name in ["", &"x".repeat(MOST_NAME_BYTES + 1)] {
        assert!(matches!(accounts.find(name).await, Err(StoreError::Invalid { .. })));
    }
    let long = Account { name: "long".to_owned(), credential: vec![0; MOST_CREDENTIAL_BYTES + 1] };
    assert!(matches!(accounts.insert(long).await, Err(StoreError::Invalid { .. })));
    accounts.close().await.unwrap();
}

/// All callers insert the same names, each in a different order; each name has one winner, whose credential
/// is stored.
async fn contend(accounts: &Accounts, callers: usize, names: usize) {
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let accounts = accounts.clone();
        tasks.spawn(async move {
            let mut won = Vec::new();
            for turn in 0..names {
                // Odd factors below a power of two visit each name once.
                let number = (turn * (2 * caller + 1) + caller) % names;
                let account =
                    Account { name: format!("name {number}"), credential: caller.to_le_bytes().to_vec() };
                if accounts.insert(account).await.unwrap() == Inserted::New {
                    won.push((number, caller));
                }
            }
            won
        });
    }
    let mut winners = HashMap::new();
    while let Some(won) = tasks.join_next().await {
        for (number, caller) in won.unwrap() {
            assert_eq!(winners.insert(number, caller), None, "name {number} was given twice");
        }
    }
    assert_eq!(winners.len(), names);
    for (number, caller) in winners {
        let credential = accounts.find(&format!("name {number}")).await.unwrap();
        assert_eq!(credential, Some(caller.to_le_bytes().to_vec()));
    }
    assert_eq!(accounts.count().await, Ok(names as u64));
    assert_eq!(accounts.written().accounts, names as u64);
}

async fn a_name_is_given_once(peer: &Peer) {
    let accounts = open(&peer.url(1), Settings { connections: 4, ..Settings::default() }).await;
    contend(&accounts, 32, 64).await;
    let written = accounts.written();
    assert!(written.transactions < 32 * 64, "batches hold several accounts: {written:?}");
    accounts.close().await.unwrap();
}

async fn a_name_is_given_once_without_group_commit(peer: &Peer) {
    let settings = Settings { connections: 4, group_commit: false, ..Settings::default() };
    let accounts = open(&peer.url(2), settings).await;
    contend(&accounts, 8, 16).await;
    assert_eq!(accounts.written().transactions, 8 * 16);
    accounts.close().await.unwrap();
}

async fn only_the_old_credential_is_replaced(peer: &Peer) {
    let url = peer.url(3);
    let accounts = open(&url, Settings::default()).await;
    accounts.insert(Account { name: "ada".to_owned(), credential: b"one".to_vec() }).await.unwrap();
    assert_eq!(accounts.replace("ada", b"other", b"two".to_vec()).await, Ok(false));
    assert_eq!(accounts.find("ada").await, Ok(Some(b"one".to_vec())));
    assert_eq!(accounts.replace("ada", b"one", b"two".to_vec()).await, Ok(true));
    assert_eq!(
        accounts.replace("ada", b"two", b"two".to_vec()).await,
        Ok(true),
        "the same bytes are a replacement"
    );
    assert_eq!(accounts.replace("bob", b"two", b"three".to_vec()).await, Ok(false));
    accounts.close().await.unwrap();

    let accounts = open(&url, Settings::default()).await;
    assert_eq!(accounts.find("ada").await, Ok(Some(b"two".to_vec())));
    assert_eq!(accounts.remove("ada", b"one").await, Ok(false));
    assert_eq!(accounts.remove("bob", b"two").await, Ok(false));
    assert_eq!(accounts.remove("ada", b"two").await, Ok(true));
    assert_eq!(accounts.find("ada").await, Ok(None));
    assert_eq!(accounts.insert(account("ada")).await, Ok(Inserted::New), "a removed name is free");
    assert_eq!(accounts.count().await, Ok(1));
    accounts.close().await.unwrap();
}

async fn one_of_many_replacements_wins(peer: &Peer) {
    let accounts = open(&peer.url(4), Settings { connections: 4, ..Settings::default() }).await;
    accounts.insert(Account { name: "ada".to_owned(), credential: vec![0] }).await.unwrap();
    for round in 0..8_u8 {
        let replace = |caller: u8| {
            let accounts = accounts.clone();
            async move { accounts.replace("ada", &[round], vec![round + 1]).await.unwrap().then_some(caller) }
        };
        let winners: Vec<u8> = join_all((0..16).map(replace)).await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
    }
    assert_eq!(accounts.find("ada").await, Ok(Some(vec![8])));
    accounts.close().await.unwrap();
}

async fn a_full_queue_is_an_error(peer: &Peer) {
    let settings = Settings { connections: 1, queue: 2, most_in_batch: 1, ..Settings::default() };
    let accounts = open(&peer.url(5), settings).await;
    let names: Vec<String> = (0..200).map(|number| format!("name {number}")).collect();
    let outcomes = join_all(names.iter().map(|name| accounts.insert(account(name)))).await;
    let busy = Err(StoreError::Busy { queued: 2 });
    let (mut stored, mut refused) = (0, 0);
    for (name, outcome) in names.iter().zip(&outcomes) {
        match outcome {
            Ok(Inserted::New) => stored += 1,
            outcome => {
                assert_eq!(*outcome, busy);
                refused += 1;
            }
        }
        assert_eq!(accounts.find(name).await.unwrap().is_some(), outcome.is_ok());
    }
    assert!(stored >= 2 && refused > 0, "{stored} stored, {refused} refused");
    // Once the queue is empty, the store accepts calls again.
    assert_eq!(accounts.insert(account("later")).await, Ok(Inserted::New));
    assert_eq!(accounts.count().await, Ok(stored + 1));
    accounts.close().await.unwrap();
}

async fn what_is_queued_is_written_at_the_end(peer: &Peer) {
    let url = peer.url(6);
    let accounts = open(&url, Settings::default()).await;
    let mut tasks = JoinSet::new();
    for number in 0..500 {
        let accounts = accounts.clone();
        tasks.spawn(async move { accounts.insert(account(&format!("name {number}"))).await });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let other = accounts.clone();
    accounts.close().await.unwrap();
    let mut stored = 0;
    while let Some(outcome) = tasks.join_next().await {
        match outcome.unwrap() {
            Ok(inserted) => {
                assert_eq!(inserted, Inserted::New);
                stored += 1;
            }
            Err(error) => assert_eq!(error, StoreError::Closed),
        }
    }
    assert_eq!(other.insert(account("late")).await, Err(StoreError::Closed));
    assert_eq!(other.find("late").await, Err(StoreError::Closed));
    assert_eq!(other.close().await, Err(StoreError::Closed));
    let accounts = open(&url, Settings::default()).await;
    assert_eq!(accounts.count().await, Ok(stored));
    accounts.close().await.unwrap();
}

async fn two_programs_share_a_store(peer: &Peer) {
    let url = peer.url(7);
    // Both create the schema.
    let settings = Settings { connections: 2, ..Settings::default() };
    let (one, two) = tokio::join!(open(&url, settings.clone()), open(&url, settings));
    let mut tasks = JoinSet::new();
    for number in 0..100 {
        for accounts in [one.clone(), two.clone()] {
            tasks.spawn(async move { accounts.insert(account(&format!("name {number}"))).await.unwrap() });
        }
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Inserted::New).count(), 100);
    assert_eq!(one.count().await, Ok(100));
    assert_eq!(two.count().await, Ok(100));
    one.close().await.unwrap();
    two.close().await.unwrap();
}
