//! Durable stores of accounts behind one handle: SQLite (compiled in, the default), PostgreSQL, MariaDB and Redis.
//!
//! An account is a name and a credential; the credential is opaque to the store. [`Accounts::insert`] returns when the
//! account is on disk. There is one way to write new accounts, `insert_many`: each connection has one writer that takes
//! all queued accounts and writes them in one transaction: callers share one flush of the disk. There is no timer: while
//! one batch is being flushed, the next one collects.
//!
//! A call never runs twice. If a connection is lost during an insert, the caller gets [`StoreError::Unknown`]: a second
//! attempt could find the account that the first one stored, and report it as taken.
//!
//! Out of scope: the meaning of a credential, sessions, presence, and any data other than accounts.
//!
//! ```
//! # async fn example() -> Result<(), kendall_accounts::StoreError> {
//! use kendall_accounts::{Account, Accounts, Inserted, Settings, StoreUrl};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("accounts.db");
//! let store: StoreUrl = format!("sqlite:{}", path.display()).parse()?;
//! let accounts = Accounts::open(&store, Settings::default()).await?;
//! let account = Account { name: "ada".to_owned(), credential: b"record".to_vec() };
//! assert_eq!(accounts.insert(account.clone()).await?, Inserted::New);
//! assert_eq!(accounts.insert(account).await?, Inserted::Taken);
//! assert_eq!(accounts.find("ada").await?.as_deref(), Some(b"record".as_slice()));
//! accounts.close().await
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
//! # runtime.block_on(example()).expect("the example runs");
//! ```

mod account;
mod accounts;
mod backend;
mod disk;
mod error;
mod job;
mod lane;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod schema;
mod settings;
mod sqlite;
mod store_url;

pub use account::{Account, Inserted, MOST_CREDENTIAL_BYTES, MOST_NAME_BYTES};
pub use accounts::{Accounts, Written};
pub use disk::fdatasyncs_per_second;
pub use error::StoreError;
pub use settings::{Durability, Settings};
pub use store_url::StoreUrl;
