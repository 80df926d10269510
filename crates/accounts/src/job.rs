//! The calls in the queues of a store, and the execution of a batch of them on a connection.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::account::{Account, Inserted};
use crate::backend::{Connection, Failure, Rows};
use crate::error::StoreError;

/// The sender of a caller's answer.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// The most attempts of a transaction that the store rolls back.
const ATTEMPTS: usize = 5;

/// The environment in which batches are executed.
pub(crate) struct Surroundings<'a> {
    /// The store, for errors.
    pub(crate) store: &'a str,
    /// The longest time of one call; `None` for calls that block.
    pub(crate) within: Option<Duration>,
    /// Accounts that were written.
    pub(crate) written: &'a AtomicU64,
    /// Transactions that wrote them.
    pub(crate) batches: &'a AtomicU64,
}

/// The effect of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The reason why the connection is unusable, if it is.
    pub(crate) lost: Option<String>,
}

/// A call that waits in a queue.
pub(crate) trait Job: Send + Sized + 'static {
    /// Answers the call with an error.
    fn fail(self, error: &StoreError);

    /// Executes all calls of a batch and answers each.
    fn serve<C: Connection>(
        batch: Vec<Self>,
        connection: &mut C,
        surroundings: &Surroundings<'_>,
    ) -> impl Future<Output = Served> + Send;
}

/// A call that changes the store.
pub(crate) enum WriteCall {
    /// Stores an account.
    Insert(Account, Answer<Inserted>),
    /// Replaces a credential if it is still the old one.
    Replace { name: String, old: Vec<u8>, new: Vec<u8>, answer: Answer<bool> },
    /// Removes an account if its credential is still the old one.
    Remove { name: String, old: Vec<u8>, answer: Answer<bool> },
}

/// A call that reads the store.
pub(crate) enum ReadCall {
    /// Reads a credential.
    Find(String, Answer<Option<Vec<u8>>>),
    /// Counts the accounts.
    Count(Answer<u64>),
}

impl Surroundings<'_> {
    /// Waits for a call for a limited time. A missing answer makes the connection unusable, because it may still come.
    async fn bounded<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let Some(within) = self.within else { return call.await };
        timeout(within, call)
            .await
            .unwrap_or_else(|_| Err(Failure::Lost(format!("no answer within {within:?}"))))
    }

    /// The error for the caller of a write.
    fn write_error(&self, failure: &Failure) -> StoreError {
        let store = self.store.to_owned();
        match failure {
            Failure::Refused(reason) | Failure::Conflict(reason) => {
                StoreError::Refused { store, reason: reason.clone() }
            }
            Failure::Lost(reason) => StoreError::Unknown { store, reason: reason.clone() },
        }
    }

    /// The error for the caller of a read, or of a write that was never sent.
    fn read_error(&self, failure: &Failure) -> StoreError {
        let store = self.store.to_owned();
        match failure {
            Failure::Refused(reason) | Failure::Conflict(reason) => {
                StoreError::Refused { store, reason: reason.clone() }
            }
            Failure::Lost(reason) => StoreError::Unavailable { store, reason: reason.clone() },
        }
    }
}

impl Job for WriteCall {
    fn fail(self, error: &StoreError) {
        match self {
            Self::Insert(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Replace { answer, .. } | Self::Remove { answer, .. } => {
                drop(answer.send(Err(error.clone())));
            }
        }
    }

    async fn serve<C: Connection>(
        batch: Vec<Self>,
        connection: &mut C,
        surroundings: &Surroundings<'_>,
    ) -> Served {
        let mut inserts = Inserts::default();
        let mut others = Vec::new();
        for job in batch {
            match job {
                Self::Insert(account, answer) => inserts.push(account, answer),
                other => others.push(other),
            }
        }
        let mut served = inserts.serve(connection, surroundings).await;
        for job in others {
            if let Some(reason) = &served.lost {
                job.fail(&surroundings.read_error(&Failure::Lost(reason.clone())));
                continue;
            }
            let (answer, outcome) = match job {
                Self::Insert(..) => continue,
                Self::Replace { name, old, new, answer } => {
                    (answer, surroundings.bounded(connection.replace(&name, &old, &new)).await)
                }
                Self::Remove { name, old, answer } => {
                    (answer, surroundings.bounded(connection.remove(&name, &old)).await)
                }
            };
            if let Err(Failure::Lost(reason)) = &outcome {
                served.lost = Some(reason.clone());
            }
            let _ = answer.send(outcome.map_err(|failure| surroundings.write_error(&failure)));
        }
        served
    }
}

/// The inserts of a batch.
#[derive(Default)]
struct Inserts(Vec<(Account, Answer<Inserted>)>);

impl Inserts {
    /// Adds an insert whose caller still waits. An insert without a caller is not executed.
    fn push(&mut self, account: Account, answer: Answer<Inserted>) {
        if !answer.is_closed() {
            self.0.push((account, answer));
        }
    }

    /// Writes the first account of each name in one transaction; the others of that name are rejected as taken.
    async fn serve<C: Connection>(self, connection: &mut C, surroundings: &Surroundings<'_>) -> Served {
        let mut served = Served { lost: None };
        if self.0.is_empty() {
            return served;
        }
        let mut pending = self.0;
        // Stable: of two callers with one name, the earlier one wins.
        pending.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let mut accounts: Vec<Account> = Vec::with_capacity(pending.len());
        let mut answers: Vec<Vec<Answer<Inserted>>> = Vec::with_capacity(pending.len());
        for (account, answer) in pending {
            match answers.last_mut() {
                Some(same) if accounts.last().is_some_and(|last| last.name == account.name) => {
                    same.push(answer);
                }
                _ => {
                    accounts.push(account);
                    answers.push(vec![answer]);
                }
            }
        }
        let rows = match insert(connection, &accounts, surroundings).await {
            Ok(rows) => rows,
            Err(failure) => {
                if let Failure::Lost(reason) = &failure {
                    served.lost = Some(reason.clone());
                }
                vec![Err(failure); accounts.len()]
            }
        };
        // Before any answer, so that a caller who has one finds it counted.
        let new = rows.iter().filter(|row| **row == Ok(Inserted::New)).count();
        surroundings.written.fetch_add(new as u64, Ordering::Relaxed);
        surroundings.batches.fetch_add(1, Ordering::Relaxed);
        for (row, answers) in rows.into_iter().zip(answers) {
            let outcome = row.map_err(|failure| surroundings.write_error(&failure));
            for (place, answer) in answers.into_iter().enumerate() {
                let outcome =
                    outcome.clone().map(|inserted| if place == 0 { inserted } else { Inserted::Taken });
                let _ = answer.send(outcome);
            }
        }
        served
    }
}

/// Inserts, with retries if the store rolls back the transaction.
async fn insert<C: Connection>(
    connection: &mut C,
    accounts: &[Account],
    surroundings: &Surroundings<'_>,
) -> Result<Rows, Failure> {
    let mut attempt = 1;
    loop {
        match surroundings.bounded(connection.insert_many(accounts)).await {
            Err(Failure::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

impl Job for ReadCall {
    fn fail(self, error: &StoreError) {
        match self {
            Self::Find(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Count(answer) => drop(answer.send(Err(error.clone()))),
        }
    }

    async fn serve<C: Connection>(
        batch: Vec<Self>,
        connection: &mut C,
        surroundings: &Surroundings<'_>,
    ) -> Served {
        let mut names = Vec::new();
        let mut finds = Vec::new();
        let mut counts = Vec::new();
        for job in batch {
            match job {
                Self::Find(name, answer) => {
                    names.push(name);
                    finds.push(answer);
                }
                Self::Count(answer) => counts.push(answer),
            }
        }
        let mut lost = None;
        if !names.is_empty() {
            match surroundings.bounded(connection.find_many(&names)).await {
                Ok(credentials) => {
                    for (answer, credential) in finds.into_iter().zip(credentials) {
                        let _ = answer.send(Ok(credential));
                    }
                }
                Err(failure) => {
                    let error = surroundings.read_error(&failure);
                    finds.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
                    lost = reason_of_loss(failure);
                }
            }
        }
        if !counts.is_empty() {
            let outcome = match &lost {
                None => surroundings.bounded(connection.count()).await,
                Some(reason) => Err(Failure::Lost(reason.clone())),
            };
            let answer = outcome.as_ref().map_err(|failure| surroundings.read_error(failure));
            counts.into_iter().for_each(|caller| drop(caller.send(answer.clone().copied())));
            lost = lost.or_else(|| outcome.err().and_then(reason_of_loss));
        }
        Served { lost }
    }
}

/// The reason of a lost connection, if the failure is one.
fn reason_of_loss(failure: Failure) -> Option<String> {
    match failure {
        Failure::Lost(reason) => Some(reason),
        Failure::Refused(_) | Failure::Conflict(_) => None,
    }
}
