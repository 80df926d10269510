//! Sets permissions, times and owners.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Gid, Mode, Timespec, Timestamps, Uid};

use crate::copy::protocol::{CopyOptions, FileTime, Metadata};

/// The bits that let a program run as its owner, and the sticky bit.
const SPECIAL: u16 = 0o7000;

/// Sets what the options ask for, the owner first, since that clears bits of the mode.
pub(crate) fn apply(file: &OwnedFd, metadata: &Metadata, options: CopyOptions) -> io::Result<()> {
    if options.owner {
        let (owner, group) = owner(metadata)?;
        fs::fchown(file, Some(owner), Some(group))?;
    }
    let mode = if options.special_bits { metadata.mode } else { metadata.mode & !SPECIAL };
    fs::fchmod(file, Mode::from_raw_mode(mode.into()))?;
    Ok(fs::futimens(file, &times(metadata))?)
}

/// Sets owner and times of a symbolic link, which has no permissions.
pub(crate) fn apply_to_link(
    folder: impl AsFd,
    name: &[u8],
    metadata: &Metadata,
    options: CopyOptions,
) -> io::Result<()> {
    if options.owner {
        let (owner, group) = owner(metadata)?;
        fs::chownat(&folder, name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(fs::utimensat(&folder, name, &times(metadata), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The highest number means to the system that nothing changes.
fn owner(metadata: &Metadata) -> io::Result<(Uid, Gid)> {
    if metadata.uid == u32::MAX || metadata.gid == u32::MAX {
        return Err(io::Error::other("the owner is not a valid number"));
    }
    Ok((Uid::from_raw(metadata.uid), Gid::from_raw(metadata.gid)))
}

fn times(metadata: &Metadata) -> Timestamps {
    let time = |time: FileTime| Timespec { tv_sec: time.s, tv_nsec: i64::from(time.ns) };
    Timestamps { last_access: time(metadata.accessed), last_modification: time(metadata.modified) }
}
