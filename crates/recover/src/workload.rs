//! The requests that a client sends: files of one size, encrypted under passwords that are drawn, derived and prepared
//! before the first one is sent, so that their preparation disturbs no measurement.
//!
//! All plain files repeat one random piece, so each password costs the memory of that piece, whatever the size of the
//! files. The cipher's blocks do not depend on each other, so the encrypted file repeats a piece, too.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use kendall_digest::password::{md5, sha1, sha256};
use kendall_digest::{Engine, pbkdf2};
use kendall_load::{
    Body, ConnectionKind, Dialog, Dialogs, Request, RequestClass, Reuse, Route, Wire, Workload,
};
use kendall_stats::random::{Purpose, Rng, stream};
use rand::{Rng as _, RngExt as _};

use crate::cipher::{BLOCK, Cipher, encrypted_bytes};
use crate::client::{Client, Pattern, id};
use crate::keys::{Key, ROUNDS, SALT};
use crate::protocol::{Dialect, Head};
use crate::search::Hash;
use crate::words::Words;

/// The piece that plain files repeat: a whole number of blocks, and as much as a socket accepts at once.
const PIECE_BYTES: usize = 64 * 1024;
/// The most memory of the pieces of all passwords.
const MOST_BYTES: usize = 1 << 30;
/// The number of keys derived at once: several times the capacity of the widest vectors.
const KEYS_AT_ONCE: usize = 64;

/// The algorithm of the digests that clients send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-1.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
    /// MD5.
    Md5,
}

impl Algorithm {
    /// Every algorithm, in the order in which they are listed to users.
    pub const ALL: [Self; 3] = [Self::Sha1, Self::Sha256, Self::Md5];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Md5 => "md5",
        }
    }

    /// The digest of this name.
    ///
    /// # Errors
    /// Fails on any other name, with a list of the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| format!("must be sha1, sha256 or md5, not {name:?}"))
    }

    /// The digest of a password.
    pub fn hash(self, password: &[u8]) -> Hash {
        match self {
            Self::Sha1 => Hash::Sha1(sha1(password)),
            Self::Sha256 => Hash::Sha256(sha256(password)),
            Self::Md5 => Hash::Md5(md5(password)),
        }
    }
}

/// The parameters of the requests.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The dialect of the protocol.
    pub dialect: Dialect,
    /// The number of lower-case letters of a password that is not a word of the list.
    pub length: usize,
    /// The probability that a password is a word of the list, in per cent.
    pub dictionary_percent: f64,
    /// The list. Only its words of the given length in lower-case letters are used, which any strategy can find.
    pub words: Arc<Words>,
    /// The length of a plain file.
    pub file_bytes: u64,
    /// The number of prepared passwords; the next request has the first again.
    pub passwords: usize,
    /// The digest of passwords.
    pub algorithm: Algorithm,
}

/// The reason why parameters are not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ParameterError {
    #[error("length is {0}; passwords must have 1 to 12 letters")]
    Length(usize),
    #[error("dictionary-percent is {0}; it must lie between 0 and 100")]
    Dictionary(f64),
    #[error(
        "the list of words has no word of {0} lower-case letters; give another length, or another list (dictionary)"
    )]
    NoWords(usize),
    #[error("passwords is {0}; it must lie between 1 and {most}", most = MOST_BYTES / PIECE_BYTES)]
    Passwords(usize),
}

/// A prepared password.
#[derive(Clone, Debug)]
struct Prepared {
    class: u32,
    head: Head,
    body: Body,
}

/// The workload of file recovery against one server.
#[derive(Debug)]
pub struct RecoverWorkload {
    server: SocketAddr,
    dialect: Dialect,
    plain: Pattern,
    prepared: Vec<Prepared>,
    /// The probability of a word of the list.
    words_share: f64,
}

impl Parameters {
    /// Checks that the parameters are valid.
    ///
    /// # Errors
    /// Fails on an invalid length or probability, and on more passwords than memory should hold.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if !(1..=12).contains(&self.length) {
            Err(ParameterError::Length(self.length))
        } else if !(0.0..=100.0).contains(&self.dictionary_percent) {
            Err(ParameterError::Dictionary(self.dictionary_percent))
        } else if !(1..=MOST_BYTES / PIECE_BYTES).contains(&self.passwords) {
            Err(ParameterError::Passwords(self.passwords))
        } else {
            Ok(())
        }
    }

    /// The password with this number, and whether it is a word of the list: a pure function of seed and number.
    fn password(&self, fitting: &[&[u8]], seed: u64, number: u64) -> (Vec<u8>, bool) {
        let mut rng = stream(seed, Purpose::Request, number);
        if rng.random::<f64>() * 100.0 < self.dictionary_percent {
            return (fitting[rng.random_range(0..fitting.len())].to_vec(), true);
        }
        ((0..self.length).map(|_| rng.random_range(b'a'..=b'z')).collect(), false)
    }
}

impl RecoverWorkload {
    /// The requests of one seed, for one server. Derives all keys, which takes seconds for thousands.
    ///
    /// # Errors
    /// Fails on [invalid parameters](Parameters::validate), and if words are needed and the list has none that fits.
    pub fn new(
        server: SocketAddr,
        parameters: &Parameters,
        engine: Engine,
        seed: u64,
    ) -> Result<Self, ParameterError> {
        parameters.validate()?;
        let fits = |word: &&[u8]| word.len() == parameters.length && word.iter().all(u8::is_ascii_lowercase);
        let fitting: Vec<&[u8]> = parameters.words.iter().filter(fits).collect();
        if fitting.is_empty() && parameters.dictionary_percent > 0.0 {
            return Err(ParameterError::NoWords(parameters.length));
        }
        let passwords: Vec<(Vec<u8>, bool)> = (0..parameters.passwords as u64)
            .map(|number| parameters.password(&fitting, seed, number))
            .collect();
        let plain = Pattern { piece: piece(seed, parameters.file_bytes), length: parameters.file_bytes };
        let prepare = |((password, is_word), key): (&(Vec<u8>, bool), Key)| Prepared {
            class: u32::from(*is_word),
            head: Head {
                id: 0,
                hash: parameters.algorithm.hash(password),
                lengths: password.len()..=password.len(),
                file_bytes: encrypted_bytes(plain.length),
            },
            body: encrypted(&plain, &Cipher::new(key)),
        };
        let keys = keys(engine, &passwords);
        let prepared = passwords.iter().zip(keys).map(prepare).collect();
        let words_share = parameters.dictionary_percent / 100.0;
        Ok(Self { server, dialect: parameters.dialect, plain, prepared, words_share })
    }

    /// The number of prepared passwords that are words of the list.
    pub fn words(&self) -> usize {
        self.prepared.iter().filter(|prepared| prepared.class > 0).count()
    }

    fn prepared(&self, index: u64) -> &Prepared {
        &self.prepared[(index % self.prepared.len() as u64) as usize]
    }
}

/// The piece that plain files of this many bytes repeat.
fn piece(seed: u64, file_bytes: u64) -> Bytes {
    let length =
        usize::try_from(file_bytes).unwrap_or(usize::MAX).next_multiple_of(BLOCK).clamp(BLOCK, PIECE_BYTES);
    let mut piece = vec![0; length];
    let mut rng: Rng = stream(seed, Purpose::Class, 0);
    rng.fill_bytes(&mut piece);
    piece.into()
}

/// A plain file, encrypted.
fn encrypted(plain: &Pattern, cipher: &Cipher) -> Body {
    let mut piece = plain.piece.to_vec();
    cipher.encrypt_blocks(&mut piece);
    let rest = (plain.length % BLOCK as u64) as usize;
    let repeated_bytes = plain.length - rest as u64;
    let at = (repeated_bytes % plain.piece.len() as u64) as usize;
    let end = cipher.last_block(&plain.piece[at..at + rest]);
    Body { piece: piece.into(), repeated_bytes, end: Bytes::copy_from_slice(&end) }
}

/// The keys of passwords, on all processors.
fn keys(engine: Engine, passwords: &[(Vec<u8>, bool)]) -> Vec<Key> {
    let derive = |batch: &[(Vec<u8>, bool)]| -> Vec<Key> {
        let passwords: Vec<&[u8]> = batch.iter().map(|(password, _)| password.as_slice()).collect();
        let blocks = pbkdf2::derive(engine, &passwords, SALT, ROUNDS);
        blocks.iter().map(|block| *block.first_chunk().expect("a block is longer than a key")).collect()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = passwords.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let derive_all = |share: &[(Vec<u8>, bool)]| share.chunks(KEYS_AT_ONCE).flat_map(derive).collect();
        let threads: Vec<_> = passwords
            .chunks(share)
            .map(|share| scope.spawn(move || -> Vec<Key> { derive_all(share) }))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("deriving keys does not panic")).collect()
    })
}

impl Workload for RecoverWorkload {
    fn request(&self, index: u64) -> Request {
        let Prepared { class, head, body } = self.prepared(index);
        let head = Head { id: id(self.dialect, index), ..head.clone() };
        Request { class: *class, bytes: head.encode(self.dialect).into(), body: Some(body.clone()) }
    }

    /// One class for random passwords and one for words of the list, if there are any.
    fn classes(&self) -> Vec<RequestClass> {
        match self.words_share {
            0.0 => vec![RequestClass::new("all", 1.0)],
            share => [("random", 1.0 - share), ("dictionary", share)]
                .map(|(name, share)| RequestClass { share: Some(share), ..RequestClass::new(name, 1.0) })
                .into(),
        }
    }

    fn route(&self) -> Route<'_> {
        let wire = Wire { to: self.server, kind: ConnectionKind::TCP, reuse: Reuse::Close };
        Route::Bytes(wire, self)
    }
}

impl Dialogs for RecoverWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Client::new(self.dialect, self.plain.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            dialect: Dialect::Course,
            length: 4,
            dictionary_percent: 0.0,
            words: Arc::new(Words::of(b"test\n1234\nhello\nmore\n".to_vec())),
            file_bytes: 1000,
            passwords: 3,
            algorithm: Algorithm::Sha1,
        }
    }

    fn workload(parameters: &Parameters, seed: u64) -> RecoverWorkload {
        let server = "127.0.0.1:3333".parse().unwrap();
        RecoverWorkload::new(server, parameters, Engine::Portable, seed).unwrap()
    }

    fn body(request: &Request) -> Vec<u8> {
        let (body, mut bytes) = (request.body.as_ref().unwrap(), Vec::new());
        while (bytes.len() as u64) < body.length() {
            bytes.extend_from_slice(body.from(bytes.len() as u64));
        }
        bytes
    }

    /// The bytes that go out are those of the whole file encrypted at once.
    #[test]
    fn a_request_carries_the_plain_file_encrypted_under_its_password() {
        let piece = PIECE_BYTES as u64;
        for file_bytes in [0, 1, 16, 1000, piece - 1, piece, piece + 17, 3 * piece + 5] {
            let parameters = Parameters { file_bytes, passwords: 1, ..parameters() };
            let workload = workload(&parameters, 1);
            let (password, _) = parameters.password(&[], 1, 0);
            let [key] = keys(Engine::Portable, &[(password.clone(), false)])[..] else { panic!("one key") };
            let plain: Vec<u8> =
                workload.plain.piece.iter().copied().cycle().take(file_bytes as usize).collect();
            let mut expected = Vec::new();
            Cipher::new(key).encrypt(plain.as_slice(), &mut expected).unwrap();
            let request = workload.request(0);
            assert!(body(&request) == expected, "{file_bytes}");
            let (head, used) = Head::decode(&request.bytes, Dialect::Course).unwrap();
            assert_eq!((used, head.file_bytes), (request.bytes.len(), expected.len() as u64));
            assert!(head.hash.is_of(&password));
        }
    }

    #[test]
    fn requests_depend_on_seed_and_index_alone_and_passwords_return() {
        let (one, again, other) =
            (workload(&parameters(), 5), workload(&parameters(), 5), workload(&parameters(), 6));
        assert_eq!(one.request(1), again.request(1));
        assert_ne!(one.request(1), other.request(1));
        assert_ne!(one.request(1), one.request(2));
        assert_eq!(one.request(1), one.request(4));
        let with_id = workload(&Parameters { dialect: Dialect::WithId, ..parameters() }, 5);
        assert_eq!(with_id.request(4).bytes[..4], [0, 0, 0, 4]);
        assert_eq!(with_id.request(4).bytes[4..], one.request(1).bytes[..]);
    }

    /// Five standard errors: a false alarm in 1.7 million.
    #[test]
    fn words_have_the_given_probability_and_length() {
        let parameters = Parameters { dictionary_percent: 30.0, ..parameters() };
        let fitting: [&[u8]; 2] = [b"test", b"more"];
        let n = 20_000;
        let words = (0..n).filter(|number| {
            let (password, is_word) = parameters.password(&fitting, 3, *number);
            assert_eq!(password.len(), 4);
            is_word
        });
        assert!((words.count() as f64 - 6000.0).abs() < 5.0 * (20_000.0f64 * 0.21).sqrt());
        let workload = workload(&Parameters { dictionary_percent: 100.0, ..parameters }, 1);
        assert_eq!((workload.words(), workload.classes().len(), workload.request(0).class), (3, 2, 1));
        let (head, _) = Head::decode(&workload.request(0).bytes, Dialect::Course).unwrap();
        assert!(fitting.iter().any(|word| head.hash.is_of(word)));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let refused = |parameters: Parameters| parameters.validate().unwrap_err().to_string();
        assert!(refused(Parameters { length: 0, ..parameters() }).contains("length is 0"));
        assert!(
            refused(Parameters { dictionary_percent: f64::NAN, ..parameters() })
                .contains("dictionary-percent")
        );
        assert!(refused(Parameters { passwords: 0, ..parameters() }).contains("passwords is 0"));
        let wordless = Parameters { length: 9, dictionary_percent: 1.0, ..parameters() };
        let server = "127.0.0.1:3333".parse().unwrap();
        let error = RecoverWorkload::new(server, &wordless, Engine::Portable, 1).unwrap_err();
        assert_eq!(error, ParameterError::NoWords(9));
    }
}
