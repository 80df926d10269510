//! Writes files so that no reader sees half of one, and without following links or names that another user chose.
//!
//! - [`replace`] and [`Replacement`] are for files of kendall's own folders: the new file is written under a random name in
//!   the same folder, and then renamed.
//! - [`create`] and [`append`] are for files of those folders that grow while a program runs.
//! - [`read`] and [`open`] are for files of those folders: they never wait for the other end of a pipe. [`read_any`] and
//!   [`read_text`] are for files that a user names. None reads more than the caller's limit.
//! - [`Folder`] is for folders in which other users can rename: what it opens lies in the folder that was opened.
//! - [`expand`] finds the paths of a pattern such as `new-*`.
//! - [`write()`], [`Output`] and [`stream`] are for files that a user names, which may be pipes or devices.

mod folder;
mod glob;
mod output;
mod replacement;

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

pub use folder::Folder;
pub use glob::{expand, is_pattern};
pub use output::{Output, stream, write};
pub use replacement::{Replacement, replace};

/// Creates an empty file for writing. Removes a file or a link of that name first; the target of the link stays.
///
/// # Errors
/// Fails if the folder cannot be written, or the name is that of a folder, a pipe or a device.
pub fn create(path: &Path) -> io::Result<File> {
    refuse_special(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Opens a file for reading and for writing at its end, and creates a missing one with these permissions. Also suitable for a
/// lock file: the content stays.
///
/// # Errors
/// Fails if the file cannot be opened, or the name is that of a link, a folder, a pipe or a device.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(mode).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => refusal("a link; remove it"),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refusal("not a regular file; remove it")) }
}

/// Opens a regular file for reading.
///
/// # Errors
/// Fails if the file cannot be read, or is a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refusal("not a regular file")) }
}

/// The content of a regular file of at most this many bytes.
///
/// # Errors
/// As [`open`], and if the file is longer.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    bounded(open(path)?, most_bytes)
}

/// The content of a file, pipe or device that a user named, of at most this many bytes.
///
/// # Errors
/// Fails if it cannot be read or is longer.
pub fn read_any(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    bounded(File::open(path)?, most_bytes)
}

/// Reads a text file.
///
/// # Errors
/// As [`read_any`], and if it is not UTF-8 or has bytes of 0.
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let text = read_any(path, most_bytes)?;
    match String::from_utf8(text) {
        // Memory images have them, such as the environment of a process, which must not appear in a message.
        Ok(text) if text.contains('\0') => Err(refusal("not text: it has bytes of 0")),
        text => text.map_err(|_| refusal("not text in UTF-8")),
    }
}

fn bounded(file: File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(most_bytes);
    let mut content = Vec::with_capacity(length as usize);
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most_bytes {
        let (most, unit) = match most_bytes {
            1_000_000.. => (most_bytes.div_ceil(1_000_000), "MB"),
            _ => (most_bytes.div_ceil(1000), "kB"),
        };
        return Err(refusal(format_args!("longer than the limit of {most} {unit}")));
    }
    Ok(content)
}

/// Fails if the name belongs to something that must not be replaced by a file.
fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
            Err(refusal("not a regular file; choose another name"))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn refusal(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"))
}

/// The folder of a path's file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

#[cfg(test)]
mod tests;
