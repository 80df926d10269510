//! The wire, in both dialects. All integers are big-endian and signed, as Java writes them.
//!
//! A request, one to a connection:
//!
//! | bytes | |
//! | ---: | --- |
//! | 4 | only with [`Dialect::WithId`]: a number that the answer repeats |
//! | 20 | SHA-1 digest of the password |
//! | 4 | how many characters the password has |
//! | 8 | how many bytes the encrypted file has |
//! | … | the encrypted file |
//!
//! An answer: with ids the number again, then 8 bytes with the length of the decrypted file, and the file. There is no error
//! message: if no password is found, the file does not fit the cipher or the server is full, it closes the connection
//! without a byte, as the server of the published study does.
//!
//! An extension uses the upper half of the number of characters, which is 0 for all other clients. Its highest byte names
//! the algorithm: 0 SHA-1, 1 SHA-256, 2 MD5. The first 20 bytes of a SHA-256 digest take the place of the digest, and the
//! other 12 follow the length of the file; 4 zero bytes follow the 16 bytes of an MD5 digest. The next byte, if it is not 0,
//! is the least number of characters of the password; the lower half is then the greatest.

use std::ops::RangeInclusive;

use crate::search::Hash;

/// The most bytes of a request before its file.
pub const HEAD_BYTES_AT_MOST: usize = 4 + 20 + 4 + 8 + 12;
/// The bytes of a block of the cipher. Encrypted files consist of whole blocks.
pub const BLOCK_BYTES: u64 = 16;

const SHA1: u8 = 0;
const SHA256: u8 = 1;
const MD5: u8 = 2;

/// The dialect of the protocol. Nothing on the wire distinguishes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect of the course.
    #[default]
    Course,
    /// The dialect of the published study: a number before each request and each answer.
    WithId,
}

impl Dialect {
    /// Every dialect, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Course, Self::WithId];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Course => "course",
            Self::WithId => "with-id",
        }
    }

    /// The dialect of this name.
    ///
    /// # Errors
    /// Fails on any other name, with a list of the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.ok_or_else(|| format!("must be course or with-id, not {name:?}"))
    }

    /// The number of bytes of an answer before its file.
    pub fn answer_head_bytes(self) -> usize {
        match self {
            Self::Course => 8,
            Self::WithId => 12,
        }
    }
}

/// A request without its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number that the answer repeats; 0 where the dialect has none.
    pub id: i32,
    /// The digest of the password.
    pub hash: Hash,
    /// The range of the password's length.
    pub lengths: RangeInclusive<usize>,
    /// The length of the encrypted file.
    pub file_bytes: u64,
}

/// The error of bytes that are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHead {
    /// The bytes are incomplete.
    Incomplete,
    /// A length is negative, or the algorithm is unknown.
    Malformed,
}

impl Head {
    /// Encodes the request. Lengths beyond 65,535 and least lengths beyond 255 are truncated.
    pub fn encode(&self, dialect: Dialect) -> Vec<u8> {
        let (algorithm, digest, rest): (u8, &[u8], &[u8]) = match &self.hash {
            Hash::Sha1(digest) => (SHA1, digest, &[]),
            Hash::Sha256(digest) => (SHA256, &digest[..20], &digest[20..]),
            Hash::Md5(digest) => (MD5, digest, &[]),
        };
        let (least, most) = (*self.lengths.start(), *self.lengths.end());
        let least = if least == most { 0 } else { u8::try_from(least).unwrap_or(u8::MAX) };
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        let characters = u32::from(algorithm) << 24 | u32::from(least) << 16 | u32::from(most);
        let mut bytes = Vec::with_capacity(HEAD_BYTES_AT_MOST);
        if dialect == Dialect::WithId {
            bytes.extend(self.id.to_be_bytes());
        }
        bytes.extend(digest);
        bytes.resize(bytes.len() + 20 - digest.len(), 0);
        bytes.extend(characters.to_be_bytes());
        bytes.extend(self.file_bytes.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    /// The request that `bytes` begin with, and its length.
    ///
    /// # Errors
    /// Fails if they are incomplete or not a request.
    pub fn decode(bytes: &[u8], dialect: Dialect) -> Result<(Self, usize), NoHead> {
        let mut fields = Fields { bytes, at: 0 };
        let id = match dialect {
            Dialect::Course => 0,
            Dialect::WithId => i32::from_be_bytes(fields.take()?),
        };
        let digest: [u8; 20] = fields.take()?;
        let [algorithm, least, most @ ..] = fields.take::<4>()?;
        let file_bytes = u64::try_from(i64::from_be_bytes(fields.take()?)).map_err(|_| NoHead::Malformed)?;
        let hash = match algorithm {
            SHA1 => Hash::Sha1(digest),
            SHA256 => {
                let mut all = [0; 32];
                all[..20].copy_from_slice(&digest);
                all[20..].copy_from_slice(&fields.take::<12>()?);
                Hash::Sha256(all)
            }
            MD5 => match digest.split_first_chunk() {
                Some((md5, [0, 0, 0, 0])) => Hash::Md5(*md5),
                _ => return Err(NoHead::Malformed),
            },
            _ => return Err(NoHead::Malformed),
        };
        let most = usize::from(u16::from_be_bytes(most));
        let lengths = if least == 0 { most..=most } else { usize::from(least)..=most };
        Ok((Self { id, hash, lengths, file_bytes }, fields.at))
    }
}

/// Reads one field after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoHead> {
        let field = self.bytes[self.at..].first_chunk().ok_or(NoHead::Incomplete)?;
        self.at += N;
        Ok(*field)
    }
}

/// The head of an answer.
pub fn encode_answer(dialect: Dialect, id: i32, file_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(dialect.answer_head_bytes());
    if dialect == Dialect::WithId {
        bytes.extend(id.to_be_bytes());
    }
    bytes.extend(file_bytes.to_be_bytes());
    bytes
}

/// The number and the length of the file that an answer begins with.
///
/// # Errors
/// Fails if the bytes are incomplete, or the length is negative.
pub fn decode_answer(bytes: &[u8], dialect: Dialect) -> Result<(i32, u64), NoHead> {
    let mut fields = Fields { bytes, at: 0 };
    let id = match dialect {
        Dialect::Course => 0,
        Dialect::WithId => i32::from_be_bytes(fields.take()?),
    };
    let file_bytes = i64::from_be_bytes(fields.take()?);
    Ok((id, u64::try_from(file_bytes).map_err(|_| NoHead::Malformed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashes() -> impl proptest::strategy::Strategy<Value = Hash> {
        prop_oneof![
            any::<[u8; 20]>().prop_map(Hash::Sha1),
            any::<[u8; 32]>().prop_map(Hash::Sha256),
            any::<[u8; 16]>().prop_map(Hash::Md5),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            id: i32, hash in hashes(), least in 1usize..256, more in 0usize..1000,
            file_bytes in 0..=i64::MAX as u64, surplus: Vec<u8>,
        ) {
            for dialect in Dialect::ALL {
                let id = if dialect == Dialect::Course { 0 } else { id };
                let head = Head { id, hash, lengths: least..=least + more, file_bytes };
                let mut bytes = head.encode(dialect);
                let length = bytes.len();
                prop_assert!(length <= HEAD_BYTES_AT_MOST);
                for cut in 0..length {
                    prop_assert_eq!(Head::decode(&bytes[..cut], dialect), Err(NoHead::Incomplete));
                }
                bytes.extend(&surplus);
                prop_assert_eq!(Head::decode(&bytes, dialect), Ok((head, length)));
                let answer = encode_answer(dialect, id, file_bytes);
                prop_assert_eq!(answer.len(), dialect.answer_head_bytes());
                prop_assert_eq!(decode_answer(&answer[..answer.len() - 1], dialect), Err(NoHead::Incomplete));
                prop_assert_eq!(decode_answer(&answer, dialect), Ok((id, file_bytes)));
            }
        }

        #[test]
        fn no_bytes_at_all_can_do_harm(bytes: Vec<u8>) {
            for dialect in Dialect::ALL {
                if let Ok((head, used)) = Head::decode(&bytes, dialect) {
                    prop_assert!(used <= bytes.len() && head.file_bytes <= i64::MAX as u64);
                }
                let _ = decode_answer(&bytes, dialect);
            }
        }
    }

    /// As `DataOutputStream` writes them: SHA-1 of "test", 4 characters, 20,496 bytes.
    #[test]
    fn the_bytes_are_those_of_the_course() {
        let digest = 0xa94a_8fe5_ccb1_9ba6_1c4c_0873_d391_e987_u128.to_be_bytes();
        let digest: [u8; 20] = [&digest[..], &[0x98, 0x2f, 0xbb, 0xd3]].concat().try_into().unwrap();
        let head = Head { id: 7, hash: Hash::Sha1(digest), lengths: 4..=4, file_bytes: 20_496 };
        let mut bytes = digest.to_vec();
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0x50, 0x10]);
        assert_eq!(head.encode(Dialect::Course), bytes);
        assert_eq!(head.encode(Dialect::WithId), [&[0, 0, 0, 7][..], &bytes].concat());
    }

    #[test]
    fn lengths_below_zero_and_unknown_algorithms_are_rejected() {
        let mut bytes = [0; 32];
        assert!(Head::decode(&bytes, Dialect::Course).is_ok());
        for (place, value) in [(24, 0x80), (20, 0xff), (20, 3)] {
            bytes[place] = value;
            assert_eq!(Head::decode(&bytes, Dialect::Course), Err(NoHead::Malformed));
            bytes[place] = 0;
        }
        bytes[20] = MD5;
        bytes[19] = 1;
        assert_eq!(Head::decode(&bytes, Dialect::Course), Err(NoHead::Malformed));
        assert_eq!(decode_answer(&[0xff; 12], Dialect::WithId), Err(NoHead::Malformed));
    }
}
