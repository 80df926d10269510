//! Files that a crash leaves whole.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use kendall_files::Replacement;

/// Replaces a file whole, so that a crash leaves the old one or the new one; only its owner can read it.
///
/// # Errors
/// Fails where the file or its folder cannot be written.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let write = || {
        let mut file = Replacement::secret(path)?;
        file.write_all(content.as_ref())?;
        file.commit_durably()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
