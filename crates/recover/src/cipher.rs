//! The cipher of the files: AES-128 in ECB mode with the padding of PKCS #5, the same as Java's
//! `Cipher.getInstance("AES")`.
//!
//! Blocks do not depend on each other, so files are processed in pieces of any whole number of blocks. The mode hides
//! little and does not protect against changes; it is the mode of existing files.

use std::io::{self, Read, Write};

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use crate::keys::Key;

/// The bytes of a block.
pub const BLOCK: usize = 16;
/// The size of the pieces that are read and encrypted.
const PIECE_BYTES: usize = 1 << 20;

/// The cipher under one key.
#[derive(Debug)]
pub struct Cipher(Aes128);

/// The error of a file whose end is not the cipher's padding: it was encrypted under another password, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongPadding;

impl Cipher {
    /// The cipher under this key.
    pub fn new(key: Key) -> Self {
        Self(Aes128::new(&key.into()))
    }

    /// Encrypts whole blocks in place.
    ///
    /// # Panics
    /// Panics if they are not whole.
    pub fn encrypt_blocks(&self, bytes: &mut [u8]) {
        self.0.encrypt_blocks(blocks(bytes));
    }

    /// Decrypts whole blocks in place.
    ///
    /// # Panics
    /// Panics if they are not whole.
    pub fn decrypt_blocks(&self, bytes: &mut [u8]) {
        self.0.decrypt_blocks(blocks(bytes));
    }

    /// The last, padded block of a file that ends with these bytes, fewer than a block.
    ///
    /// # Panics
    /// Panics if they are a block or more.
    pub fn last_block(&self, rest: &[u8]) -> [u8; BLOCK] {
        assert!(rest.len() < BLOCK, "it is the rest behind whole blocks");
        let mut block = [(BLOCK - rest.len()) as u8; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        self.encrypt_blocks(&mut block);
        block
    }

    /// The number of padding bytes of an encrypted last block.
    ///
    /// # Errors
    /// Fails if its end is not valid padding.
    pub fn padding(&self, mut last: [u8; BLOCK]) -> Result<usize, WrongPadding> {
        self.decrypt_blocks(&mut last);
        let padding = last[BLOCK - 1];
        let is_whole = (1..=BLOCK as u8).contains(&padding)
            && last[BLOCK - usize::from(padding)..].iter().all(|byte| *byte == padding);
        if is_whole { Ok(usize::from(padding)) } else { Err(WrongPadding) }
    }

    /// Encrypts all of `plain`; returns the number of bytes written.
    ///
    /// # Errors
    /// Fails if reading or writing does.
    pub fn encrypt(&self, mut plain: impl Read, mut encrypted: impl Write) -> io::Result<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut written = 0;
        loop {
            let read = read_full(&mut plain, &mut piece)?;
            let whole = read / BLOCK * BLOCK;
            self.encrypt_blocks(&mut piece[..whole]);
            encrypted.write_all(&piece[..whole])?;
            written += whole as u64;
            if read < PIECE_BYTES {
                encrypted.write_all(&self.last_block(&piece[whole..read]))?;
                return Ok(written + BLOCK as u64);
            }
        }
    }
}

/// The encrypted size of this many bytes.
pub fn encrypted_bytes(plain: u64) -> u64 {
    (plain / BLOCK as u64 + 1) * BLOCK as u64
}

/// Reads until the buffer is full or the input ends; returns the number of bytes.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn blocks(bytes: &mut [u8]) -> &mut [aes::Block] {
    let (blocks, rest) = Array::slice_as_chunks_mut(bytes);
    assert!(rest.is_empty(), "files are processed in whole blocks");
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key of "test".
    const KEY: u128 = 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77;

    fn cipher() -> Cipher {
        Cipher::new(KEY.to_be_bytes())
    }

    fn encrypted(plain: &[u8]) -> Vec<u8> {
        let mut encrypted = Vec::new();
        assert_eq!(cipher().encrypt(plain, &mut encrypted).unwrap(), encrypted_bytes(plain.len() as u64));
        encrypted
    }

    fn decrypted(encrypted: &[u8]) -> Result<Vec<u8>, WrongPadding> {
        let padding = cipher().padding(*encrypted.last_chunk().unwrap())?;
        let mut plain = encrypted.to_vec();
        cipher().decrypt_blocks(&mut plain);
        plain.truncate(plain.len() - padding);
        Ok(plain)
    }

    fn number(bytes: &[u8]) -> u128 {
        u128::from_be_bytes(bytes.try_into().unwrap())
    }

    /// Made with the course's class in Java 17, and again with OpenSSL.
    #[test]
    fn files_are_encrypted_as_by_the_course() {
        assert_eq!(number(&encrypted(b"hello world\n")), 0xad7f_ae94_c2dd_d187_ddac_d8cb_ec90_a40e);
        const EMPTY: u128 = 0xf7b6_ed1f_a545_3b91_81f4_018b_e806_baea;
        assert_eq!(number(&encrypted(b"")), EMPTY);
        let zeros = encrypted(&[0; 20_480]);
        assert_eq!(zeros.len(), 20_496);
        assert_eq!(number(&zeros[..16]), 0x4152_194d_684b_2dd6_3784_ef6b_d530_2258);
        assert_eq!(number(&zeros[20_480..]), EMPTY);
    }

    proptest! {
        #[test]
        fn what_is_encrypted_is_decrypted(plain in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decrypted(&encrypted(&plain)), Ok(plain));
        }
    }

    #[test]
    fn a_long_file_is_encrypted_in_pieces() {
        for length in [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES + 16] {
            let plain: Vec<u8> = (0..length).map(|i| (i * 7 + i / 255) as u8).collect();
            assert_eq!(decrypted(&encrypted(&plain)), Ok(plain));
        }
    }

    #[test]
    fn invalid_padding_is_an_error() {
        for (end, padding) in
            [([0; 2], Err(WrongPadding)), ([17; 2], Err(WrongPadding)), ([1, 2], Err(WrongPadding))]
        {
            let mut block = [9; BLOCK];
            block[BLOCK - 2..].copy_from_slice(&end);
            cipher().encrypt_blocks(&mut block);
            assert_eq!(cipher().padding(block), padding);
        }
        let mut whole = [16; BLOCK];
        cipher().encrypt_blocks(&mut whole);
        assert_eq!(cipher().padding(whole), Ok(16));
    }
}
