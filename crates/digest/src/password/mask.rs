//! Spaces of passwords: what may stand at each position.

use std::fmt;

/// A space of candidates: the passwords of one length that have at each position one of a list of bytes.
///
/// Candidates are numbered from 0 to [`size`](Self::size). The first position varies fastest, because both
/// digests are fastest at candidates that differ only in their first four bytes; so of the lower-case letters,
/// `aaa`, `baa`, … `zaa`, `aba` and so on.
///
/// ```
/// use kendall_digest::password::Mask;
///
/// let mask = Mask::uniform(b"abcdefghijklmnopqrstuvwxyz", 3)?;
/// assert_eq!(mask.size(), 17_576);
/// assert_eq!(mask.password(27), b"bba");
/// assert_eq!(mask.number(b"bba"), Some(27));
/// # Ok::<(), kendall_digest::password::MaskError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mask {
    charsets: Vec<Vec<u8>>,
    size: u64,
}

/// What is wrong with a mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// A password needs at least one byte, and must fit one block of the digest.
    #[error("passwords of {0} bytes; they must have 1 to {longest}", longest = Mask::LONGEST)]
    Length(usize),
    /// Nothing may stand there.
    #[error("nothing is allowed at position {position} of the password")]
    Nothing {
        /// The position, from 1.
        position: usize,
    },
    /// The same candidate would have two numbers.
    #[error("byte {byte:#04x} is listed twice for position {position} of the password")]
    Twice {
        /// The position, from 1.
        position: usize,
        /// The byte.
        byte: u8,
    },
    /// The numbers of the candidates would not fit 64 bits.
    #[error("the mask has 2^64 candidates or more; take fewer characters or a shorter password")]
    TooLarge,
}

impl Mask {
    /// The most bytes of a password: what one block of either digest has room for.
    pub const LONGEST: usize = 55;

    /// Passwords with, at each position, one of the bytes listed for it.
    ///
    /// # Errors
    /// Fails if there is no position or more than [`LONGEST`](Self::LONGEST), if the list of one is empty or
    /// has a byte twice, and if there are 2⁶⁴ candidates or more.
    pub fn new<Charset: Into<Vec<u8>>>(
        positions: impl IntoIterator<Item = Charset>,
    ) -> Result<Self, MaskError> {
        let charsets: Vec<Vec<u8>> = positions.into_iter().map(Into::into).collect();
        if !(1..=Self::LONGEST).contains(&charsets.len()) {
            return Err(MaskError::Length(charsets.len()));
        }
        let mut size = 1u64;
        for (charset, position) in charsets.iter().zip(1..) {
            if charset.is_empty() {
                return Err(MaskError::Nothing { position });
            }
            let mut seen = [false; 256];
            for &byte in charset {
                if std::mem::replace(&mut seen[usize::from(byte)], true) {
                    return Err(MaskError::Twice { position, byte });
                }
            }
            size = size.checked_mul(charset.len() as u64).ok_or(MaskError::TooLarge)?;
        }
        Ok(Self { charsets, size })
    }

    /// Passwords of `length` of these bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn uniform(charset: &[u8], length: usize) -> Result<Self, MaskError> {
        if length > Self::LONGEST {
            return Err(MaskError::Length(length));
        }
        Self::new(std::iter::repeat_n(charset, length))
    }

    /// How many candidates there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What may stand at each position.
    pub fn charsets(&self) -> &[Vec<u8>] {
        &self.charsets
    }

    /// The candidate of this number.
    ///
    /// # Panics
    /// Panics if there are no more than `number` candidates.
    pub fn password(&self, number: u64) -> Vec<u8> {
        assert!(number < self.size, "candidate {number} of {}", self.size);
        let mut rest = number;
        let byte = |charset: &Vec<u8>| {
            let digit = rest % charset.len() as u64;
            rest /= charset.len() as u64;
            charset[digit as usize]
        };
        self.charsets.iter().map(byte).collect()
    }

    /// The number of this password, if it is a candidate.
    pub fn number(&self, password: &[u8]) -> Option<u64> {
        if password.len() != self.charsets.len() {
            return None;
        }
        self.charsets.iter().zip(password).rev().try_fold(0, |number, (charset, byte)| {
            let digit = charset.iter().position(|allowed| allowed == byte)?;
            Some(number * charset.len() as u64 + digit as u64)
        })
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        self.charsets.iter().for_each(|charset| {
            list.entry(&charset.escape_ascii().to_string());
        });
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn charset() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::btree_set(any::<u8>(), 1..20).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn numbers_and_candidates_are_one_to_one(
            charsets in prop::collection::vec(charset(), 1..12), number: u64
        ) {
            let mask = Mask::new(charsets).unwrap();
            let number = number % mask.size();
            prop_assert_eq!(mask.number(&mask.password(number)), Some(number));
        }
    }

    #[test]
    fn numbers_follow_the_first_position_first() {
        let mask = Mask::new([&b"ab"[..], b"x", b"123"]).unwrap();
        let all: Vec<_> = (0..mask.size()).map(|number| mask.password(number)).collect();
        assert_eq!(all, [b"ax1", b"bx1", b"ax2", b"bx2", b"ax3", b"bx3"]);
    }

    #[test]
    fn what_is_no_candidate_has_no_number() {
        let mask = Mask::uniform(b"abc", 3).unwrap();
        for other in ["", "ab", "abcd", "abd"] {
            assert_eq!(mask.number(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn masks_that_make_no_sense_are_refused() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(Mask::uniform(b"a", 0), Err(MaskError::Length(0)));
        assert_eq!(Mask::uniform(b"a", 56), Err(MaskError::Length(56)));
        assert_eq!(Mask::uniform(b"a", 55).map(|mask| mask.size()), Ok(1));
        assert_eq!(Mask::new([&b"a"[..], b""]), Err(MaskError::Nothing { position: 2 }));
        assert_eq!(Mask::new(["aba"]), Err(MaskError::Twice { position: 1, byte: b'a' }));
        assert_eq!(Mask::uniform(&bytes, 8), Err(MaskError::TooLarge));
        assert!(Mask::uniform(&bytes, 7).is_ok());
    }
}
