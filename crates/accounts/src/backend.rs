//! The interface of a kind of store: a way to connect, and five calls on a connection.

use std::future::Future;

use crate::account::{Account, Inserted};
use crate::error::StoreError;

/// The reason why a call on a connection failed, which determines the answer to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The store answered with an error and stored nothing; the connection works.
    Refused(String),
    /// The store rolled back the transaction because of another one; the same call can succeed.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        expect(dead_code, reason = "the other stores have one writer, or no transactions")
    )]
    Conflict(String),
    /// The connection no longer works. The call in progress may have been stored.
    Lost(String),
}

/// The outcome of each account of a batch, in the batch's order.
pub(crate) type Rows = Vec<Result<Inserted, Failure>>;

/// Whether a connection writes or only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The caller may read from the store and write to it.
    Write,
    /// The caller may only read from the store.
    Read,
}

/// Where the tasks of a kind of store run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The store's calls run in the caller's runtime and wait for sockets.
    InRuntime,
    /// Each on its own thread: its calls block.
    OnThreads,
}

/// A kind of store, and how to connect to it.
pub(crate) trait Store: Clone + Send + Sync + 'static {
    /// A connection to it.
    type Connection: Connection;

    /// The threads that run the store's tasks.
    const RUNS: Runs;

    /// The most connections that can write at the same time.
    const MOST_WRITERS: usize;

    /// Creates or migrates the schema, and checks that acknowledged writes are durable.
    fn prepare(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Opens a connection.
    fn connect(&self, access: Access) -> impl Future<Output = Result<Self::Connection, Failure>> + Send;
}

/// An open connection.
pub(crate) trait Connection: Send + 'static {
    /// Checks that the connection still works.
    fn ping(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Writes the accounts whose names are free, and returns when they are durable. The names are distinct and in
    /// ascending order, so that two connections that insert the same names cannot deadlock.
    fn insert_many(&mut self, accounts: &[Account]) -> impl Future<Output = Result<Rows, Failure>> + Send;

    /// Reads the credentials of names, in their order.
    fn find_many(
        &mut self,
        names: &[String],
    ) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, Failure>> + Send;

    /// Replaces a credential if it is `old`.
    fn replace(
        &mut self,
        name: &str,
        old: &[u8],
        new: &[u8],
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Removes an account if its credential is `old`.
    fn remove(&mut self, name: &str, old: &[u8]) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Counts the accounts.
    fn count(&mut self) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Ends the connection in order.
    fn close(self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The text of a failure.
pub(crate) fn failure_text(failure: Failure) -> String {
    match failure {
        Failure::Refused(reason) | Failure::Conflict(reason) | Failure::Lost(reason) => reason,
    }
}

/// An error with its causes, which drivers exclude from their text.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
