//! Public keys, secret keys and the key that two of them share. Secrets are erased when dropped, printed as `***` and
//! compared in constant time.

use crate::x25519;
use dryoc::classic::crypto_box::{
    crypto_box_detached_afternm_inplace, crypto_box_open_detached_afternm_inplace,
};
use dryoc::classic::crypto_core::crypto_core_hsalsa20;
use rand_core::CryptoRng;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The number of bytes by which a box is longer than its contents: the Poly1305 tag, which comes first.
pub const TAG: usize = 16;

/// A Curve25519 public key, long-term or short-term.
#[derive(Clone, Copy)]
pub struct PublicKey(pub [u8; 32]);

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for PublicKey {}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A Curve25519 secret key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// Takes the 32 bytes of a key file.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Draws a new key.
    pub fn generate(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut key = Self([0; 32]);
        rng.fill_bytes(&mut key.0);
        key
    }

    /// The 32 bytes, for a key file.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The public key that belongs to this one.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(x25519::public_key(&self.0))
    }

    /// The key for boxes between this key and `peer` (NaCl's `crypto_box_beforenm`): HSalsa20 of the X25519 secret.
    ///
    /// `None` where `peer` is a point of low order: everyone would know the key.
    pub fn box_key(&self, peer: &PublicKey) -> Option<BoxKey> {
        let shared = x25519::shared(&self.0, &peer.0)?;
        Some(BoxKey(hsalsa20(&shared, &[0; 16])))
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(***)")
    }
}

/// The key that two key pairs share; it seals and opens boxes (XSalsa20-Poly1305) in place.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct BoxKey(pub(crate) [u8; 32]);

impl BoxKey {
    /// Encrypts `boxed[16..]` in place and writes the tag to `boxed[..16]`.
    ///
    /// # Panics
    /// Where `boxed` is shorter than a tag.
    pub fn seal(&self, nonce: &[u8; 24], boxed: &mut [u8]) {
        let (tag, text) = boxed.split_first_chunk_mut().expect("a box has at least its tag");
        crypto_box_detached_afternm_inplace(text, tag, nonce, &self.0);
    }

    /// Decrypts `boxed[16..]` in place and returns it; `None`, with `boxed` unchanged, where the tag is wrong.
    pub fn open<'a>(&self, nonce: &[u8; 24], boxed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (tag, text) = boxed.split_first_chunk_mut()?;
        crypto_box_open_detached_afternm_inplace(text, tag, nonce, &self.0).ok()?;
        Some(text)
    }
}

impl fmt::Debug for BoxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxKey(***)")
    }
}

/// How much of the stack [`erasing_stack`] overwrites: more than any function here takes with all that it calls, also in a
/// test build.
const STACK_BYTES: usize = 32 << 10;

/// Works with keys, then overwrites what that left on the stack. Values that erase themselves when dropped still leave
/// copies where they were moved from, and ciphers leave what they spilled from registers.
///
/// This must happen before anything else is moved to the heap: bytes of a value that are not in use, as between its
/// fields, are copied with it, and until they are written they are what the stack held before. The result must not hold a
/// key, but may be a box that does.
pub(crate) fn erasing_stack<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    erase();
    result
}

/// Runs the work in a separate stack frame below the caller's.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn erase() {
    let mut area = [0_u8; STACK_BYTES];
    // The compiler must believe that the zeros are read.
    std::hint::black_box(&mut area);
}

/// HSalsa20: a pseudorandom function from 16 bytes to a key.
pub(crate) fn hsalsa20(key: &[u8; 32], input: &[u8; 16]) -> [u8; 32] {
    let mut output = [0; 32];
    crypto_core_hsalsa20(&mut output, input, key, None);
    output
}

/// A nonce of 24 bytes from its constant beginning and its end.
pub(crate) fn nonce<const P: usize, const E: usize>(prefix: &[u8; P], end: &[u8; E]) -> [u8; 24] {
    const { assert!(P + E == 24) };
    let mut nonce = [0; 24];
    nonce[..P].copy_from_slice(prefix);
    nonce[P..].copy_from_slice(end);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::DirectionKey;

    #[test]
    fn secrets_are_erased_when_dropped() {
        fn erases<T: ZeroizeOnDrop>() {}
        erases::<SecretKey>();
        erases::<BoxKey>();
        erases::<DirectionKey>();
        let mut key = SecretKey::from_bytes([7; 32]);
        key.zeroize();
        assert_eq!(key.as_bytes(), &[0; 32]);
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret = SecretKey::from_bytes([171; 32]);
        let shared = secret.box_key(&SecretKey::from_bytes([3; 32]).public_key()).unwrap();
        let direction = DirectionKey::new(shared.clone(), b"CurveCP-client-M");
        assert_eq!(
            format!("{secret:?} {shared:?} {direction:?}"),
            "SecretKey(***) BoxKey(***) DirectionKey(***)"
        );
        assert_eq!(format!("{:?}", PublicKey([171; 32])), "ab".repeat(32));
    }
}
