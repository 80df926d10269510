//! The key exchange of TLS that withstands quantum computers: X25519MLKEM768, ML-KEM-768 (FIPS 203) combined with
//! X25519, as in draft-ietf-tls-ecdhe-mlkem. An attacker who records a session today has to break both halves to read
//! it.
//!
//! A share is the bytes of ML-KEM followed by those of X25519, and so is the secret.

use std::sync::Arc;

use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

use crate::mlkem::{CIPHERTEXT, Decapsulation, KEY, encapsulate, generate};

const X25519: &dyn SupportedKxGroup = ring::kx_group::X25519;

/// What secures connections to the directory server: ring's algorithms, and this key exchange before its own.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.kx_groups.insert(0, &Hybrid);
    Arc::new(provider)
}

#[derive(Debug)]
struct Hybrid;

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = X25519.start()?;
        let (decapsulation, key) = generate().ok_or(Error::FailedToGetRandomBytes)?;
        let share = [&key[..], classical.pub_key()].concat();
        Ok(Box::new(Begun { classical, decapsulation, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = share.split_first_chunk::<KEY>().ok_or_else(invalid)?;
        let (ciphertext, secret) = encapsulate(key).ok_or_else(invalid)?;
        let classical = X25519.start_and_complete(classical)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &classical.pub_key].concat(),
            secret: joined(&secret, &classical.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client's key exchange before the server's share has come.
struct Begun {
    classical: Box<dyn ActiveKeyExchange>,
    decapsulation: Decapsulation,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Begun {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) = share.split_first_chunk::<CIPHERTEXT>().ok_or_else(invalid)?;
        let classical = self.classical.complete(classical)?;
        Ok(joined(&self.decapsulation.decapsulate(ciphertext), &classical))
    }

    /// A server without ML-KEM takes this share, and no round trip is lost.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        Hybrid.name()
    }
}

fn joined(post_quantum: &SharedSecret, classical: &SharedSecret) -> SharedSecret {
    SharedSecret::from([post_quantum.secret_bytes(), classical.secret_bytes()].concat())
}

fn invalid() -> Error {
    PeerMisbehaved::InvalidKeyShare.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_and_each_half_counts() {
        let begun = Hybrid.start().unwrap();
        assert_eq!(begun.pub_key().len(), 1216);
        let completed = Hybrid.start_and_complete(begun.pub_key()).unwrap();
        assert_eq!((completed.pub_key.len(), completed.secret.secret_bytes().len()), (1120, 64));
        let secret = begun.complete(&completed.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), completed.secret.secret_bytes());
        for changed in [0, CIPHERTEXT + 3] {
            let begun = Hybrid.start().unwrap();
            let mut completed = Hybrid.start_and_complete(begun.pub_key()).unwrap();
            completed.pub_key[changed] ^= 1;
            let secret = begun.complete(&completed.pub_key).unwrap();
            assert_ne!(secret.secret_bytes(), completed.secret.secret_bytes());
        }
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        let share = Hybrid.start().unwrap().pub_key().to_vec();
        let mut beyond_the_modulus = share.clone();
        beyond_the_modulus[..3].fill(0xff);
        for wrong in
            [&[][..], &share[..KEY], &share[1..], &[share.as_slice(), &[0]].concat(), &beyond_the_modulus]
        {
            assert!(Hybrid.start_and_complete(wrong).is_err(), "{} bytes", wrong.len());
        }
        for length in [0, CIPHERTEXT, 1119, 1121] {
            assert!(Hybrid.start().unwrap().complete(&vec![9; length]).is_err(), "{length} bytes");
        }
    }
}
