//! The speed of the disk: the limit of every store that flushes once per transaction.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A page of SQLite, which is also a block of common file systems.
const BLOCK: usize = 4096;

/// The blocks of the file that is overwritten.
const BLOCKS: u64 = 256;

/// Measures how many times per second the file system of `folder` completes `fdatasync` after one 4 KiB block of a
/// preallocated file was overwritten, as SQLite does for a commit. A store without group commit cannot insert faster than
/// that.
///
/// The file has no name, and is gone afterwards. Blocks the calling thread for about `during`.
///
/// # Errors
/// Fails if the folder does not exist, is not writable, or has no space.
pub fn fdatasyncs_per_second(folder: &Path, during: Duration) -> io::Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let block = [0xa5; BLOCK];
    for _ in 0..BLOCKS {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let begun = Instant::now();
    let mut flushed = 0_u64;
    loop {
        file.seek(SeekFrom::Start(flushed % BLOCKS * BLOCK as u64))?;
        file.write_all(&block)?;
        file.sync_data()?;
        flushed += 1;
        let elapsed = begun.elapsed();
        if elapsed >= during {
            return Ok(flushed as f64 / elapsed.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_positive_and_a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(fdatasyncs_per_second(folder.path(), Duration::from_millis(20)).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(fdatasyncs_per_second(&folder.path().join("missing"), Duration::ZERO).is_err());
    }
}
