use std::fs;

use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1 << 20;

fn said(at_ms: u64, text: &str) -> Entry {
    Entry::Said { own: at_ms.is_multiple_of(2), at_ms, text: text.to_owned() }
}

/// A history with these entries, and the path of its file.
fn kept(folder: &Path, entries: &[Entry], limit: u64) -> (History, PathBuf) {
    let history = History::open(folder, limit).unwrap();
    let (mut log, _) = history.log("bob").unwrap();
    for entry in entries {
        history.append(&mut log, entry).unwrap();
    }
    let path = history.path("bob");
    (history, path)
}

#[test]
fn what_was_said_is_read_again_and_cannot_be_read_without_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [said(1, "lunch at the oak?"), Entry::Delivered { at_ms: 1 }, said(2, "yes ✓\n")];
    let (history, path) = kept(folder.path(), &entries, LIMIT);
    assert_eq!(history.read("bob").unwrap().entries, entries);
    let bytes = fs::read(&path).unwrap();
    assert!(!bytes.windows(3).any(|it| it == b"oak"));
    assert!(!path.to_str().unwrap().contains("bob"));
    let mode =
        |path: &Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
    assert_eq!((mode(&path) & 0o777, mode(&folder.path().join("history.key")) & 0o777), (0o600, 0o600));
    let other = tempfile::tempdir().unwrap();
    let stranger = History::open(other.path(), LIMIT).unwrap();
    fs::copy(&path, stranger.path("bob")).unwrap();
    assert!(matches!(stranger.read("bob"), Err(HistoryError::Damaged(_))));
}

#[test]
fn a_last_record_that_a_crash_has_cut_is_dropped_and_those_after_it_are_kept() {
    let entries = [said(1, "one"), said(2, "two")];
    let whole = {
        let folder = tempfile::tempdir().unwrap();
        let (_, path) = kept(folder.path(), &entries[..1], LIMIT);
        fs::read(path).unwrap().len()
    };
    let folder = tempfile::tempdir().unwrap();
    let (history, path) = kept(folder.path(), &entries, LIMIT);
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let (mut log, recalled) = history.log("bob").unwrap();
        let expected = if length < whole { 0 } else { 1 };
        assert_eq!(recalled.entries, entries[..expected], "cut at {length}");
        let is_cut = ![0, MAGIC.len() + NAME, whole].contains(&length);
        assert_eq!(recalled.torn > 0, is_cut, "cut at {length}");
        history.append(&mut log, &said(3, "three")).unwrap();
        let again = history.read("bob").unwrap();
        assert_eq!((again.entries.len(), again.torn), (expected + 1, 0), "cut at {length}");
    }
    fs::write(&path, [&bytes[..], &[0; 4096]].concat()).unwrap();
    assert_eq!(history.log("bob").unwrap().1.torn, 4096);
}

#[test]
fn records_cannot_be_changed_moved_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (history, path) = kept(folder.path(), &[said(1, "a"), said(2, "b"), said(3, "c")], LIMIT);
    let bytes = fs::read(&path).unwrap();
    let record = (bytes.len() - MAGIC.len() - NAME) / 3;
    let head = MAGIC.len() + NAME;
    let mut without = bytes.clone();
    without.drain(head..head + record);
    let mut changed = bytes.clone();
    changed[head + 40] ^= 1;
    for damaged in [without, changed] {
        fs::write(&path, damaged).unwrap();
        assert!(matches!(history.read("bob"), Err(HistoryError::Damaged(_))));
        assert!(history.log("bob").is_err());
    }
}

#[test]
fn a_file_above_the_limit_keeps_its_newer_half() {
    let folder = tempfile::tempdir().unwrap();
    let entries: Vec<Entry> = (0..400).map(|at_ms| said(at_ms, "some words that take space")).collect();
    let (history, path) = kept(folder.path(), &entries, 20_000);
    assert!(fs::metadata(&path).unwrap().len() <= 20_000);
    let recalled = history.read("bob").unwrap().entries;
    assert!(recalled.len() > 60 && entries.ends_with(&recalled), "{}", recalled.len());
}

proptest! {
    #[test]
    fn no_bytes_of_a_file_make_it_panic(bytes: Vec<u8>, has_head: bool) {
        let folder = tempfile::tempdir().unwrap();
        let (history, path) = kept(folder.path(), &[], LIMIT);
        let head = if has_head { [&MAGIC[..], &[7; NAME]].concat() } else { Vec::new() };
        fs::write(&path, [head, bytes].concat()).unwrap();
        if let Ok(recalled) = history.read("bob") {
            prop_assert!(recalled.entries.is_empty());
        }
    }
}
