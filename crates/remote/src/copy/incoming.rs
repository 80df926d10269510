//! One file on its way into the target folder: a partial file until it is complete, checked and in its place.

use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags};
use rustix::io::Errno;

use crate::copy::digest::ContentHasher;
use crate::copy::folder::Folder;
use crate::copy::metadata::apply;
use crate::copy::partial::{WORTH_KEEPING, is_named};
use crate::copy::protocol::{CopyOptions, Metadata};
use crate::error::RemoteError;
use crate::path::TreePath;

/// A file that arrives.
#[derive(Debug)]
pub(crate) struct Incoming {
    number: u64,
    size: u64,
    hasher: ContentHasher,
    /// The file that is written; absent once writing has failed, and the rest of its data is dropped.
    writing: Option<Writing>,
}

#[derive(Debug)]
struct Writing {
    path: TreePath,
    name: Vec<u8>,
    file: OwnedFd,
    metadata: Metadata,
}

impl Incoming {
    /// A file of which the first `offset` bytes are there.
    pub(crate) fn new(
        number: u64,
        path: TreePath,
        name: Vec<u8>,
        file: OwnedFd,
        metadata: Metadata,
        size: u64,
        offset: u64,
    ) -> Self {
        let writing = Some(Writing { path, name, file, metadata });
        Self { number, size, hasher: ContentHasher::from_offset(offset), writing }
    }

    /// A file that could not be created: its data is dropped.
    pub(crate) fn failed(number: u64, size: u64, offset: u64) -> Self {
        Self { number, size, hasher: ContentHasher::from_offset(offset), writing: None }
    }

    /// The number of the entry.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The name of its partial file; empty of a file that failed.
    pub(crate) fn name(&self) -> &[u8] {
        self.writing.as_ref().map_or(&[], |writing| &writing.name)
    }

    /// Writes the next bytes. What the system refuses makes the file fail: returned is the sentence for it.
    pub(crate) fn data(&mut self, bytes: &[u8], folder: &Folder) -> Result<Option<String>, RemoteError> {
        let offset = self.hasher.offset();
        self.check(bytes.len() as u64)?;
        self.hasher.data(bytes);
        let Some(writing) = &self.writing else { return Ok(None) };
        let Err(error) = write_all(&writing.file, bytes, offset) else { return Ok(None) };
        let text = format!("cannot write {}: {error}", writing.path);
        self.discard(folder);
        Ok(Some(text))
    }

    /// Leaves out zeros.
    pub(crate) fn hole(&mut self, length: u64) -> Result<(), RemoteError> {
        self.check(length)?;
        self.hasher.hole(length);
        Ok(())
    }

    fn check(&self, more: u64) -> Result<(), RemoteError> {
        if self.size - self.hasher.offset() < more {
            return Err(RemoteError::unexpected("more data than the file was to have"));
        }
        Ok(())
    }

    /// Checks the content and puts the file in its place; the error is a sentence for the user. A file that has failed
    /// before needs no further sentence.
    pub(crate) fn complete(
        &mut self,
        digest: &[u8; 32],
        folder: &mut Folder,
        options: CopyOptions,
    ) -> Result<(), String> {
        let Some(writing) = &self.writing else { return Ok(()) };
        let path = &writing.path;
        let is_whole = self.hasher.offset() == self.size && self.hasher.finish() == *digest;
        let placed = if is_whole {
            let failed = |error: std::io::Error| format!("cannot write {path}: {error}");
            place(writing, self.size, folder, options).map_err(failed)
        } else {
            Err(format!("{path} arrived damaged: its BLAKE3 digest differs; copy it again"))
        };
        if placed.is_err() {
            self.discard(folder);
        }
        placed
    }

    /// Removes the partial file, unless its name is that of another copy's by now.
    pub(crate) fn discard(&mut self, folder: &Folder) {
        if let Some(writing) = self.writing.take()
            && is_named(folder, &writing.name, &writing.file)
        {
            _ = fs::unlinkat(folder, &writing.name[..], AtFlags::empty());
        }
    }

    /// Keeps the partial file where enough has arrived to continue it, and removes it otherwise.
    pub(crate) fn interrupt(mut self, folder: &Folder) {
        let arrived = self.hasher.offset();
        let is_kept = arrived >= WORTH_KEEPING
            && self.writing.as_ref().is_some_and(|writing| fs::ftruncate(&writing.file, arrived).is_ok());
        if !is_kept {
            self.discard(folder);
        }
    }
}

fn place(writing: &Writing, size: u64, folder: &mut Folder, options: CopyOptions) -> std::io::Result<()> {
    // A hole at the end was not written.
    if fs::fstat(&writing.file)?.st_size.cast_unsigned() != size {
        fs::ftruncate(&writing.file, size)?;
    }
    apply(&writing.file, &writing.metadata, options)?;
    if options.sync {
        fs::fsync(&writing.file)?;
    }
    let root = rustix::io::dup(&*folder)?;
    if !is_named(&root, &writing.name, &writing.file) {
        return Err(std::io::Error::other("another copy has replaced its partial file; copy it again"));
    }
    let (parent, name) = folder.parent(&writing.path)?;
    Ok(fs::renameat(&root, &writing.name[..], parent, name)?)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, offset) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
