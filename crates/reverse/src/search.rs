//! The engine: which candidate of a range has the digest?
//!
//! A plain loop over the compression function of the `sha2` crate, which uses the processor's SHA instructions
//! where it has them. The 8 bytes of a candidate and their padding fit one block, so a candidate costs one
//! compression of a block in which only the first 8 bytes change.

use sha2::block_api::compress256;

use crate::protocol::Digest;

/// The initial state of SHA-256 (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The first candidate in `from..to` whose digest this is. Scans the whole range if there is none, so the caller
/// chooses ranges that it can wait for.
pub fn search(digest: &Digest, from: u64, to: u64) -> Option<u64> {
    let (words, _) = digest.as_chunks();
    let wanted: [u32; 8] = std::array::from_fn(|i| u32::from_be_bytes(words[i]));
    // FIPS 180-4, section 5.1.1: the message, a one bit, zeros, and the length of 64 bits.
    let mut block = [0; 64];
    block[8] = 0x80;
    block[56..].copy_from_slice(&64u64.to_be_bytes());
    (from..to).find(|candidate| {
        block[..8].copy_from_slice(&candidate.to_le_bytes());
        let mut state = INITIAL;
        compress256(&mut state, std::slice::from_ref(&block));
        state == wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::digest;
    use proptest::prelude::*;

    proptest! {
        /// Against the whole hash function, anywhere in the 64 bits.
        #[test]
        fn a_candidate_is_found_where_it_is_and_nowhere_else(
            start: u64, length in 1u64..300, offset in 0u64..300,
        ) {
            let end = start.saturating_add(length);
            let candidate = start.saturating_add(offset);
            let found = search(&digest(candidate), start, end);
            prop_assert_eq!(found, (start..end).contains(&candidate).then_some(candidate));
        }
    }

    #[test]
    fn the_ends_of_the_range_and_of_the_integers_are_right() {
        let (first, last) = (1 << 32, u64::MAX - 1);
        assert_eq!(search(&digest(first - 1), first - 5, first + 5), Some(first - 1));
        assert_eq!(search(&digest(first), first - 5, first + 5), Some(first));
        assert_eq!(search(&digest(last), last - 9, u64::MAX), Some(last));
        assert_eq!(search(&digest(u64::MAX), last - 9, u64::MAX), None);
        assert_eq!(search(&digest(0), 0, 10), Some(0));
        assert_eq!(search(&digest(5), 5, 5), None);
        assert_eq!(search(&digest(5), 9, 1), None);
    }
}
