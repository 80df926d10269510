//! The group of OPAQUE's key exchange: ristretto255 as in `opaque-ke`, byte for byte, with one difference. A public key is
//! computed by a table of multiples of the base point, which takes a third of the time; a registration has one such
//! computation and a log-in three.

use std::fmt;

use curve25519_dalek_of_opaque::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek_of_opaque::scalar::Scalar;
use curve25519_dalek_of_opaque::traits::IsIdentity;
use opaque_ke::Ristretto255;
use opaque_ke::errors::{InternalError, ProtocolError};
use opaque_ke::generic_array::GenericArray;
use opaque_ke::generic_array::typenum::U32;
use opaque_ke::key_exchange::group::Group;
use opaque_ke::key_exchange::tripledh::DiffieHellman;
use rand_core_of_opaque::{CryptoRng, RngCore};
use zeroize::ZeroizeOnDrop;

/// The group.
#[derive(Debug)]
pub(crate) struct KeyGroup;

/// A public key: any point but the identity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Public(RistrettoPoint);

/// A secret key: any scalar but 0.
#[derive(Clone, ZeroizeOnDrop)]
pub(crate) struct SecretScalar(Scalar);

impl fmt::Debug for SecretScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretScalar(***)")
    }
}

impl Group for KeyGroup {
    type Pk = Public;
    type PkLen = U32;
    type Sk = SecretScalar;
    type SkLen = U32;

    fn serialize_pk(key: &Public) -> GenericArray<u8, U32> {
        key.0.compress().to_bytes().into()
    }

    fn deserialize_take_pk(bytes: &mut &[u8]) -> Result<Public, ProtocolError> {
        let point = CompressedRistretto(take(bytes)?).decompress().filter(|point| !point.is_identity());
        point.map(Public).ok_or(ProtocolError::SerializationError)
    }

    fn random_sk<R: RngCore + CryptoRng>(rng: &mut R) -> SecretScalar {
        loop {
            let scalar = Scalar::random(rng);
            if scalar != Scalar::ZERO {
                return SecretScalar(scalar);
            }
        }
    }

    fn derive_scalar(seed: GenericArray<u8, U32>) -> Result<SecretScalar, InternalError> {
        let derived = Ristretto255::serialize_sk(&Ristretto255::derive_scalar(seed)?);
        // It has come from a scalar, so it is below the order.
        Ok(SecretScalar(Scalar::from_bytes_mod_order(derived.into())))
    }

    fn public_key(key: &SecretScalar) -> Public {
        Public(RistrettoPoint::mul_base(&key.0))
    }

    fn serialize_sk(key: &SecretScalar) -> GenericArray<u8, U32> {
        key.0.to_bytes().into()
    }

    fn deserialize_take_sk(bytes: &mut &[u8]) -> Result<SecretScalar, ProtocolError> {
        let scalar = Scalar::from_canonical_bytes(take(bytes)?).into_option();
        let scalar = scalar.filter(|scalar| *scalar != Scalar::ZERO);
        scalar.map(SecretScalar).ok_or(ProtocolError::SerializationError)
    }
}

impl DiffieHellman<KeyGroup> for SecretScalar {
    fn diffie_hellman(&self, key: &Public) -> GenericArray<u8, U32> {
        KeyGroup::serialize_pk(&Public(key.0 * self.0))
    }
}

fn take(bytes: &mut &[u8]) -> Result<[u8; 32], ProtocolError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(ProtocolError::SizeError {
        name: "a key",
        len: 32,
        actual_len: bytes.len(),
    })?;
    *bytes = rest;
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use rand_core_of_opaque::OsRng;

    use super::*;

    /// That of the library.
    type Usual = Ristretto255;

    #[test]
    fn keys_and_secrets_are_those_of_the_library() {
        for byte in 0..50 {
            let seed = GenericArray::from([byte; 32]);
            let (key, usual) = (KeyGroup::derive_scalar(seed).unwrap(), Usual::derive_scalar(seed).unwrap());
            assert_eq!(KeyGroup::serialize_sk(&key), Usual::serialize_sk(&usual));
            let public = KeyGroup::serialize_pk(&KeyGroup::public_key(&key));
            assert_eq!(public, Usual::serialize_pk(&Usual::public_key(&usual)));
            let peer = KeyGroup::serialize_pk(&KeyGroup::public_key(&KeyGroup::random_sk(&mut OsRng)));
            let ours = KeyGroup::deserialize_take_pk(&mut peer.as_slice()).unwrap();
            let theirs = Usual::deserialize_take_pk(&mut peer.as_slice()).unwrap();
            assert_eq!(key.diffie_hellman(&ours), usual.diffie_hellman(&theirs));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_as_by_the_library() {
        let beyond_the_order = [0xff; 32];
        for bytes in [&[0; 32][..], &beyond_the_order, &[1; 31]] {
            assert!(KeyGroup::deserialize_take_pk(&mut &*bytes).is_err());
            assert!(Usual::deserialize_take_pk(&mut &*bytes).is_err());
            assert!(KeyGroup::deserialize_take_sk(&mut &*bytes).is_err());
            assert!(Usual::deserialize_take_sk(&mut &*bytes).is_err());
        }
    }
}
