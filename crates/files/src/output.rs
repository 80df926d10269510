//! Files that a user names.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::{Replacement, create, refusal};

/// Writes a user's output under a name that the user chose.
///
/// # Errors
/// As [`Output::open`] and [`Output::finish`].
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut output = Output::open(path)?;
    output.write_all(content.as_ref())?;
    output.finish()
}

/// A file that a user named. Regular files are replaced as a whole at the end, and keep their permissions. Pipes and devices
/// are written directly.
#[derive(Debug)]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Regular(Replacement),
    Through(File),
}

impl Output {
    /// Opens a file for writing. A link is followed if it belongs to this user or to root.
    ///
    /// # Errors
    /// Fails if the file or its folder cannot be written, if the name is that of a folder, and if it is a dangling link or a
    /// link of another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(match resolve(path)? {
            Named::Regular(path) => Kind::Regular(Replacement::of(&path)?),
            Named::Special(file) => Kind::Through(file),
        }))
    }

    /// The file that is written.
    pub fn file(&mut self) -> &mut File {
        match &mut self.0 {
            Kind::Regular(replacement) => replacement.file(),
            Kind::Through(file) => file,
        }
    }

    /// Returns another handle of the file, for writers that need a separate one. The handles share one position.
    ///
    /// # Errors
    /// Fails if the system has no handle left.
    pub fn handle(&self) -> io::Result<File> {
        match &self.0 {
            Kind::Regular(replacement) => replacement.handle(),
            Kind::Through(file) => file.try_clone(),
        }
    }

    /// Completes the file. A regular one is then on the disk; without this call, it stays as it was.
    ///
    /// # Errors
    /// Fails if the folder cannot be written or the disk fails.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Regular(replacement) => replacement.commit_durably(),
            Kind::Through(_) => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a file that a user named for a program to write while it runs. Pipes and devices are written directly; a regular
/// file is replaced by an empty one at once.
///
/// # Errors
/// As [`Output::open`].
pub fn stream(path: &Path) -> io::Result<File> {
    match resolve(path)? {
        Named::Regular(path) => create(&path),
        Named::Special(file) => Ok(file),
    }
}

/// The kind of a user's name.
enum Named {
    /// A regular file, or a new one, at this path without its last link.
    Regular(PathBuf),
    /// A pipe or device, opened.
    Special(File),
}

fn resolve(path: &Path) -> io::Result<Named> {
    let link = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink);
    if link.as_ref().is_some_and(|link| ![0, geteuid().as_raw()].contains(&link.uid())) {
        return Err(refusal("a link that belongs to another user; name the file itself"));
    }
    match fs::metadata(path) {
        // The target of /dev/stdout is open already: the file that it names must stay this file.
        Ok(found) if is_special(&found) || path.starts_with("/dev") || path.starts_with("/proc") => {
            Ok(Named::Special(OpenOptions::new().append(true).open(path)?))
        }
        Ok(found) if found.is_dir() => Err(refusal("a folder; name a file")),
        Ok(_) if link.is_some() => Ok(Named::Regular(path.canonicalize()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && link.is_some() => {
            let target = fs::read_link(path)?;
            Err(refusal(format_args!("a link to {}, which does not exist; name a file", target.display())))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(Named::Regular(path.to_owned())),
    }
}

fn is_special(found: &fs::Metadata) -> bool {
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
}
