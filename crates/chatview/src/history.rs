//! The messages with contacts, kept encrypted on this machine: one file for each contact, to which records are appended.
//!
//! | part of a file | bytes |
//! | --- | --- |
//! | magic | 8 |
//! | name of the file's content, drawn at random | 16 |
//! | records: length of the rest (big-endian), nonce, ciphertext and tag | 4, 24, … |
//!
//! A record is an [`Entry`] in JSON under XChaCha20-Poly1305. Its associated data are the file's name and the number of the record,
//! so records can be neither moved nor left out; only the newest can be cut off. The names of files are hashes under the
//! key: who the contacts are, they do not say.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use dryoc::classic::crypto_aead_xchacha20poly1305_ietf as aead;
use kendall_chatcli::replace;
use kendall_files::append;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"kchat 1\n";
const NAME: usize = 16;
const NONCE: usize = 24;
const TAG: usize = 16;
/// The longest record: a message with every byte escaped, and what is around it.
const MOST_RECORD: usize = 512 << 10;
/// No file of a key is as long.
const MOST_KEY: u64 = 1024;
/// A file up to this length is read whatever the limit, and shortened then.
const MOST_FILE: u64 = 1 << 30;

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    /// A message of the user or the contact.
    Said {
        /// Whether the user wrote the entry.
        own: bool,
        /// The time of the entry, as Unix time in milliseconds by the clock of its author.
        at_ms: u64,
        /// The text of the message.
        text: String,
    },
    /// A message of the user has arrived.
    Delivered {
        /// Which, by its time: no two messages of the user to a contact have the same.
        at_ms: u64,
    },
}

/// The reason why the history cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum HistoryError {
    #[error("cannot use the history {}: {source}; start with --history off to go on without it", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "the history {} is damaged or was made with another key; move it away to begin a new one, or start with --history off",
        .0.display()
    )]
    Damaged(PathBuf),
    #[error("the history key {} has {found} bytes in place of 32; restore it, or move it and the history away", path.display())]
    Key { path: PathBuf, found: usize },
    #[error("cannot write the history: {0}")]
    Replace(String),
}

/// The histories of a profile.
pub struct History {
    folder: PathBuf,
    key: Zeroizing<[u8; 32]>,
    /// The size from which on a file is shortened, in bytes.
    limit: u64,
}

/// The contents of a history file.
#[derive(Debug, Default)]
pub struct Recalled {
    /// All entries that are kept, the oldest first.
    pub entries: Vec<Entry>,
    /// Bytes of a last record that a crash has cut off.
    pub torn: u64,
}

/// A file to which records are appended.
pub struct Log {
    path: PathBuf,
    file: File,
    name: [u8; NAME],
    records: u64,
    bytes: u64,
}

impl History {
    /// Opens the histories of a profile's folder, and makes their key at the first time.
    ///
    /// # Errors
    /// Fails where the folder or the key cannot be used.
    pub fn open(profile: &Path, limit: u64) -> Result<Self, HistoryError> {
        let folder = profile.join("history");
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| HistoryError::File { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(at(&folder))?;
        let path = profile.join("history.key");
        let bytes = match kendall_files::read(&path, MOST_KEY) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Zeroizing::new(aead::crypto_aead_xchacha20poly1305_ietf_keygen().to_vec());
                replace(&path, &*key).map_err(|error| HistoryError::Replace(format!("{error:#}")))?;
                key
            }
            Err(error) => return Err(at(&path)(error)),
        };
        let key = <[u8; 32]>::try_from(bytes.as_slice())
            .map_err(|_| HistoryError::Key { path, found: bytes.len() })?;
        Ok(Self { folder, key: Zeroizing::new(key), limit })
    }

    /// Reads the history of a contact, without changing the file.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is damaged before its last record.
    pub fn read(&self, contact: &str) -> Result<Recalled, HistoryError> {
        let path = self.path(contact);
        let bytes = match kendall_files::read(&path, self.most_bytes()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recalled::default()),
            Err(source) => return Err(HistoryError::File { path, source }),
        };
        Ok(self.recall(&path, &bytes)?.0)
    }

    /// Opens the file of a contact for more records, without what a crash has cut off, and shortened to half of the limit where it
    /// is longer.
    ///
    /// # Errors
    /// Fails where the file cannot be used.
    pub fn log(&self, contact: &str) -> Result<(Log, Recalled), HistoryError> {
        let path = self.path(contact);
        let at = |source| HistoryError::File { path: path.clone(), source };
        let file = append(&path, 0o600).map_err(at)?;
        let bytes = kendall_files::read(&path, self.most_bytes()).map_err(at)?;
        let (recalled, name, whole) = self.recall(&path, &bytes)?;
        if recalled.torn > 0 {
            file.set_len(whole).map_err(at)?;
        }
        let records = recalled.entries.len() as u64;
        let mut log = Log { path: path.clone(), file, name, records, bytes: whole };
        if whole == 0 {
            log.file.write_all(&[&MAGIC[..], &log.name].concat()).map_err(at)?;
            log.bytes = (MAGIC.len() + NAME) as u64;
        }
        if log.bytes > self.limit {
            self.shorten(&mut log, &recalled.entries)?;
        }
        Ok((log, recalled))
    }

    /// Appends a record. It is handed to the system, and survives the end of this program.
    ///
    /// # Errors
    /// Fails where the file cannot be written; then it is cut back to the record before, if it can be.
    pub fn append(&self, log: &mut Log, entry: &Entry) -> Result<(), HistoryError> {
        let record = self.seal(&log.name, log.records, entry);
        if let Err(source) = log.file.write_all(&record) {
            // What is left of the record would hide those after it.
            _ = log.file.set_len(log.bytes);
            return Err(HistoryError::File { path: log.path.clone(), source });
        }
        log.records += 1;
        log.bytes += record.len() as u64;
        if log.bytes > self.limit {
            let bytes = kendall_files::read(&log.path, self.most_bytes())
                .map_err(|source| HistoryError::File { path: log.path.clone(), source })?;
            let (recalled, ..) = self.recall(&log.path, &bytes)?;
            self.shorten(log, &recalled.entries)?;
        }
        Ok(())
    }

    /// The longest file that is read: one of a profile with a higher limit, too.
    fn most_bytes(&self) -> u64 {
        self.limit.max(MOST_FILE).saturating_add(MOST_RECORD as u64)
    }

    /// Replaces a file by one with the newest records, half of the limit.
    fn shorten(&self, log: &mut Log, entries: &[Entry]) -> Result<(), HistoryError> {
        let name = random();
        let mut kept: u64 = 0;
        let size = |entry: &Entry| self.seal(&name, 0, entry).len() as u64;
        let fits = |entry: &&Entry| {
            kept += size(entry);
            kept <= self.limit / 2
        };
        let count = entries.iter().rev().take_while(fits).count();
        let mut bytes = [&MAGIC[..], &name].concat();
        for (number, entry) in (0..).zip(&entries[entries.len() - count..]) {
            bytes.extend(self.seal(&name, number, entry));
        }
        replace(&log.path, &bytes).map_err(|error| HistoryError::Replace(format!("{error:#}")))?;
        let file = append(&log.path, 0o600)
            .map_err(|source| HistoryError::File { path: log.path.clone(), source })?;
        *log = Log { path: log.path.clone(), file, name, records: count as u64, bytes: bytes.len() as u64 };
        Ok(())
    }

    fn path(&self, contact: &str) -> PathBuf {
        let hash = blake3::keyed_hash(&self.key, contact.as_bytes()).to_hex();
        self.folder.join(&hash[..32])
    }

    /// The records of a file, its name, and how many of its bytes are whole.
    fn recall(&self, path: &Path, bytes: &[u8]) -> Result<(Recalled, [u8; NAME], u64), HistoryError> {
        let damaged = || HistoryError::Damaged(path.to_owned());
        let Some((head, mut rest)) = bytes.split_at_checked(MAGIC.len() + NAME) else {
            // It has no record yet.
            let is_begun = MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]);
            let recalled = Recalled { entries: Vec::new(), torn: bytes.len() as u64 };
            return if is_begun { Ok((recalled, random(), 0)) } else { Err(damaged()) };
        };
        if !head.starts_with(MAGIC) {
            return Err(damaged());
        }
        let name = <[u8; NAME]>::try_from(&head[MAGIC.len()..]).expect("its length is that");
        let mut entries = Vec::new();
        while !rest.is_empty() {
            match self.unseal(&name, entries.len() as u64, rest) {
                Some((entry, length)) => {
                    entries.push(entry);
                    rest = &rest[length..];
                }
                None if is_last(rest) => break,
                None => return Err(damaged()),
            }
        }
        let whole = (bytes.len() - rest.len()) as u64;
        Ok((Recalled { entries, torn: rest.len() as u64 }, name, whole))
    }

    fn seal(&self, name: &[u8; NAME], number: u64, entry: &Entry) -> Vec<u8> {
        let plain = Zeroizing::new(serde_json::to_vec(entry).expect("an entry has no map"));
        let nonce: [u8; NONCE] = random();
        let length = (NONCE + plain.len() + TAG) as u32;
        let mut record = [&length.to_be_bytes()[..], &nonce].concat();
        let sealed = record.len();
        record.resize(sealed + plain.len() + TAG, 0);
        aead::crypto_aead_xchacha20poly1305_ietf_encrypt(
            &mut record[sealed..],
            &plain,
            Some(&associated(name, number)),
            &nonce,
            &self.key,
        )
        .expect("the lengths fit");
        record
    }

    /// The first record and its length.
    fn unseal(&self, name: &[u8; NAME], number: u64, bytes: &[u8]) -> Option<(Entry, usize)> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (nonce, sealed) =
            rest.get(..length).filter(|_| length <= MOST_RECORD)?.split_first_chunk::<NONCE>()?;
        let mut plain = Zeroizing::new(vec![0; sealed.len().checked_sub(TAG)?]);
        let ad = associated(name, number);
        aead::crypto_aead_xchacha20poly1305_ietf_decrypt(&mut plain, sealed, Some(&ad), nonce, &self.key)
            .ok()?;
        Some((serde_json::from_slice(&plain).ok()?, 4 + length))
    }
}

/// Whether these bytes are at most what is left of one record, or space that the file system had set aside for it.
fn is_last(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<4>().map_or(usize::MAX, |it| u32::from_be_bytes(*it) as usize);
    let is_cut = bytes.len() < 4 || (length <= MOST_RECORD && length > bytes.len() - 4);
    is_cut || bytes.iter().all(|byte| *byte == 0)
}

fn associated(name: &[u8; NAME], number: u64) -> Vec<u8> {
    [&name[..], &number.to_be_bytes()].concat()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    dryoc::rng::copy_randombytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
