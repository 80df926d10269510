//! Files that a crash leaves whole.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Replaces a file whole, so that a crash leaves the old one or the new one; only its owner can read it.
///
/// # Errors
/// Fails where the file or its folder cannot be written.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let write = || {
        let folder = path.parent().expect("files of a profile are in a folder");
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content.as_ref())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).with_context(|| format!("cannot write {}", path.display()))
}
