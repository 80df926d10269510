//! The errors of a store, with messages for users. Every variant states whether an account may have been
//! stored.

use thiserror::Error;

/// The reason why a call to a store failed. Only [`StoreError::Unknown`] leaves open whether something was
/// stored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// The text is not a store's URL.
    #[error(
        "cannot read the store {given:?}: {problem}; write sqlite:PATH, postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or redis://HOST/NUMBER"
    )]
    Url {
        /// The text, without its password.
        given: String,
        /// The reason.
        problem: String,
    },
    /// The program was built without the driver of this store.
    #[error(
        "{store}: this program was built without {driver}; build it with the feature {driver:?} of kendall-accounts"
    )]
    DriverMissing {
        /// The store, without its password.
        store: String,
        /// The feature that brings the driver.
        driver: &'static str,
    },
    /// A setting is outside its range.
    #[error("{setting} is {value}; it must be {range}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// The setting's value.
        value: usize,
        /// The valid range.
        range: &'static str,
    },
    /// The store could not be opened.
    #[error("cannot open the store {store}: {reason}")]
    Open {
        /// The store, without its password.
        store: String,
        /// The message of the driver or the operating system.
        reason: String,
    },
    /// The store would lose accounts, in a crash or when its memory is full.
    #[error(
        "the store {store} is not durable: its setting {setting} is {found:?}; set it to {wanted:?}, or accept the loss of accounts with Durability::AsConfigured"
    )]
    NotDurable {
        /// The store, without its password.
        store: String,
        /// The database's setting.
        setting: &'static str,
        /// The setting's value.
        found: String,
        /// The value that is durable.
        wanted: &'static str,
    },
    /// A newer program has changed the schema.
    #[error(
        "the store {store} has a schema of version {found}, but this program only supports versions up to {known}; use a newer program"
    )]
    NewerSchema {
        /// The store, without its password.
        store: String,
        /// The version in the store.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// A name or a credential exceeds its limits. Nothing was stored.
    #[error("{problem}")]
    Invalid {
        /// The reason.
        problem: String,
    },
    /// The queue is full. Nothing was stored.
    #[error("the store is busy: {queued} calls wait already; retry later")]
    Busy {
        /// The queue's capacity.
        queued: usize,
    },
    /// There is no connection to the store. Nothing was stored.
    #[error("the store {store} cannot be reached, and nothing was stored: {reason}; retry later")]
    Unavailable {
        /// The store, without its password.
        store: String,
        /// The message of the driver or the operating system.
        reason: String,
    },
    /// The connection was lost, or the store did not answer in time, during the call.
    #[error(
        "the store {store} did not answer, so it is unknown whether the account was stored: {reason}; look up the name to find out"
    )]
    Unknown {
        /// The store, without its password.
        store: String,
        /// The message of the driver or the operating system.
        reason: String,
    },
    /// The store answered with an error. Nothing was stored.
    #[error("the store {store} rejected the call, and nothing was stored: {reason}")]
    Refused {
        /// The store, without its password.
        store: String,
        /// The store's message.
        reason: String,
    },
    /// The handle was closed before. Nothing was stored.
    #[error("the store is closed, and nothing was stored")]
    Closed,
}
