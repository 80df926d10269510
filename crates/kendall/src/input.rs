//! Tables of measured points that commands read, and the outputs of load generators.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use kendall_evidence::table::Table;

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
        let text = kendall_archive::points(path)?.map_or_else(|| kendall_stdio::read(path), Ok)?;
        let table = Table::read(&text).with_context(|| name.clone())?;
        all.add(if paths.len() > 1 { table.of_file(&name) } else { table });
    }
    Ok(Measured::Table(all))
}
