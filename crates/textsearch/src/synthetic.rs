//! Synthetic databases that are generated once and kept in a folder, for experiments that give a size and no file.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use kendall_files::Replacement;

use crate::generate::{Generate, Size, generate};

/// The file of this database in a folder, generated if it does not exist yet. The name describes its contents, so that it is
/// found again; an incomplete file has another name.
///
/// # Errors
/// Fails if the folder or the file cannot be written.
pub fn synthetic(folder: &Path, what: &Generate) -> io::Result<PathBuf> {
    let size = match what.size {
        Size::Rows(rows) => format!("{rows}-rows"),
        Size::Bytes(bytes) => format!("{bytes}-bytes"),
    };
    // Another version may use another law.
    let version = env!("CARGO_PKG_VERSION");
    let path = folder.join(format!("{size}-of-{}-types-seed-{}-v{version}.txt", what.types, what.seed));
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let mut replacement = Replacement::of(&path)?;
    generate(what, &mut BufWriter::new(replacement.file()))?;
    replacement.commit()?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_another_size_or_seed_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let what = Generate { size: Size::Rows(100), types: 5, seed: 1, threads: 1 };
        let path = synthetic(folder.path(), &what).unwrap();
        let made = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 100);
        assert_eq!(synthetic(folder.path(), &what).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made);
        let others = [Generate { seed: 2, ..what }, Generate { size: Size::Bytes(100), ..what }];
        for other in others {
            assert_ne!(synthetic(folder.path(), &other).unwrap(), path);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let nowhere = folder.path().join("file");
        fs::write(&nowhere, "").unwrap();
        assert!(synthetic(&nowhere, &what).is_err());
    }
}
