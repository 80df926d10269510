//! The keys of peers: trusted when they are first seen, compared from then on.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kendall_chat::name::Name;
use kendall_curve::curvecp::PublicKey;
use kendall_files::append;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::files::replace;

/// The longest file of keys: those of some hundred thousand peers.
const MOST_BYTES: u64 = 16_000_000;

/// A file with a line for each peer: its name and its key.
#[derive(Debug)]
pub struct KnownPeers {
    path: PathBuf,
    keys: BTreeMap<String, String>,
}

/// Whether a peer was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// The contact's key is the one seen before.
    Known,
    /// The contact's key is new, and trusted from now on.
    New,
}

impl KnownPeers {
    /// Reads a file, which need not exist yet.
    ///
    /// # Errors
    /// Fails where it cannot be read or has another form.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { path: path.to_owned(), keys: read(path)? })
    }

    /// Compares a peer's key with the one that it had, or keeps it.
    ///
    /// # Errors
    /// Fails with [`Failure::KeyChanged`] where it is another one, where the file cannot be written, and where the name is not one that a
    /// directory server gives: with a line break in it, it could stand for another peer's line of the file.
    pub fn check(&mut self, name: &str, key: &PublicKey) -> anyhow::Result<Acquaintance> {
        anyhow::ensure!(
            Name::new(name).is_ok_and(|valid| valid.shown() == name),
            "the server named the peer \"{}\", which is not a valid name; use another server",
            name.escape_debug()
        );
        let digits = format!("{key:?}");
        self.update(|keys| match keys.get(name) {
            Some(known) if *known == digits => (Ok(Acquaintance::Known), false),
            Some(_) => {
                let number = safety_number(&digits);
                (Err(Failure::KeyChanged { name: name.to_owned(), number }.into()), false)
            }
            None => {
                keys.insert(name.to_owned(), digits);
                (Ok(Acquaintance::New), true)
            }
        })?
    }

    /// Forgets a peer's key; false where it was not known.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn forget(&mut self, name: &str) -> anyhow::Result<bool> {
        self.update(|keys| {
            let was_known = keys.remove(name).is_some();
            (was_known, was_known)
        })
    }

    /// The names of peers and the safety numbers of their keys.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, String)> {
        self.keys.iter().map(|(name, key)| (name.as_str(), safety_number(key)))
    }

    /// Works on what the file holds now, and writes it again if the work says so. Other commands of the profile may have learnt
    /// or forgotten keys since it was read, so it is read again, and they wait meanwhile.
    fn update<T>(
        &mut self,
        work: impl FnOnce(&mut BTreeMap<String, String>) -> (T, bool),
    ) -> anyhow::Result<T> {
        let cannot = || format!("cannot lock {}", self.path.display());
        // The file itself is replaced, so the lock is on a separate file.
        let lock = append(&self.path.with_extension("lock"), 0o600).with_context(cannot)?;
        lock.lock().with_context(cannot)?;
        self.keys = read(&self.path)?;
        let (done, has_changed) = work(&mut self.keys);
        if has_changed {
            let lines = self.keys.iter().map(|(name, key)| format!("{name} {key}\n"));
            replace(&self.path, lines.collect::<String>())?;
        }
        Ok(done)
    }
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let text = match kendall_files::read_text(path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let line = |(number, line): (usize, &str)| {
        let (name, key) = line.split_once(' ').with_context(|| {
            format!("{}, line {}: write a name, a space and a key", path.display(), number + 1)
        })?;
        Ok((name.to_owned(), key.to_owned()))
    };
    text.lines().enumerate().map(line).collect()
}

/// A key as two people can compare it by voice: 30 digits of its SHA-256 in groups of five, about 100 bits.
pub fn safety_number(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    let group = |bytes: &[u8]| {
        let number = bytes.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        format!("{:05}", number % 100_000)
    };
    digest.chunks(5).take(6).map(group).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trusted_once_and_compared_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known-peers");
        let (first, second) = (PublicKey([1; 32]), PublicKey([2; 32]));
        let mut peers = KnownPeers::open(&path).unwrap();
        assert_eq!(peers.check("bob", &first).unwrap(), Acquaintance::New);
        let mut peers = KnownPeers::open(&path).unwrap();
        assert_eq!(peers.check("bob", &first).unwrap(), Acquaintance::Known);
        let error = peers.check("bob", &second).unwrap_err().to_string();
        assert!(
            error.contains("bob has another key than before") && error.contains("--forget bob"),
            "{error}"
        );
        // The refused key was not kept.
        assert_eq!(KnownPeers::open(&path).unwrap().check("bob", &first).unwrap(), Acquaintance::Known);
        assert!(peers.forget("bob").unwrap() && !peers.forget("bob").unwrap());
        assert_eq!(KnownPeers::open(&path).unwrap().check("bob", &second).unwrap(), Acquaintance::New);
    }

    #[test]
    fn commands_that_run_at_once_lose_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known-peers");
        let [ann, bob] = [PublicKey([1; 32]), PublicKey([2; 32])];
        let (mut first, mut second) = (KnownPeers::open(&path).unwrap(), KnownPeers::open(&path).unwrap());
        first.check("ann", &ann).unwrap();
        assert_eq!(second.check("bob", &bob).unwrap(), Acquaintance::New);
        assert_eq!(KnownPeers::open(&path).unwrap().numbers().count(), 2);
        // A key that another command has kept is compared, too.
        assert!(second.check("ann", &bob).is_err());
        assert!(first.forget("bob").unwrap());
        assert_eq!(second.check("bob", &ann).unwrap(), Acquaintance::New);
    }

    #[test]
    fn a_name_cannot_stand_for_another_peer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known-peers");
        let (first, second) = (PublicKey([1; 32]), PublicKey([2; 32]));
        let mut peers = KnownPeers::open(&path).unwrap();
        peers.check("carol", &first).unwrap();
        for name in ["~ 0\ncarol", "x\ncarol", "a b", "Carol", ""] {
            let error = peers.check(name, &second).unwrap_err().to_string();
            assert!(error.contains("not a valid name") && !error.contains('\n'), "{error}");
        }
        assert_eq!(KnownPeers::open(&path).unwrap().check("carol", &first).unwrap(), Acquaintance::Known);
    }

    #[test]
    fn safety_numbers_are_six_groups_of_five_digits() {
        let number = safety_number("ab");
        assert_eq!(number.split(' ').map(str::len).collect::<Vec<_>>(), [5; 6]);
        assert!(number.chars().all(|it| it.is_ascii_digit() || it == ' '));
        assert_ne!(number, safety_number("ac"));
    }
}
