//! Accounts in a database, by the crate `kendall-accounts`.

use kendall_accounts::{Account, Accounts, Settings, StoreError, StoreUrl, Written};

use super::store::{Inserted, Store, StoreFault, StoreFuture};

/// A store that outlives the server.
#[derive(Debug)]
pub struct Durable(Accounts);

impl Durable {
    /// Opens what a URL names, within a runtime of tokio.
    ///
    /// # Errors
    /// Fails on a URL that names no store, and where the store cannot be opened or would lose accounts.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, Settings::default()).await
    }

    /// Opens a store with these settings.
    ///
    /// # Errors
    /// Those of [`Durable::open`].
    pub async fn open_with(url: &str, settings: Settings) -> Result<Self, StoreError> {
        let url: StoreUrl = url.parse()?;
        Ok(Self(Accounts::open(&url, settings).await?))
    }

    /// The amount written since the store was opened.
    pub fn written(&self) -> Written {
        self.0.written()
    }
}

impl Store for Durable {
    fn insert<'a>(&'a self, key: &'a str, record: Vec<u8>) -> StoreFuture<'a, Inserted> {
        Box::pin(async move {
            let account = Account { name: key.to_owned(), credential: record };
            match self.0.insert(account).await.map_err(fault)? {
                kendall_accounts::Inserted::New => Ok(Inserted::New),
                kendall_accounts::Inserted::Taken => Ok(Inserted::Taken),
            }
        })
    }

    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.0.find(key).await.map_err(fault) })
    }

    fn replace<'a>(&'a self, key: &'a str, old: &'a [u8], new: Vec<u8>) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.0.replace(key, old, new).await.map_err(fault) })
    }

    fn remove<'a>(&'a self, key: &'a str, old: &'a [u8]) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.0.remove(key, old).await.map_err(fault) })
    }

    fn count(&self) -> StoreFuture<'_, u64> {
        Box::pin(async { self.0.count().await.map_err(fault) })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { self.0.clone().close().await.map_err(fault) })
    }
}

fn fault(error: StoreError) -> StoreFault {
    StoreFault(error.to_string())
}
