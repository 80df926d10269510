//! The part of an account that the stores keep, in addition to the key of its name.
//!
//! | bytes | |
//! | ---: | --- |
//! | 1 | the version and method: 1 is `opaque-v1`, 2 `argon2id-v1`, 3 `scram-v1` |
//! | 16 | of OPAQUE only: the number under which the password was evaluated |
//! | 1 | the length of the name |
//! | … | the name as others see it, in UTF-8 |
//! | 192 | of OPAQUE: a public key, a masking key and an envelope |
//! | … | of Argon2id: a PHC string |
//! | 84 | of SCRAM: the salt, the iterations, `StoredKey` and `ServerKey` |

use opaque_ke::{RegistrationUpload, ServerRegistration};
use sha2::{Digest, Sha256};

use super::argon2id::StoredHash;
use super::scram::Verifier;
use super::{AuthMethod, PasswordError, REGISTER_3, Suite};
use crate::name::{NAME_BYTES, Name};

const OPAQUE: u8 = 1;
const ARGON2ID: u8 = 2;
const SCRAM: u8 = 3;
/// The length of the number of a credential.
pub(crate) const CREDENTIAL_BYTES: usize = 16;

/// The part of an account that the stores keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    shown: String,
    proof: Proof,
}

/// What checks the password. No debug output shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    Opaque { credential: [u8; CREDENTIAL_BYTES], record: Box<[u8; REGISTER_3]> },
    Argon2id(StoredHash),
    Scram(Verifier),
}

/// The reason why stored bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store has an account of another version than opaque-v1, argon2id-v1 and scram-v1, or a damaged one; restore it \
     from a backup, or serve it with the version of kendall that wrote it"
)]
pub struct RecordError;

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Proof(…)")
    }
}

impl Record {
    /// The record of a registration by OPAQUE.
    ///
    /// # Errors
    /// Fails on bytes that are not the last message of a registration.
    pub fn new(
        credential: [u8; CREDENTIAL_BYTES],
        name: &Name,
        third: &[u8; REGISTER_3],
    ) -> Result<Self, PasswordError> {
        RegistrationUpload::<Suite>::deserialize(third).map_err(|_| PasswordError::InvalidMessage)?;
        Ok(Self::of(name, Proof::Opaque { credential, record: Box::new(*third) }))
    }

    /// The record of an account whose password the server has hashed.
    pub fn argon2id(name: &Name, hash: StoredHash) -> Self {
        Self::of(name, Proof::Argon2id(hash))
    }

    /// The record of a registration by SCRAM.
    pub fn scram(name: &Name, verifier: Verifier) -> Self {
        Self::of(name, Proof::Scram(verifier))
    }

    fn of(name: &Name, proof: Proof) -> Self {
        Self { shown: name.shown().to_owned(), proof }
    }

    /// The name as others see it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// How the account's password is proved.
    pub fn method(&self) -> AuthMethod {
        match self.proof {
            Proof::Opaque { .. } => AuthMethod::Opaque,
            Proof::Argon2id(_) => AuthMethod::Argon2id,
            Proof::Scram(_) => AuthMethod::Scram,
        }
    }

    /// What checks the password.
    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Encodes the record in the form that the stores keep.
    pub fn encode(&self) -> Vec<u8> {
        let length = [u8::try_from(self.shown.len()).expect("a name has at most 128 bytes")];
        let shown = self.shown.as_bytes();
        match &self.proof {
            Proof::Opaque { credential, record } => {
                [&[OPAQUE][..], credential, &length, shown, &**record].concat()
            }
            Proof::Argon2id(hash) => [&[ARGON2ID][..], &length, shown, hash.as_str().as_bytes()].concat(),
            Proof::Scram(Verifier { salt, iterations, stored_key, server_key }) => {
                let iterations = iterations.to_be_bytes();
                [&[SCRAM][..], &length, shown, salt, &iterations, stored_key, server_key].concat()
            }
        }
    }

    /// Reads what a store has kept.
    ///
    /// # Errors
    /// Fails on bytes of another version and on damaged ones.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut rest = bytes;
        let [version] = take(&mut rest)?;
        let credential = if version == OPAQUE { take(&mut rest)? } else { [0; CREDENTIAL_BYTES] };
        let [length] = take(&mut rest)?;
        let (shown, mut rest) = rest.split_at_checked(length.into()).ok_or(RecordError)?;
        let shown = std::str::from_utf8(shown).map_err(|_| RecordError)?;
        if shown.len() > NAME_BYTES {
            return Err(RecordError);
        }
        let proof = match version {
            OPAQUE => {
                let record: [u8; REGISTER_3] = take(&mut rest)?;
                ServerRegistration::<Suite>::deserialize(&record).map_err(|_| RecordError)?;
                Proof::Opaque { credential, record: Box::new(record) }
            }
            ARGON2ID => {
                let text = std::str::from_utf8(std::mem::take(&mut rest)).map_err(|_| RecordError)?;
                Proof::Argon2id(StoredHash::parse(text).map_err(|_| RecordError)?)
            }
            SCRAM => Proof::Scram(Verifier {
                salt: take(&mut rest)?,
                iterations: u32::from_be_bytes(take(&mut rest)?),
                stored_key: take(&mut rest)?,
                server_key: take(&mut rest)?,
            }),
            _ => return Err(RecordError),
        };
        if rest.is_empty() { Ok(Self { shown: shown.to_owned(), proof }) } else { Err(RecordError) }
    }

    /// Identifies this record among all that an account ever has.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }
}

/// Removes an array from the beginning of the bytes.
fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], RecordError> {
    let (&first, rest) = from.split_first_chunk().ok_or(RecordError)?;
    *from = rest;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::password::Stretch;
    use crate::password::argon2id::Hashers;

    #[test]
    fn records_of_each_method_come_back_and_nothing_shorter_or_longer_does() {
        let name = Name::new("Alice").unwrap();
        let hash = Hashers::new(NonZeroUsize::MIN).hash("x");
        let scram = Record::scram(&name, Verifier::new("x", Stretch::Off));
        for (record, method) in
            [(Record::argon2id(&name, hash), AuthMethod::Argon2id), (scram, AuthMethod::Scram)]
        {
            let mut bytes = record.encode();
            assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
            assert_eq!((record.method(), record.shown()), (method, "alice"));
            assert_eq!(Record::decode(&bytes[..bytes.len() - 1]), Err(RecordError));
            bytes.push(b'A');
            assert_eq!(Record::decode(&bytes), Err(RecordError));
            bytes[0] = 4;
            assert_eq!(Record::decode(&bytes), Err(RecordError));
        }
    }
}
