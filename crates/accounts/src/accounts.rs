//! The handle.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_channel::Sender;
use tokio::sync::oneshot;

use crate::account::{self, Account, Inserted};
use crate::backend::{Access, Store, failure_text};
use crate::error::StoreError;
use crate::job::{Answer, ReadCall, WriteCall};
use crate::lane::{self, Lane, Shared, TaskEnd};
use crate::settings::Settings;
use crate::sqlite;
use crate::store_url::{Kind, StoreUrl};

/// A store of accounts. A clone is another handle of the same store. When the last one is dropped, queued calls are still
/// written, but no caller waits for them; [`Accounts::close`] waits.
///
/// A call that is dropped while it is queued is not executed; one that is already running is.
#[derive(Clone)]
pub struct Accounts {
    writes: Sender<WriteCall>,
    reads: Sender<ReadCall>,
    shared: Arc<Shared>,
    /// The tasks, until a handle closes the store.
    tasks: Arc<Mutex<Vec<TaskEnd>>>,
}

/// A store that is being opened.
type Starting<'a> = Pin<Box<dyn Future<Output = Result<Accounts, StoreError>> + Send + 'a>>;

/// The counters of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Accounts.
    pub accounts: u64,
    /// Transactions with inserts: `accounts / transactions` is the mean size of a batch.
    pub transactions: u64,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Accounts").field("store", &self.shared.store).finish_non_exhaustive()
    }
}

impl Accounts {
    /// Opens the store of a URL, and creates or migrates its schema. Call it inside a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`StoreError::Setting`], [`StoreError::DriverMissing`], [`StoreError::Open`], [`StoreError::NotDurable`] or
    /// [`StoreError::NewerSchema`].
    pub async fn open(store: &StoreUrl, settings: Settings) -> Result<Self, StoreError> {
        settings.check()?;
        Self::starting(store, &settings)?.await
    }

    /// The opening of a store, with its type erased. Each crate that awaits an `async fn` compiles its body; with this, the
    /// code of the drivers is compiled once, here.
    fn starting<'a>(store: &StoreUrl, settings: &'a Settings) -> Result<Starting<'a>, StoreError> {
        let name = store.to_string();
        Ok(match &store.0 {
            Kind::Sqlite(path) => {
                Box::pin(Self::start(sqlite::Sqlite::new(path, name.clone()), name, settings))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let store = crate::postgres::Postgres::new(url, name.clone(), settings)?;
                Box::pin(Self::start(store, name, settings))
            }
            #[cfg(feature = "mysql")]
            Kind::Mysql(url) => {
                let store = crate::mysql::Mysql::new(url, name.clone(), settings)?;
                Box::pin(Self::start(store, name, settings))
            }
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let store = crate::redis::Redis::new(url, name.clone(), settings)?;
                Box::pin(Self::start(store, name, settings))
            }
            #[cfg(not(all(feature = "postgres", feature = "mysql", feature = "redis")))]
            _ => return Err(StoreError::DriverMissing { store: name, driver: store.scheme() }),
        })
    }

    /// Prepares a store and starts its tasks.
    async fn start<S: Store>(store: S, name: String, settings: &Settings) -> Result<Self, StoreError> {
        let prepared = tokio::time::timeout(settings.answer_within, store.prepare()).await;
        prepared.unwrap_or_else(|_| {
            let reason = format!("no answer within {:?}", settings.answer_within);
            Err(StoreError::Open { store: name.clone(), reason })
        })?;
        let shared = |most_in_batch| Shared {
            store: name.clone(),
            most_in_batch,
            answer_within: settings.answer_within,
            connected: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            batches: AtomicU64::new(0),
        };
        let writers = settings.connections.min(S::MOST_WRITERS);
        let writes: Lane<WriteCall> =
            Lane::open(&store, Access::Write, writers, settings.queue, shared(settings.batch())).await?;
        let reads: Lane<ReadCall> = Lane::open(
            &store,
            Access::Read,
            settings.readers,
            settings.queue,
            shared(settings.most_in_batch),
        )
        .await?;
        // The writers end last, because the last connection to an SQLite file cleans it up.
        let tasks = reads.tasks.into_iter().chain(writes.tasks).collect();
        Ok(Self {
            writes: writes.queue,
            reads: reads.queue,
            shared: writes.shared,
            tasks: Arc::new(Mutex::new(tasks)),
        })
    }

    /// Stores an account if its name is free, and returns when it is durable.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] leaves open whether the account was stored. After any other error it was not.
    pub async fn insert(&self, account: Account) -> Result<Inserted, StoreError> {
        account::check_name(&account.name)?;
        account::check_credential(&account.credential)?;
        self.write(|answer| WriteCall::Insert(account, answer)).await
    }

    /// The credential of an account; `None` if no account has the name.
    ///
    /// # Errors
    /// Fails if the store is busy, closed, unreachable, or rejects the call.
    pub async fn find(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        account::check_name(name)?;
        self.read(|answer| ReadCall::Find(name.to_owned(), answer)).await
    }

    /// Replaces a credential if it is still `old`, and returns when that is durable. `false` if it differs, or no account
    /// has the name.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] leaves open whether it was replaced. After any other error it was not.
    pub async fn replace(&self, name: &str, old: &[u8], new: Vec<u8>) -> Result<bool, StoreError> {
        account::check_name(name)?;
        account::check_credential(&new)?;
        let (name, old) = (name.to_owned(), old.to_owned());
        self.write(|answer| WriteCall::Replace { name, old, new, answer }).await
    }

    /// Removes an account if its credential is still `old`, and returns when that is durable. `false` if it differs, or no
    /// account has the name.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] leaves open whether it was removed. After any other error it was not.
    pub async fn remove(&self, name: &str, old: &[u8]) -> Result<bool, StoreError> {
        account::check_name(name)?;
        let (name, old) = (name.to_owned(), old.to_owned());
        self.write(|answer| WriteCall::Remove { name, old, answer }).await
    }

    /// Counts the accounts. Redis knows the number; the other stores read an index from end to end.
    ///
    /// # Errors
    /// Fails if the store is busy, closed, unreachable, or rejects the call.
    pub async fn count(&self) -> Result<u64, StoreError> {
        self.read(ReadCall::Count).await
    }

    /// The counters since the store was opened.
    pub fn written(&self) -> Written {
        Written {
            accounts: self.shared.written.load(Ordering::Relaxed),
            transactions: self.shared.batches.load(Ordering::Relaxed),
        }
    }

    /// The number of calls that wait to be written: 0 to the capacity of the queue.
    pub fn queued(&self) -> usize {
        self.writes.len()
    }

    /// Closes the store for all handles, after the queued calls were written.
    ///
    /// # Errors
    /// [`StoreError::Closed`] if a handle has closed it before, [`StoreError::Refused`] if a connection could not be closed
    /// in order; acknowledged accounts are durable in any case.
    pub async fn close(self) -> Result<(), StoreError> {
        self.writes.close();
        self.reads.close();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if tasks.is_empty() {
            return Err(StoreError::Closed);
        }
        let mut outcome = Ok(());
        for task in tasks {
            let ended = task.await;
            let failure = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure_text(failure),
                Err(_) => "a task of the store has panicked".to_owned(),
            };
            outcome = Err(StoreError::Refused { store: self.shared.store.clone(), reason: failure });
        }
        outcome
    }

    async fn write<T>(&self, job: impl FnOnce(Answer<T>) -> WriteCall) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        lane::submit(&self.writes, job(answer))?;
        // A task without an answer was cancelled by the end of its runtime.
        let cut_off = || StoreError::Unknown {
            store: self.shared.store.clone(),
            reason: "the program ended the task that writes".to_owned(),
        };
        answered.await.unwrap_or_else(|_| Err(cut_off()))
    }

    async fn read<T>(&self, job: impl FnOnce(Answer<T>) -> ReadCall) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        lane::submit(&self.reads, job(answer))?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }
}
