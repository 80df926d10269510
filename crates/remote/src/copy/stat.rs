//! Metadata of a file from the system, in the terms of a copy.

use rustix::fs::{FileType, Stat};

use crate::copy::protocol::{FileTime, Metadata};

/// What something is.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The metadata that a copy keeps.
pub(crate) fn metadata(stat: &Stat) -> Metadata {
    let time = |s: i64, ns: u64| FileTime { s, ns: u32::try_from(ns).unwrap_or(0).min(999_999_999) };
    Metadata {
        mode: u16::try_from(stat.st_mode & 0o7777).expect("these bits fit"),
        uid: stat.st_uid,
        gid: stat.st_gid,
        accessed: time(stat.st_atime, stat.st_atime_nsec),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// The bytes of a file; 0 of anything that is not one.
pub(crate) fn size(stat: &Stat) -> u64 {
    if kind(stat) == FileType::RegularFile { stat.st_size.cast_unsigned() } else { 0 }
}
