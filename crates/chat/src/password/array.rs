//! The library's arrays as arrays of the language.

/// The bytes as an array. Lengths are those of RFC 9807; a test of each message would fail if they were not.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the suite fixes the length of each message")
}
