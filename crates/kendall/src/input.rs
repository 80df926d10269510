//! Files of text that commands read.

use std::path::Path;

use anyhow::Context;

/// No table and no description is longer.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file that the user named.
///
/// # Errors
/// Fails with the file's name where it cannot be read, is too long or is no text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    kendall_files::read_text(path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))
}
