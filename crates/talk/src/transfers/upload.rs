//! A file that is sent.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::protocol::MOST_NAME;

/// A file that is open to be sent.
#[derive(Clone, Debug)]
pub struct Upload {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) file: Arc<File>,
}

/// A file cannot be sent.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum UploadError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a file; pack a folder, for example with tar", .0.display())]
    NoFile(PathBuf),
}

impl Upload {
    /// Opens a file. The peer receives its name and its size, but not its folder, owner, permissions and times.
    ///
    /// # Errors
    /// Fails where it cannot be read or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, UploadError> {
        let unreadable = |source| UploadError::Unreadable { path: path.to_owned(), source };
        // A pipe must not keep the program waiting.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(UploadError::NoFile(path.to_owned()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name[..name.floor_char_boundary(MOST_NAME)].to_owned();
        Ok(Self { name, size: metadata.len(), file: Arc::new(file) })
    }

    /// The name that the peer gets for the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// The bytes of a file that is sent, and their digest.
pub(crate) struct Source {
    file: Arc<File>,
    hasher: blake3::Hasher,
    hashed: u64,
}

impl Source {
    pub(crate) fn new(upload: &Upload) -> Self {
        Self { file: upload.file.clone(), hasher: blake3::Hasher::new(), hashed: 0 }
    }

    /// Reads bytes in a thread for that.
    pub(crate) fn read(&self, offset: u64, length: usize) -> JoinHandle<io::Result<Vec<u8>>> {
        let file = self.file.clone();
        spawn_blocking(move || {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        })
    }

    /// Takes bytes into the digest that are sent for the first time; after a reconnection some come again.
    pub(crate) fn hash(&mut self, offset: u64, bytes: &[u8]) {
        let known = usize::try_from(self.hashed.saturating_sub(offset)).unwrap_or(usize::MAX);
        if let Some(new) = bytes.get(known..) {
            self.hasher.update(new);
            self.hashed += new.len() as u64;
        }
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        self.hasher.finalize().into()
    }
}
