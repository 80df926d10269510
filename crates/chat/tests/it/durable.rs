//! Accounts that outlive the server.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::protocol::Blame;
use kendall_chat::server::DirectoryOptions;
use kendall_chat::server::durable::Durable;
use kendall_chat::server::keys;
use kendall_chat::server::store::{Memory, Store};
use kendall_testbed::{LIMIT, tempdir};
use tokio::time::sleep;

use crate::serving::{PASSWORD, blame, clients, connect, enter, options, run};

/// Opens a store as soon as its database has started up.
pub(crate) async fn open(url: &str) -> Durable {
    let begun = Instant::now();
    loop {
        match Durable::open(url).await {
            Ok(store) => return store,
            Err(error) => assert!(begun.elapsed() < LIMIT, "{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// The options of a server whose accounts and keys are in a folder.
pub(crate) fn kept(folder: &std::path::Path) -> DirectoryOptions {
    let usual = options(Arc::new(Memory::default()), Limits::default(), None);
    let url = format!("sqlite:{}", folder.join("accounts.db").display());
    let store = usual.runtime.block_on(Durable::open(&url)).unwrap();
    let accounts = usual.runtime.block_on(store.count()).unwrap();
    let passwords = keys::passwords(&folder.join("keys"), accounts).unwrap();
    DirectoryOptions { store: Arc::new(store), passwords, ..usual }
}

#[test]
fn accounts_and_keys_outlive_the_server() {
    let folder = tempdir().unwrap();
    let server = run(kept(folder.path()));
    clients(async {
        let mut client = connect(&server).await;
        client.register("alice", PASSWORD, Stretch::Off).await.unwrap();
        client.register("bob", PASSWORD, Stretch::Off).await.unwrap();
        enter(&mut client, "bob").await;
        client.change_password("new", Stretch::Off).await.unwrap();
    });
    server.stop();
    let server = run(kept(folder.path()));
    clients(async {
        let mut client = connect(&server).await;
        assert_eq!(blame(client.register("a1ice", "x", Stretch::Off).await), Blame::NameTaken);
        enter(&mut client, "alice").await;
        client.delete_account().await.unwrap();
        let old = client.log_in("bob", PASSWORD, Stretch::Off).await;
        assert_eq!(blame(old), Blame::WrongNameOrPassword);
        client.log_in("bob", "new", Stretch::Off).await.unwrap();
    });
    server.stop();
    // Without its keys, a server refuses the accounts that it could never open.
    fs::remove_dir_all(folder.path().join("keys")).unwrap();
    let error = keys::passwords(&folder.path().join("keys"), 1).unwrap_err();
    assert!(error.to_string().contains("restore it from a backup"), "{error}");
    // No file of the store has a password.
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = fs::read(&file).unwrap();
        let is_there = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(!is_there, "{}", file.display());
    }
}
