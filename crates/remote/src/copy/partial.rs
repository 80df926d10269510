//! Partial files: a file has such a name in the target folder until it is whole. What an interrupted copy leaves can so be
//! found and continued, and is never taken for the file.
//!
//! A name is `.kendall-partial.PATH.IDENTITY`, both in hexadecimal digits: a digest of the path in the target folder, and
//! the [`identity`](crate::copy::protocol::identity) of the file. The copy that writes it holds a lock on it.

use std::io;
use std::os::fd::OwnedFd;

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

/// A partial file that this copy has locked.
#[derive(Debug)]
pub(crate) struct PartialFile {
    pub(crate) name: Vec<u8>,
    pub(crate) file: OwnedFd,
    pub(crate) offer: Partial,
}

/// The partial files of a target folder that a sender may continue. Removes those that are too short.
pub(crate) fn find(folder: &Folder) -> io::Result<Vec<Option<PartialFile>>> {
    let readable = folder.open_at(&TreePath::default(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut found = Vec::new();
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
        let digest = digest(&file, length)?;
        let offer = Partial { identity, length, digest };
        found.push(Some(PartialFile { name: name.to_vec(), file, offer }));
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

/// BLAKE3 of the first bytes of a file.
///
/// # Errors
/// Also where it has fewer.
pub(crate) fn digest(file: &OwnedFd, length: u64) -> io::Result<[u8; 32]> {
    let (mut hasher, mut piece, mut offset) = (blake3::Hasher::new(), vec![0; PIECE], 0);
    while offset < length {
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
    Ok(*hasher.finalize().as_bytes())
}

/// Opens and locks a partial file that exists.
fn lock(folder: &Folder, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(folder, name, flags, Mode::empty())?;
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let (open, named) = (fs::fstat(&file)?, fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?);
    // Another copy may have given the file its name before the lock; and a second name would be that of another's file.
    let is_ours = kind(&open) == FileType::RegularFile
        && (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)
        && open.st_nlink == 1
        && open.st_uid == rustix::process::geteuid().as_raw();
    if is_ours { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Creates and locks a partial file. One of this name that no copy uses is removed first.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where another copy is writing it.
pub(crate) fn create(folder: &Folder, name: &[u8], found: &mut [Option<PartialFile>]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
    let file = match create() {
        Err(Errno::EXIST) => {
            // Closing it ends our own lock, where we have one.
            let held = found.iter_mut().find(|held| held.as_ref().is_some_and(|held| held.name == name));
            drop(held.and_then(Option::take));
            drop(lock(folder, name)?);
            fs::unlinkat(folder, name, AtFlags::empty())?;
            create()?
        }
        created => created?,
    };
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes partial files of other versions of a file, whose name is `of`.
pub(crate) fn remove_others(folder: &Folder, of: &[u8], found: &mut [Option<PartialFile>]) {
    for held in found {
        if held.as_ref().is_some_and(|held| held.name != of && of_path(&held.name) == of_path(of)) {
            let held = held.take().expect("it was just there");
            _ = fs::unlinkat(folder, &held.name[..], AtFlags::empty());
        }
    }
}
