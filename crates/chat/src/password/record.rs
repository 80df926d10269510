//! What the stores keep of an account, beside the key of its name.
//!
//! | bytes | |
//! | ---: | --- |
//! | 1 | 1: the version, `opaque-v1` |
//! | 16 | the number under which the password was evaluated |
//! | 1 | the length of the name |
//! | … | the name as others see it, in UTF-8 |
//! | 192 | the record of OPAQUE: a public key, a masking key and an envelope |

use opaque_ke::{RegistrationUpload, ServerRegistration};
use sha2::{Digest, Sha256};

use super::{PasswordError, REGISTER_3, Suite};
use crate::name::{NAME_BYTES, Name};

/// `opaque-v1`.
const VERSION: u8 = 1;
/// The length of the number of a credential.
pub(crate) const CREDENTIAL_BYTES: usize = 16;

/// What is kept of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    credential: [u8; CREDENTIAL_BYTES],
    shown: String,
    opaque: Box<[u8; REGISTER_3]>,
}

/// Why stored bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store has an account of another version than opaque-v1, or a damaged one; restore it from a backup, or \
     serve it with the version of kendall that wrote it"
)]
pub struct RecordError;

impl Record {
    /// The record of a registration.
    ///
    /// # Errors
    /// Fails on bytes that are not the last message of a registration.
    pub fn new(
        credential: [u8; CREDENTIAL_BYTES],
        name: &Name,
        third: &[u8; REGISTER_3],
    ) -> Result<Self, PasswordError> {
        RegistrationUpload::<Suite>::deserialize(third).map_err(|_| PasswordError::InvalidMessage)?;
        Ok(Self { credential, shown: name.shown().to_owned(), opaque: Box::new(*third) })
    }

    /// The name as others see it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// As the stores keep it.
    pub fn encode(&self) -> Vec<u8> {
        let length = u8::try_from(self.shown.len()).expect("a name has at most 128 bytes");
        [&[VERSION][..], &self.credential, &[length], self.shown.as_bytes(), &*self.opaque].concat()
    }

    /// Reads what a store has kept.
    ///
    /// # Errors
    /// Fails on bytes of another version and on damaged ones.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let (&version, rest) = bytes.split_first().ok_or(RecordError)?;
        let (&credential, rest) = rest.split_first_chunk().ok_or(RecordError)?;
        let (&length, rest) = rest.split_first().ok_or(RecordError)?;
        let (shown, opaque) = rest.split_at_checked(length.into()).ok_or(RecordError)?;
        let opaque: [u8; REGISTER_3] = opaque.try_into().map_err(|_| RecordError)?;
        let shown = std::str::from_utf8(shown).map_err(|_| RecordError)?;
        if version != VERSION || shown.len() > NAME_BYTES {
            return Err(RecordError);
        }
        ServerRegistration::<Suite>::deserialize(&opaque).map_err(|_| RecordError)?;
        Ok(Self { credential, shown: shown.to_owned(), opaque: Box::new(opaque) })
    }

    /// Identifies this record among all that an account ever has.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }

    /// The number under which the password was evaluated.
    pub(super) fn credential(&self) -> &[u8; CREDENTIAL_BYTES] {
        &self.credential
    }

    /// The record as the library has it.
    pub(super) fn opaque(&self) -> Result<ServerRegistration<Suite>, PasswordError> {
        ServerRegistration::deserialize(&*self.opaque).map_err(|_| PasswordError::InvalidMessage)
    }
}
