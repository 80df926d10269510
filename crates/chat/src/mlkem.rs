//! ML-KEM-768 (FIPS 203) by the fastest well-kept crate that runs on this processor.
//!
//! Measured side by side on one machine under load (µs to make a key, to encapsulate, to decapsulate): ml-kem 0.3 91, 100
//! and 136, libcrux-ml-kem 0.0.11 with AVX2 26, 24 and 24, graviola 0.4 14, 17 and 13. graviola needs instructions that an
//! old processor lacks; ml-kem runs there.

use ml_kem::kem::{Decapsulate as _, Encapsulate as _, Kem as _, KeyExport as _};
use ml_kem::ml_kem_768 as portable;
use ml_kem::{Key, MlKem768};
use rustls::crypto::SharedSecret;

#[cfg(target_arch = "x86_64")]
use graviola::key_agreement::mlkem768 as fast;

/// The length in bytes of an encapsulation key.
pub(crate) const KEY: usize = 1184;
/// The length in bytes of a ciphertext.
pub(crate) const CIPHERTEXT: usize = 1088;

/// A key that waits for a ciphertext.
pub(crate) enum Decapsulation {
    #[cfg(target_arch = "x86_64")]
    Fast(Box<fast::DecapKey>),
    Portable(Box<portable::DecapsulationKey>),
}

/// A new key, and the bytes with which the other side encapsulates; `None` where the system has no random numbers.
pub(crate) fn generate() -> Option<(Decapsulation, [u8; KEY])> {
    #[cfg(target_arch = "x86_64")]
    if has_graviola() {
        let key = fast::DecapKey::generate().ok()?;
        let bytes = key.encapsulation_key().as_bytes();
        return Some((Decapsulation::Fast(Box::new(key)), bytes));
    }
    Some(portable_generate())
}

/// A secret for the owner of a key, and the ciphertext that carries it. `None` where these bytes are not a key: FIPS 203,
/// section 7.2, asks to check that its numbers are below the modulus.
pub(crate) fn encapsulate(key: &[u8; KEY]) -> Option<([u8; CIPHERTEXT], SharedSecret)> {
    #[cfg(target_arch = "x86_64")]
    if has_graviola() {
        let (secret, ciphertext) = fast::EncapKey::from_bytes(key).ok()?.encaps().ok()?;
        return Some((*ciphertext.as_ref(), secret.as_ref()[..].into()));
    }
    portable_encapsulate(key)
}

impl Decapsulation {
    /// The secret that a ciphertext carries.
    pub(crate) fn decapsulate(self, ciphertext: &[u8; CIPHERTEXT]) -> SharedSecret {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Fast(key) => key.decaps(&(*ciphertext).into()).as_ref()[..].into(),
            Self::Portable(key) => {
                key.decapsulate(&portable::Ciphertext::from(*ciphertext)).as_slice().into()
            }
        }
    }
}

fn portable_generate() -> (Decapsulation, [u8; KEY]) {
    let (decapsulation, encapsulation) = MlKem768::generate_keypair();
    (Decapsulation::Portable(Box::new(decapsulation)), encapsulation.to_bytes().into())
}

fn portable_encapsulate(key: &[u8; KEY]) -> Option<([u8; CIPHERTEXT], SharedSecret)> {
    let key = Key::<portable::EncapsulationKey>::from(*key);
    let (ciphertext, secret) = portable::EncapsulationKey::new(&key).ok()?.encapsulate();
    Some((ciphertext.into(), secret.as_slice().into()))
}

/// What graviola requires of a processor; it panics on others.
#[cfg(target_arch = "x86_64")]
fn has_graviola() -> bool {
    let has_ciphers = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    let has_integers = is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("adx");
    has_ciphers && has_integers && is_x86_feature_detected!("avx2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_crate_opens_what_the_other_has_sealed() {
        let (fast, fast_key) = generate().unwrap();
        let (portable, portable_key) = portable_generate();
        let (ciphertext, secret) = portable_encapsulate(&fast_key).unwrap();
        assert_eq!(fast.decapsulate(&ciphertext).secret_bytes(), secret.secret_bytes());
        let (ciphertext, secret) = encapsulate(&portable_key).unwrap();
        assert_eq!(portable.decapsulate(&ciphertext).secret_bytes(), secret.secret_bytes());
        // A ciphertext that was changed gives another secret, and no error: FIPS 203, section 6.3.
        let (fast, key) = generate().unwrap();
        let (mut ciphertext, secret) = encapsulate(&key).unwrap();
        ciphertext[0] ^= 1;
        assert_ne!(fast.decapsulate(&ciphertext).secret_bytes(), secret.secret_bytes());
    }

    #[test]
    fn either_crate_refuses_numbers_beyond_the_modulus() {
        let (_, mut key) = portable_generate();
        key[..3].fill(0xff);
        assert!(encapsulate(&key).is_none());
        assert!(portable_encapsulate(&key).is_none());
    }
}
