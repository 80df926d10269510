//! The start of the rounds of a derivation.

use ::sha1::{Digest as _, Sha1};

use crate::password::compress::{compress, initial};
use crate::vector::Streams;

/// The bytes of a digest.
pub(super) const BLOCK_BYTES: usize = 20;

/// The state of SHA-1, and so a digest, as words.
pub(super) type State = [u32; 5];

/// The values from which the rounds of one derivation start.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    /// The states after the two keys of HMAC, each a block long.
    pub(super) inner: State,
    pub(super) outer: State,
    /// The digest of the first round.
    pub(super) first: State,
}

impl Chain {
    pub(super) fn new(password: &[u8], salt: &[u8]) -> Self {
        let mut key = [0; 64];
        if password.len() > key.len() {
            key[..BLOCK_BYTES].copy_from_slice(&Sha1::digest(password));
        } else {
            key[..password.len()].copy_from_slice(password);
        }
        let [inner_key, outer_key] = [0x36, 0x5c].map(|pad| key.map(|byte| byte ^ pad));
        let inner = Sha1::new().chain_update(inner_key).chain_update(salt).chain_update(1u32.to_be_bytes());
        let first = Sha1::new().chain_update(outer_key).chain_update(inner.finalize()).finalize();
        let [inner, outer] = [inner_key, outer_key].map(|key| after_block(&key));
        Self { inner, outer, first: to_words(&first.into()) }
    }
}

fn to_words(bytes: &[u8; BLOCK_BYTES]) -> State {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|i| u32::from_be_bytes(words[i]))
}

/// The state of SHA-1 after one block.
fn after_block(block: &[u8; 64]) -> State {
    let (words, _) = block.as_chunks();
    let words = std::array::from_fn(|i| Streams([u32::from_be_bytes(words[i])]));
    compress(&initial::<u32, 1>(), words).map(|word| word.0[0])
}
