//! Files that commands read: text, and tables of measured points or the outputs of load generators.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use kendall_evidence::table::Table;

/// No table and no description is longer.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file that the user named.
///
/// # Errors
/// Fails with the file's name where it cannot be read, is too long or is no text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    kendall_files::read_text(path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))
}

/// What the user gave to be fitted or checked.
pub(crate) enum Measured<'a> {
    /// The folder of a run.
    Run(&'a Path),
    /// The rows of all files, which name their file where there are several.
    Table(Table),
}

/// Reads the folder of a run, or tables and outputs of load generators, one or more.
pub(crate) fn measured(paths: &[PathBuf]) -> anyhow::Result<Measured<'_>> {
    if let [folder] = paths
        && folder.is_dir()
    {
        return Ok(Measured::Run(folder));
    }
    let mut all = Table::default();
    for path in paths {
        ensure!(
            !path.is_dir(),
            "{} is a folder: give one folder of a run, or one or more files",
            path.display()
        );
        let name = path.display().to_string();
        let text = kendall_archive::points(path)?.map_or_else(|| read(path), Ok)?;
        let table = Table::read(&text).with_context(|| name.clone())?;
        all.add(if paths.len() > 1 { table.of_file(&name) } else { table });
    }
    Ok(Measured::Table(all))
}
