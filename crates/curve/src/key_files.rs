//! The files of a key directory: each has a fixed length, is written once, and is erased from memory when dropped.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use crate::CurveError;

/// The directory of secrets in a key directory.
pub(crate) const SECRETS: &str = ".expertsonly";

/// Writes a file that must not exist yet.
pub(crate) fn write_new(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), CurveError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(CurveError::file("write", path))
}

/// Reads a file that must have exactly N bytes; they are erased when dropped.
pub(crate) fn read_exactly<const N: usize>(path: &Path) -> Result<Zeroizing<[u8; N]>, CurveError> {
    let mut file = File::open(path).map_err(CurveError::file("read", path))?;
    let mut bytes = Zeroizing::new([0; N]);
    let read = file.read_exact(&mut *bytes).and_then(|()| file.read(&mut [0]));
    match read {
        Ok(0) => Ok(bytes),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(CurveError::file("read", path)(error))
        }
        _ => Err(CurveError::KeyFileLength { path: path.to_owned(), expected: N }),
    }
}
