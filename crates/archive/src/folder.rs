//! Names of folders, and files that are written atomically.

use std::fs::File;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use kendall_files::{Replacement, replace};
use kendall_record::RecordError;

/// The longest name; file systems allow 255 bytes.
const NAME_CHARS: usize = 120;

/// The largest JSON file of a record.
const MOST_JSON_BYTES: u64 = 256 << 20;

/// Now, in UTC: `2026-11-21T04:10:05Z`.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Now, as the name of a run's folder: `2026-11-21T04-10-05Z`.
pub fn folder_stamp() -> String {
    utc_now().replace(':', "-")
}

/// The name of a trial's folder: `001-rate=20,length=3`. Characters that file systems or shells could misread become `_`.
pub fn trial_folder(number: usize, levels: &[(&str, String)]) -> String {
    let levels: Vec<String> = levels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "=,.+-%".contains(c) { c } else { '_' };
    let levels: String = levels.join(",").chars().map(plain).take(NAME_CHARS).collect();
    if levels.is_empty() { format!("{number:03}") } else { format!("{number:03}-{levels}") }
}

/// Writes a value as JSON, atomically: even if the process is killed, the file is either new or unchanged.
///
/// # Errors
/// Fails where the file cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|error| RecordError::write(path)(error.into()))?;
    text.push(b'\n');
    replace(path, &text).map_err(RecordError::write(path))
}

/// Reads a value from JSON.
///
/// # Errors
/// Fails where the file cannot be read, or is not valid for this type.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = kendall_files::read(path, MOST_JSON_BYTES).map_err(RecordError::read(path))?;
    serde_json::from_slice(&text).map_err(|error| RecordError::Format {
        path: path.into(),
        what: "a record of this version of kendall",
        why: error.to_string(),
    })
}

/// Replaces a file atomically by one with the new content.
pub(crate) fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(File) -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    let cannot = || RecordError::write(path);
    let replacement = Replacement::of(path).map_err(cannot())?;
    let written = write(replacement.handle().map_err(cannot())?)?;
    replacement.commit().map_err(cannot())?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_in_utc_and_fit_a_folders_name() {
        let now = utc_now();
        assert_eq!((now.len(), &now[4..5], &now[10..11], &now[19..]), (20, "-", "T", "Z"));
        assert!(!folder_stamp().contains(':'));
    }

    #[test]
    fn folder_names_are_plain() {
        assert_eq!(trial_folder(1, &[("rate", "20".into()), ("length", "3".into())]), "001-rate=20,length=3");
        assert_eq!(trial_folder(1234, &[]), "1234");
        assert_eq!(trial_folder(2, &[("order", "../a b\0é".into())]), "002-order=.._a_b__");
        assert!(trial_folder(3, &[("name", "x".repeat(1000))]).len() < 200);
    }
}
