//! Spaces of passwords: the allowed bytes at each position.

use std::fmt;

/// The bytes of the first word of a message.
const FAST_BYTES: usize = size_of::<u32>();
/// More candidates than this that only differ in the first word would not be faster.
const ENOUGH: usize = 500;
/// The most of these: a scan that is stopped has tested some in vain.
pub(super) const ROW_CANDIDATES: usize = 10_000;

/// A space of candidates: the passwords of one length that have at each position one of a list of bytes.
///
/// Candidates are numbered from 0 to [`size`](Self::size) in dictionary order: the last position varies fastest.
/// There is one exception, because digests are fastest for candidates that only differ in their first four bytes: in
/// passwords longer than that, the last positions among the first four vary faster than all others. So passwords that
/// begin with the same letters still come one after the other, and before those that begin with later ones.
///
/// ```
/// use kendall_digest::password::Mask;
///
/// let mask = Mask::uniform(b"abcdefghijklmnopqrstuvwxyz", 3)?;
/// assert_eq!(mask.size(), 17_576);
/// assert_eq!(mask.password(27), b"abb");
/// assert_eq!(mask.number(b"abb"), Some(27));
/// # Ok::<(), kendall_digest::password::MaskError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mask {
    charsets: Vec<Vec<u8>>,
    /// The positions, from the one that varies fastest.
    order: Vec<usize>,
    /// The number of these that are among the first four bytes and vary faster than all others.
    fast: usize,
    size: u64,
}

/// The error of an invalid mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// A password needs at least one byte, and must fit one block of the digest.
    #[error("the passwords have {0} bytes; they must have 1 to {longest}", longest = Mask::LONGEST)]
    Length(usize),
    /// The list of a position is empty.
    #[error("no byte is allowed at position {position} of the password; list at least one")]
    Nothing {
        /// The position, from 1.
        position: usize,
    },
    /// A byte is listed twice, so the same candidate would have two numbers.
    #[error("byte {byte:#04x} is listed twice for position {position} of the password")]
    Twice {
        /// The position, from 1.
        position: usize,
        /// The byte.
        byte: u8,
    },
    /// The indices of the candidates would not fit 64 bits.
    #[error("the mask has 2^64 candidates or more; use fewer characters or a shorter password")]
    TooLarge,
}

impl Mask {
    /// The most bytes of a password: the capacity of one block of either digest.
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
        let word = charsets.len().min(FAST_BYTES);
        let fast = fast(&charsets[..word]);
        let order =
            (word - fast..word).rev().chain((word..charsets.len()).rev()).chain((0..word - fast).rev());
        let order = order.collect();
        Ok(Self { charsets, order, fast, size })
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

    /// The number of candidates.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes allowed at each position.
    pub fn charsets(&self) -> &[Vec<u8>] {
        &self.charsets
    }

    /// The positions, from the one that varies fastest on.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The number of positions at the start of the [order](Self::order) that are in the first word of the message.
    pub(super) fn fast(&self) -> usize {
        self.fast
    }

    /// The candidate of this number.
    ///
    /// # Panics
    /// Panics if there are no more than `number` candidates.
    pub fn password(&self, number: u64) -> Vec<u8> {
        assert!(number < self.size, "candidate {number} of {}", self.size);
        let mut password = vec![0; self.charsets.len()];
        let mut rest = number;
        for &position in &self.order {
            let charset = &self.charsets[position];
            password[position] = charset[(rest % charset.len() as u64) as usize];
            rest /= charset.len() as u64;
        }
        password
    }

    /// The number of this password, if it is a candidate.
    pub fn number(&self, password: &[u8]) -> Option<u64> {
        if password.len() != self.charsets.len() {
            return None;
        }
        self.order.iter().rev().try_fold(0, |number, &position| {
            let charset = &self.charsets[position];
            let digit = charset.iter().position(|allowed| *allowed == password[position])?;
            Some(number * charset.len() as u64 + digit as u64)
        })
    }
}

/// The number of last positions of the first word that should vary faster than all others: enough for the candidates
/// to fill vectors, and at most as many as their table can hold.
fn fast(word: &[Vec<u8>]) -> usize {
    let mut candidates = 1;
    for (fast, charset) in word.iter().rev().enumerate() {
        if candidates >= ENOUGH || fast > 0 && candidates * charset.len() > ROW_CANDIDATES {
            return fast;
        }
        candidates *= charset.len();
    }
    word.len()
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
    fn short_candidates_come_as_in_a_dictionary() {
        let mask = Mask::new([&b"ab"[..], b"x", b"123"]).unwrap();
        let all: Vec<_> = (0..mask.size()).map(|number| mask.password(number)).collect();
        assert_eq!(all, [b"ax1", b"ax2", b"ax3", b"bx1", b"bx2", b"bx3"]);
        let mask = Mask::uniform(b"abcdefghij", 4).unwrap();
        assert!((0..mask.size()).map(|number| mask.password(number)).is_sorted());
    }

    #[test]
    fn of_long_candidates_the_beginnings_come_as_in_a_dictionary() {
        let letters: Vec<u8> = (b'a'..=b'z').collect();
        for length in 5..9 {
            let mask = Mask::uniform(&letters, length).unwrap();
            let step = mask.size() / 9973;
            let beginnings = (0..9973).map(|i| mask.password(i * step)[..2].to_vec());
            assert!(beginnings.is_sorted(), "{length}");
            let first: Vec<_> = [0, 1, 26, 676].map(|number| mask.password(number)).into();
            let rest = "a".repeat(length - 5);
            let expected = [
                format!("aaaa{rest}a"),
                format!("aaab{rest}a"),
                format!("aaba{rest}a"),
                format!("aaaa{rest}b"),
            ];
            assert_eq!(first, expected.map(String::into_bytes));
        }
    }

    #[test]
    fn a_password_outside_the_mask_has_no_number() {
        let mask = Mask::uniform(b"abc", 3).unwrap();
        for other in ["", "ab", "abcd", "abd"] {
            assert_eq!(mask.number(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn invalid_masks_are_rejected() {
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
