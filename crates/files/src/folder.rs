//! Folders that are held open.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// How often to repeat an `openat2` that a rename elsewhere interrupted: the kernel then cannot exclude that `..` left the folder.
const TRIES: u32 = 100;

/// A folder that stays the same one if another user renames it or replaces it by a link.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// Fails if there is no folder of that name, or it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::empty())?))
    }

    /// Opens a folder in this one. The kernel follows links in the path only as far as they stay in this folder.
    ///
    /// # Errors
    /// As [`Self::open`], and if the path leads out of this folder.
    pub fn folder(&self, path: &Path) -> io::Result<Self> {
        self.beneath(path, OFlags::PATH | OFlags::DIRECTORY).map(Self)
    }

    /// Opens a regular file in this folder for reading; links are followed as in [`Self::folder`].
    ///
    /// # Errors
    /// Fails if the file cannot be read, is a folder, a pipe or a device, or the path leads out of this folder.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let file = File::from(self.beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    /// A path that leads to this very folder while this value lives, in this process and until a child has started.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0..TRIES;
        loop {
            match openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries.next().is_some() => {}
                opened => return Ok(opened?),
            }
        }
    }
}
