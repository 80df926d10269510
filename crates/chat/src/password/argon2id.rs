//! Passwords in clear that the server hashes: Argon2id with 19 MiB, two passes and one lane, as a PHC string.
//!
//! A hash takes 10 ms of a core and 19 MiB, so at most as many are computed at a time as there are cores, in memory that is
//! used again; other callers wait.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use argon2::password_hash::{Output, ParamsString, PasswordHash, Salt, SaltString};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Block, Params, Version};
use rand_core_of_opaque::{OsRng, RngCore};

use zeroize::Zeroizing;

use super::enforced::Enforced;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// A hash of a password with its parameters and its salt, as a PHC string. No debug output shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredHash(Zeroizing<String>);

/// The text is not a hash that this server computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherHash;

/// The workers that compute hashes. A memory is in use while a hash is computed in it.
pub struct Hashers {
    memories: Mutex<Vec<Vec<Block>>>,
    returned: Condvar,
}

/// A memory, until a hash is computed. It is not erased: Argon2 leaves blocks there from which a guess costs as much as from the
/// stored hash.
struct Lent<'a> {
    hashers: &'a Hashers,
    memory: Vec<Block>,
}

impl StoredHash {
    /// Reads a PHC string.
    ///
    /// # Errors
    /// Fails on one of another algorithm, version or cost.
    pub fn parse(text: &str) -> Result<Self, OtherHash> {
        let hash = PasswordHash::new(text).map_err(|_| OtherHash)?;
        let is_ours = hash.algorithm == ARGON2ID_IDENT
            && hash.version == Some(Version::V0x13.into())
            // Not read as numbers: the library overflows on very large ones.
            && hash.params == ParamsString::try_from(&parameters()).expect(FITS)
            && hash.hash.is_some_and(|hash| hash.len() == HASH_BYTES)
            && hash.salt.is_some_and(|salt| salt.decode_b64(&mut [0; 64]).is_ok())
            && hash.to_string() == text;
        if is_ours { Ok(Self(Zeroizing::new(text.to_owned()))) } else { Err(OtherHash) }
    }

    /// The PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Hashers {
    /// Computes as many hashes at a time.
    pub fn new(at_a_time: NonZeroUsize) -> Self {
        Self { memories: Mutex::new(vec![Vec::new(); at_a_time.get()]), returned: Condvar::new() }
    }

    /// Hashes a password with a new salt.
    pub fn hash(&self, password: &str) -> StoredHash {
        let mut salt = [0; SALT_BYTES];
        OsRng.fill_bytes(&mut salt);
        let hash = self.compute(password, &salt);
        let salt = SaltString::encode_b64(&salt).expect(FITS);
        let text = PasswordHash {
            algorithm: ARGON2ID_IDENT,
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&parameters()).expect(FITS),
            salt: Some(salt.as_salt()),
            hash: Some(Output::new(&*hash).expect(FITS)),
        };
        StoredHash(Zeroizing::new(text.to_string()))
    }

    /// Whether a hash is that of this password.
    pub fn verify(&self, stored: &StoredHash, password: &str) -> bool {
        let phc = PasswordHash::new(&stored.0).expect(PARSED);
        let mut buffer = [0; 64];
        let salt = phc.salt.as_ref().map(|salt: &Salt<'_>| salt.decode_b64(&mut buffer));
        let salt = salt.expect(PARSED).expect(PARSED);
        // Two outputs are compared in constant time.
        phc.hash == Some(Output::new(&*self.compute(password, salt)).expect(FITS))
    }

    fn compute(&self, password: &str, salt: &[u8]) -> Zeroizing<[u8; HASH_BYTES]> {
        let mut lent = self.lend();
        let mut hash = Zeroizing::new([0; HASH_BYTES]);
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters());
        lent.memory.resize(argon2.params().block_count(), Block::default());
        let password = Enforced::new(password);
        argon2
            .hash_password_into_with_memory(password.bytes(), salt, &mut *hash, &mut lent.memory)
            .expect("the memory, the salt and the hash have the lengths that the parameters ask for");
        hash
    }

    fn lend(&self) -> Lent<'_> {
        let mut memories = self.lock();
        loop {
            match memories.pop() {
                Some(memory) => return Lent { hashers: self, memory },
                None => {
                    memories = self.returned.wait(memories).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        // A memory is pushed or popped whole, so a panic leaves none half done.
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.hashers.lock().push(std::mem::take(&mut self.memory));
        self.hashers.returned.notify_one();
    }
}

impl std::fmt::Debug for StoredHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredHash(…)")
    }
}

impl std::fmt::Debug for Hashers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hashers(…)")
    }
}

/// The first recommendation of the OWASP password storage cheat sheet.
fn parameters() -> Params {
    Params::new(19 * 1024, 2, 1, Some(HASH_BYTES)).expect(FITS)
}

const FITS: &str = "the parameters, the salt and the hash are within the bounds of Argon2 and PHC strings";
const PARSED: &str = "a stored hash was parsed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_a_phc_string_of_its_password_only() {
        let hashers = Hashers::new(NonZeroUsize::MIN);
        let stored = hashers.hash("correct horse");
        assert!(stored.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", stored.as_str());
        assert!(hashers.verify(&stored, "correct horse"));
        assert!(!hashers.verify(&stored, "correct house"));
        assert_ne!(hashers.hash("correct horse"), stored, "another salt");
        assert_eq!(StoredHash::parse(stored.as_str()), Ok(stored.clone()));
        let library = Argon2::default();
        let phc = PasswordHash::new(stored.as_str()).unwrap();
        argon2::PasswordVerifier::verify_password(&library, b"correct horse", &phc).unwrap();
    }

    #[test]
    fn hashes_of_another_cost_are_not_ours() {
        let good = Hashers::new(NonZeroUsize::MIN).hash("x");
        for (from, to) in [("argon2id", "argon2i"), ("v=19", "v=16"), ("m=19456", "m=8"), ("p=1", "p=2")] {
            assert_eq!(StoredHash::parse(&good.as_str().replace(from, to)), Err(OtherHash), "{to}");
        }
        for other in ["", "x", "$argon2id$v=19$m=19456,t=2,p=1", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ"]
        {
            assert_eq!(StoredHash::parse(other), Err(OtherHash));
        }
    }

    /// With one memory, four threads take turns.
    #[test]
    fn hashers_wait_for_a_memory_and_return_it() {
        let hashers = Hashers::new(NonZeroUsize::MIN);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let hashers = &hashers;
                scope.spawn(move || {
                    let password = number.to_string();
                    assert!(hashers.verify(&hashers.hash(&password), &password));
                });
            }
        });
        assert_eq!(hashers.lock().len(), 1);
    }
}
