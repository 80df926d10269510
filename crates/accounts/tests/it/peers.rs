//! The stores of the tests.

use std::future::Future;
use std::time::{Duration, Instant};

use kendall_accounts::{Account, Accounts, Settings, StoreError, StoreUrl};
use kendall_testbed::{Database, DatabaseKind, LIMIT, TempDir, tempdir};

/// A store, and the resource that keeps it.
pub(crate) enum Peer {
    /// A folder for files of SQLite.
    Folder(TempDir),
    /// A server.
    Server(Database),
}

impl Peer {
    pub(crate) fn sqlite() -> Self {
        Self::Folder(tempdir().unwrap())
    }

    /// `None` if the server is not installed.
    pub(crate) fn server(kind: DatabaseKind) -> Option<Self> {
        Database::start(kind, &[]).map(Self::Server)
    }

    /// One of eight stores, each empty at first.
    pub(crate) fn url(&self, space: usize) -> StoreUrl {
        let url = match self {
            Self::Folder(folder) => format!("sqlite:{}/{space}.db", folder.path().display()),
            Self::Server(database) => database.url(space),
        };
        url.parse().unwrap()
    }
}

/// Runs a test in its own runtime.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// Opens a store as soon as its server has started up.
pub(crate) async fn open(url: &StoreUrl, settings: Settings) -> Accounts {
    let begun = Instant::now();
    loop {
        match Accounts::open(url, settings.clone()).await {
            Ok(accounts) => return accounts,
            Err(error @ (StoreError::Open { .. } | StoreError::Unavailable { .. })) => {
                assert!(begun.elapsed() < LIMIT, "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// An account whose credential no other account has.
pub(crate) fn account(name: &str) -> Account {
    Account { name: name.to_owned(), credential: format!("credential of {name}").into_bytes() }
}
