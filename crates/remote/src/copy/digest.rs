//! The digest of a file's content as it is sent: BLAKE3 of the bytes; where there are holes, also of where these are.
//!
//! Zeros in holes are not hashed, so a sparse file costs what its data costs.

/// Computes the digest of content that arrives in order.
#[derive(Debug, Default)]
pub(crate) struct ContentHasher {
    data: blake3::Hasher,
    holes: Option<blake3::Hasher>,
    offset: u64,
}

impl ContentHasher {
    /// Content that begins at an offset of its file.
    pub(crate) fn from_offset(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// The position of the next bytes in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes.
    pub(crate) fn data(&mut self, bytes: &[u8]) {
        self.data.update(bytes);
        self.offset += bytes.len() as u64;
    }

    /// A hole of this length comes next.
    pub(crate) fn hole(&mut self, length: u64) {
        let holes = self.holes.get_or_insert_default();
        holes.update(&self.offset.to_le_bytes()).update(&length.to_le_bytes());
        self.offset += length;
    }

    /// The digest.
    pub(crate) fn finish(&mut self) -> [u8; 32] {
        if let Some(holes) = self.holes.take() {
            self.data.update(holes.finalize().as_bytes());
        }
        *self.data.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_without_holes_has_the_digest_that_b3sum_prints() {
        let mut hasher = ContentHasher::default();
        hasher.data(b"ab");
        hasher.data(b"c");
        // The test vector of BLAKE3 for "abc".
        let expected = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(blake3::Hash::from_bytes(hasher.finish()).to_hex().as_str(), expected);
    }

    #[test]
    fn the_place_of_a_hole_counts() {
        let digest = |parts: &[Option<u64>]| {
            let mut hasher = ContentHasher::default();
            for part in parts {
                match part {
                    Some(hole) => hasher.hole(*hole),
                    None => hasher.data(b"x"),
                }
            }
            hasher.finish()
        };
        assert_ne!(digest(&[None, Some(9)]), digest(&[Some(9), None]));
        assert_ne!(digest(&[Some(9), None]), digest(&[Some(8), None]));
    }
}
