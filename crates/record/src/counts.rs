//! The counters of a server's lifetime, such as the transactions of its store, in a file next to its stamps.
//!
//! A line has a count and its name, so that the file is readable, and a server in any language can write it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::RecordError;

/// The most bytes of a file of counts: a thousand names.
const MOST_BYTES: u64 = 64 * 1024;

/// A count by its name, which has no line break.
pub type Count = (String, u64);

/// The file of counts that belongs to a file of stamps: `FILE.counts`.
pub fn beside(stamps: &Path) -> PathBuf {
    let mut name = OsString::from(stamps);
    name.push(".counts");
    name.into()
}

/// Writes the counters of a server.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write(file: &Path, counts: &[(&str, u64)]) -> Result<(), RecordError> {
    let lines: String = counts.iter().map(|(name, count)| format!("{count} {name}\n")).collect();
    kendall_files::replace(file, lines).map_err(RecordError::write(file))
}

/// Reads the counters of a server; empty if it left no file.
///
/// # Errors
/// Fails if the file cannot be read, is too long, or has a line without a count and a name.
pub fn read(file: &Path) -> Result<Vec<Count>, RecordError> {
    let wrong =
        |why: String| RecordError::Format { path: file.into(), what: "a file of a server's counts", why };
    let bytes = match kendall_files::read(file, MOST_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(RecordError::read(file))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not text in UTF-8".to_owned()))?;
    let count = |(place, line): (usize, &str)| {
        // Without a line feed behind it, a carriage return at the end of the file is still part of the last line.
        let parts = line.trim_end_matches('\r').split_once(' ').filter(|(_, name)| !name.is_empty());
        let read = parts.and_then(|(count, name)| Some((name.to_owned(), count.parse().ok()?)));
        read.ok_or_else(|| wrong(format!("line {} is not a count and its name", place + 1)))
    };
    text.lines().enumerate().map(count).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn counts_are_read_as_written_and_none_where_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = beside(&folder.path().join("stamps.bin"));
        assert_eq!(file.file_name().unwrap(), "stamps.bin.counts");
        assert_eq!(read(&file).unwrap(), []);
        write(&file, &[("transactions", 7), ("page faults", u64::MAX)]).unwrap();
        assert_eq!(
            read(&file).unwrap(),
            [("transactions".to_owned(), 7), ("page faults".to_owned(), u64::MAX)]
        );
        assert!(write(&folder.path().join("missing/counts"), &[]).is_err());
    }

    #[test]
    fn a_file_that_has_no_counts_is_an_error_that_names_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("counts");
        for text in
            ["7 transactions\nmany accounts\n", "7 transactions\n8\n", "7 transactions\n8 \n", "7 a\n\n"]
        {
            fs::write(&file, text).unwrap();
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains("line 2 is not a count and its name"), "{error}");
        }
        fs::write(&file, "1 a\n".repeat(MOST_BYTES as usize)).unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains("longer than the limit of 66 kB"), "{error}");
    }

    #[test]
    fn a_device_without_end_holds_no_counts() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
