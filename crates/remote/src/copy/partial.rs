//! Partial files: a file has such a name in the target folder until it is whole. What an interrupted copy leaves can so be
//! found and continued, and is never taken for the file.
//!
//! A name is `.kendall-partial.PATH.IDENTITY`, both in hexadecimal digits: a digest of the path in the target folder, and
//! the [`identity`](crate::copy::protocol::identity) of the file. The copy that writes it holds a lock on it. A copy that only
//! offers it does not, so that it hinders no other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::copy::folder::Folder;
use crate::copy::protocol::{MAX_PARTIALS, Partial};
use crate::copy::stat::kind;
use crate::path::TreePath;

const PREFIX: &[u8] = b".kendall-partial.";

/// Shorter partial files are not worth continuing: they are removed.
pub(crate) const WORTH_KEEPING: u64 = 1 << 20;

/// A short partial file that has not changed for this many seconds belongs to no copy in progress.
const SETTLED_S: i64 = 60;

/// Bytes read at once for a digest.
const PIECE: usize = 256 << 10;

/// Bytes of partial files that are read for one copy, at most: a sparse file has many that cost its owner nothing.
const MAX_DIGESTED: u64 = 1 << 40;

/// Whether a name is that of a partial file.
pub(crate) fn is_partial(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}

/// The name under which a file is written.
pub(crate) fn name(path: &TreePath, identity: [u8; 8]) -> Vec<u8> {
    let digest = blake3::hash(path.as_bytes());
    let path: [u8; 8] = *digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
    let (path, identity) = (u64::from_be_bytes(path), u64::from_be_bytes(identity));
    [PREFIX, format!("{path:016x}.{identity:016x}").as_bytes()].concat()
}

/// The part of a name that is of the path.
fn of_path(name: &[u8]) -> &[u8] {
    &name[..name.len().min(PREFIX.len() + 16)]
}

/// A partial file that no copy was writing when its digest was taken.
#[derive(Debug)]
pub(crate) struct PartialFile {
    pub(crate) name: Vec<u8>,
    file: OwnedFd,
    state: State,
    pub(crate) offer: Partial,
}

/// Length and time of the last change: what differs once another copy has continued a file.
type State = (i64, i64, u64);

fn state(file: &OwnedFd) -> io::Result<State> {
    let stat = fs::fstat(file)?;
    Ok((stat.st_size, stat.st_ctime, stat.st_ctime_nsec))
}

impl PartialFile {
    /// Locks the file, to continue it under a name.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another copy writes it, has written it, or writes one of the new name.
    pub(crate) fn continued(self, folder: &Folder, name: &[u8]) -> io::Result<OwnedFd> {
        lock_opened(folder, &self.name, &self.file)?;
        if state(&self.file)? != self.state {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // The name is of another path where the same content was on its way to elsewhere.
        if self.name != name {
            let replaced = lock(folder, name);
            if let Err(error) = &replaced
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error.kind().into());
            }
            fs::renameat(folder, &self.name[..], folder, name)?;
        }
        Ok(self.file)
    }
}

/// The partial files of a target folder that a sender may continue. Removes those that are too short.
///
/// # Errors
/// Also where `goes_on` becomes false, because the copy has ended meanwhile.
pub(crate) fn find(folder: &Folder, goes_on: &dyn Fn() -> bool) -> io::Result<Vec<Option<PartialFile>>> {
    let readable = folder.open_at(&TreePath::default(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let (mut found, mut digested) = (Vec::new(), 0_u64);
    for entry in Dir::read_from(&readable)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !is_partial(name) || found.len() == MAX_PARTIALS {
            continue;
        }
        if is_new(folder, name) {
            continue;
        }
        // What is not ours, or in use by another copy, stays as it is.
        let Ok(file) = lock(folder, name) else { continue };
        let length = fs::fstat(&file)?.st_size.cast_unsigned();
        let Some(identity) = identity_in(name).filter(|_| length >= WORTH_KEEPING) else {
            fs::unlinkat(folder, name, AtFlags::empty())?;
            continue;
        };
        if length > MAX_DIGESTED - digested {
            continue;
        }
        digested += length;
        fs::flock(&file, FlockOperation::Unlock)?;
        let state = state(&file)?;
        let digest = digests(&file, &[length], goes_on)?[0];
        let offer = Partial { identity, length, digest };
        found.push(Some(PartialFile { name: name.to_vec(), file, state, offer }));
    }
    Ok(found)
}

/// Whether another copy may just have created this file and not locked it yet.
fn is_new(folder: &Folder, name: &[u8]) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        stat.st_size.cast_unsigned() < WORTH_KEEPING && now.tv_sec - stat.st_mtime < SETTLED_S
    })
}

fn identity_in(name: &[u8]) -> Option<[u8; 8]> {
    let digits = name.get(PREFIX.len() + 17..).filter(|digits| digits.len() == 16)?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some(number.to_be_bytes())
}

/// BLAKE3 of the first bytes of a file, for each of these lengths, which ascend.
///
/// # Errors
/// Also where it has fewer, and where `goes_on` becomes false.
pub(crate) fn digests(
    file: &OwnedFd,
    lengths: &[u64],
    goes_on: &dyn Fn() -> bool,
) -> io::Result<Vec<[u8; 32]>> {
    let (mut hasher, mut piece, mut offset) = (blake3::Hasher::new(), vec![0; PIECE], 0);
    let mut digests = Vec::with_capacity(lengths.len());
    for length in lengths {
        while offset < *length {
            if !goes_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = usize::try_from(length - offset).map_or(PIECE, |left| left.min(PIECE));
            match rustix::io::pread(file, &mut piece[..most], offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    hasher.update(&piece[..read]);
                    offset += read as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        digests.push(*hasher.finalize().as_bytes());
    }
    Ok(digests)
}

/// Opens and locks a partial file that exists.
fn lock(folder: &Folder, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(folder, name, flags, Mode::empty())?;
    lock_opened(folder, name, &file)?;
    let stat = fs::fstat(&file)?;
    // A second name would be that of another's file.
    let is_ours = kind(&stat) == FileType::RegularFile
        && stat.st_nlink == 1
        && stat.st_uid == rustix::process::geteuid().as_raw();
    if is_ours { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Locks an open file.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where another copy has locked it, or has taken its name.
fn lock_opened(folder: &Folder, name: &[u8], file: &OwnedFd) -> io::Result<()> {
    fs::flock(file, FlockOperation::NonBlockingLockExclusive)?;
    if is_named(folder, name, file) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

/// Whether a file still has this name.
pub(crate) fn is_named(folder: impl AsFd, name: &[u8], file: &OwnedFd) -> bool {
    let named = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    named.is_ok_and(|named| {
        fs::fstat(file).is_ok_and(|open| (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
    })
}

/// Creates and locks a partial file. One of this name that no copy uses is removed first.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where another copy is writing it.
pub(crate) fn create(folder: &Folder, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
    let file = match create() {
        Err(Errno::EXIST) => {
            // Locked until its name is free, so that no other copy continues it.
            let _unused = lock(folder, name)?;
            fs::unlinkat(folder, name, AtFlags::empty())?;
            create()?
        }
        created => created?,
    };
    lock_opened(folder, name, &file)?;
    Ok(file)
}

/// Removes partial files of other versions of a file, whose name is `of`, unless another copy writes them.
pub(crate) fn remove_others(folder: &Folder, of: &[u8], found: &[Option<PartialFile>]) {
    let is_other = |found: &&PartialFile| found.name != of && of_path(&found.name) == of_path(of);
    for other in found.iter().flatten().filter(is_other) {
        if let Ok(_unused) = lock(folder, &other.name) {
            _ = fs::unlinkat(folder, &other.name[..], AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const IDENTITY: [u8; 8] = [7; 8];

    fn named(path: &str) -> Vec<u8> {
        name(&TreePath::new(path.as_bytes()).unwrap(), IDENTITY)
    }

    /// A partial file that an interrupted copy has left.
    fn leave(folder: &Path, path: &str) -> std::path::PathBuf {
        let left = folder.join(String::from_utf8(named(path)).unwrap());
        std::fs::write(&left, vec![5; 2 << 20]).unwrap();
        left
    }

    fn offered(folder: &Folder, path: &str) -> PartialFile {
        let found = find(folder, &|| true).unwrap();
        found.into_iter().flatten().find(|found| found.name == named(path)).unwrap()
    }

    #[test]
    fn a_copy_that_offers_a_file_hinders_no_other() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path()).unwrap();
        leave(temporary.path(), "large");
        let (mine, yours) = (offered(&folder, "large"), offered(&folder, "large"));
        let writing = yours.continued(&folder, &named("large")).unwrap();
        let refused = mine.continued(&folder, &named("large")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(writing);
        let again = offered(&folder, "large");
        assert!(create(&folder, &named("large")).is_ok(), "it is replaced");
        assert_eq!(again.continued(&folder, &named("large")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_file_that_has_changed_since_is_not_continued() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path()).unwrap();
        let left = leave(temporary.path(), "large");
        let offered = offered(&folder, "large");
        std::fs::File::options().append(true).open(left).unwrap().set_len(3 << 20).unwrap();
        assert!(offered.continued(&folder, &named("large")).is_err());
    }

    #[test]
    fn a_continued_file_takes_no_name_that_a_copy_uses() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path()).unwrap();
        let left = leave(temporary.path(), "elsewhere");
        let writing = create(&folder, &named("large")).unwrap();
        let refused = offered(&folder, "elsewhere").continued(&folder, &named("large")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(left.exists() && is_named(&folder, &named("large"), &writing));
        drop(writing);
        let taken = offered(&folder, "elsewhere").continued(&folder, &named("large")).unwrap();
        assert!(!left.exists() && is_named(&folder, &named("large"), &taken));
    }

    #[test]
    fn a_search_ends_with_its_copy() {
        let temporary = tempfile::tempdir().unwrap();
        leave(temporary.path(), "large");
        let folder = Folder::open(temporary.path()).unwrap();
        assert_eq!(find(&folder, &|| false).unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
