//! Files that are replaced as a whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::{folder_of, refuse_special};

/// The permissions of a new file before the user's mask.
const NEW: u32 = 0o666;

/// Replaces a file by one with this content, or creates it. After a crash of the program the file is the old one or the new
/// one.
///
/// # Errors
/// As [`Replacement::of`] and [`Replacement::commit`].
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut replacement = Replacement::of(path)?;
    replacement.write_all(content.as_ref())?;
    replacement.commit()
}

/// A new file next to the one that it will replace. Dropped before [`Self::commit`], it leaves the old file unchanged.
#[derive(Debug)]
pub struct Replacement {
    part: NamedTempFile,
    path: PathBuf,
}

impl Replacement {
    /// Begins a file of this name. It gets the permissions of the file that it replaces, and its owner if this user is
    /// root, otherwise those of a new file. A link of this name is replaced itself.
    ///
    /// # Errors
    /// Fails if the folder cannot be written, or the name is that of a folder, a pipe or a device.
    pub fn of(path: &Path) -> io::Result<Self> {
        let replacement = Self::begin(path, NEW)?;
        if let Ok(old) = fs::symlink_metadata(path)
            && old.is_file()
        {
            let permissions = Permissions::from_mode(old.permissions().mode() & 0o777);
            replacement.part.as_file().set_permissions(permissions)?;
            // Only root can give a file away; another user who replaces it becomes its owner.
            let _ = fchown(replacement.part.as_file(), Some(old.uid()), Some(old.gid()));
        }
        Ok(replacement)
    }

    /// Begins a replacement that only the owner of the file can read.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn secret(path: &Path) -> io::Result<Self> {
        Self::begin(path, 0o600)
    }

    fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        refuse_special(path)?;
        let mut builder = Builder::new();
        builder.prefix(".").suffix(".tmp").permissions(Permissions::from_mode(mode));
        Ok(Self { part: builder.tempfile_in(folder_of(path))?, path: path.to_owned() })
    }

    /// The new file.
    pub fn file(&mut self) -> &mut File {
        self.part.as_file_mut()
    }

    /// Returns another handle of the new file, for writers that need a separate one. The handles share one position.
    ///
    /// # Errors
    /// Fails if the system has no handle left.
    pub fn handle(&self) -> io::Result<File> {
        self.part.as_file().try_clone()
    }

    /// Replaces the old file by the new one.
    ///
    /// # Errors
    /// Fails if the folder cannot be written; the old file is then unchanged.
    pub fn commit(self) -> io::Result<()> {
        self.part.persist(&self.path).map(drop).map_err(|error| error.error)
    }

    /// Gives the new file its name if no other file has it.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::AlreadyExists`] if another file has it, and if the folder cannot be written.
    pub fn commit_new(self) -> io::Result<()> {
        self.part.persist_noclobber(&self.path).map(drop).map_err(|error| error.error)
    }

    /// Does the same as [`Self::commit`], and returns once the disk has the file and its name.
    ///
    /// # Errors
    /// As [`Self::commit`], and if the disk fails.
    pub fn commit_durably(self) -> io::Result<()> {
        self.part.as_file().sync_all()?;
        let folder = folder_of(&self.path).to_owned();
        self.commit()?;
        File::open(folder)?.sync_all()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
