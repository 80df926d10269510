//! What is stored, and the bounds of it.

use std::fmt;

use crate::error::StoreError;

/// The most bytes of a name.
pub const MOST_NAME_BYTES: usize = 64;

/// The most bytes of a credential.
pub const MOST_CREDENTIAL_BYTES: usize = 1024;

/// A name and what proves its owner. Names are compared byte by byte: a caller brings them into one canonical form first.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// 1 to [`MOST_NAME_BYTES`] bytes of UTF-8.
    pub name: String,
    /// At most [`MOST_CREDENTIAL_BYTES`] bytes, which mean nothing to the store.
    pub credential: Vec<u8>,
}

impl fmt::Debug for Account {
    /// Leaves the credential out, since logs are no place for it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What became of an insert.
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
            problem: format!(
                "an account's name has {length} bytes, and at most {MOST_NAME_BYTES} are allowed"
            ),
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
            problem: format!(
                "a credential has {length} bytes, and at most {MOST_CREDENTIAL_BYTES} are allowed"
            ),
        });
    }
    Ok(())
}
