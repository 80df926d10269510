//! The stored data, and its limits.

use std::fmt;

use crate::error::StoreError;

/// The most bytes of a name.
pub const MOST_NAME_BYTES: usize = 64;

/// The most bytes of a credential.
pub const MOST_CREDENTIAL_BYTES: usize = 1024;

/// A name and the credential of its owner. Names are compared byte by byte: the caller converts them into one canonical
/// form first.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name, 1 to [`MOST_NAME_BYTES`] bytes of UTF-8.
    pub name: String,
    /// The credential, at most [`MOST_CREDENTIAL_BYTES`] bytes, opaque to the store.
    pub credential: Vec<u8>,
}

impl fmt::Debug for Account {
    /// Omits the credential, since it must not appear in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The outcome of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inserted {
    /// The account is stored, durably.
    New,
    /// Another account has the name; nothing was stored.
    Taken,
}

/// Checks a name's length.
///
/// # Errors
/// [`StoreError::Invalid`] if the name is empty or too long.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    if name.is_empty() {
        return Err(StoreError::Invalid { problem: "an account's name is empty".to_owned() });
    }
    if name.len() > MOST_NAME_BYTES {
        let length = name.len();
        return Err(StoreError::Invalid {
            problem: format!("an account's name has {length} bytes, and the limit is {MOST_NAME_BYTES}"),
        });
    }
    Ok(())
}

/// Checks a credential's length.
///
/// # Errors
/// [`StoreError::Invalid`] if the credential is too long.
pub(crate) fn check_credential(credential: &[u8]) -> Result<(), StoreError> {
    let length = credential.len();
    if length > MOST_CREDENTIAL_BYTES {
        return Err(StoreError::Invalid {
            problem: format!("a credential has {length} bytes, and the limit is {MOST_CREDENTIAL_BYTES}"),
        });
    }
    Ok(())
}
