//! The folder that `--record` names: one that is not there yet.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

/// Makes the folder.
pub(crate) fn new_folder(folder: &Path) -> anyhow::Result<()> {
    ensure_new(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Fails where the folder is there already.
pub(crate) fn ensure_new(folder: &Path) -> anyhow::Result<()> {
    ensure!(!folder.exists(), "{} is there already; name a new folder for the record", folder.display());
    Ok(())
}
