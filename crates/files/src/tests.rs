use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::{io, thread};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

/// A folder, and a second one outside of it with a file.
fn folders() -> (TempDir, TempDir) {
    let (ours, theirs) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(theirs.path().join("victim"), "precious").unwrap();
    (ours, theirs)
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn refused<T>(result: io::Result<T>) -> String {
    let Err(error) = result else { panic!("it is rejected") };
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    error.to_string()
}

fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.collect()
}

#[test]
fn a_link_is_replaced_and_its_target_stays() {
    let (ours, theirs) = folders();
    let (link, victim) = (ours.path().join("report.html"), theirs.path().join("victim"));
    let written = |write: &dyn Fn()| {
        let _ = fs::remove_file(&link);
        symlink(&victim, &link).unwrap();
        write();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        fs::read_to_string(&link).unwrap()
    };
    assert_eq!(written(&|| replace(&link, "new").unwrap()), "new");
    assert_eq!(written(&|| create(&link).unwrap().write_all(b"new").unwrap()), "new");
    // The first names of earlier versions.
    symlink(&victim, ours.path().join("report.html.tmp")).unwrap();
    assert_eq!(written(&|| replace(&link, "new").unwrap()), "new");
    assert_eq!(names(ours.path()).len(), 2, "nothing half-written is left");
}

#[test]
fn a_file_that_grows_is_no_link_pipe_or_folder() {
    let (ours, theirs) = folders();
    let path = ours.path().join("log");
    append(&path, 0o600).unwrap().write_all(b"one").unwrap();
    let mut file = append(&path, 0o600).unwrap();
    file.write_all(b"two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "onetwo");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&path).unwrap();
    symlink(theirs.path().join("victim"), &path).unwrap();
    assert!(refused(append(&path, 0o600)).contains("a link"));
    fs::remove_file(&path).unwrap();
    pipe(&path);
    assert!(refused(append(&path, 0o600)).contains("not a regular file"));
    for result in [create(&path).map(drop), replace(&path, "x")] {
        assert!(refused(result).contains("not a regular file"));
    }
    assert!(refused(create(ours.path())).contains("not a regular file"));
    assert_eq!(fs::read_to_string(theirs.path().join("victim")).unwrap(), "precious");
}

#[test]
fn only_regular_files_of_bounded_length_are_read() {
    let (ours, _) = folders();
    let path = ours.path().join("answer.json");
    fs::write(&path, "1234").unwrap();
    assert_eq!(read(&path, 4).unwrap(), b"1234");
    assert!(refused(read(&path, 3)).contains("longer than the limit of 1 kB"));
    assert!(refused(read(Path::new("/dev/zero"), 3)).contains("not a regular file"));
    fs::remove_file(&path).unwrap();
    pipe(&path);
    assert!(refused(read(&path, 3)).contains("not a regular file"));
    assert!(refused(read_text(Path::new("/dev/zero"), 1000)).contains("longer than"));
    fs::write(ours.path().join("memory"), "SECRET=1\0HOME=/\0").unwrap();
    assert!(refused(read_text(&ours.path().join("memory"), 1000)).contains("bytes of 0"));
    fs::write(ours.path().join("text"), b"\xff").unwrap();
    assert!(refused(read_text(&ours.path().join("text"), 1000)).contains("UTF-8"));
    assert!(refused(read(ours.path(), 3)).contains("not a regular file"));
}

#[test]
fn an_uncommitted_file_changes_nothing() {
    let (ours, _) = folders();
    let path = ours.path().join("answer.json");
    replace(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let mut replacement = Replacement::of(&path).unwrap();
    replacement.write_all(b"half").unwrap();
    drop(replacement);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let mut replacement = Replacement::of(&path).unwrap();
    replacement.handle().unwrap().write_all(b"whole").unwrap();
    replacement.write_all(b" and more").unwrap();
    replacement.commit_durably().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole and more");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let mut secret = Replacement::secret(&path).unwrap();
    secret.write_all(b"key").unwrap();
    secret.commit().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(ours.path()), ["answer.json"]);
}

#[test]
fn a_users_file_may_be_a_pipe_a_device_or_a_link_of_the_user() {
    let (ours, theirs) = folders();
    let path = ours.path().join("out");
    pipe(&path);
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).unwrap()
    });
    write(&path, "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");

    write(Path::new("/dev/null"), "nothing").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());

    fs::remove_file(&path).unwrap();
    symlink(theirs.path().join("victim"), &path).unwrap();
    write(&path, "meant").unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(theirs.path().join("victim")).unwrap(), "meant");

    fs::remove_file(theirs.path().join("victim")).unwrap();
    assert!(refused(write(&path, "x")).contains("which does not exist"));
    assert!(refused(write(ours.path(), "x")).contains("a folder"));
    let missing = write(&ours.path().join("none/out"), "x").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn an_output_shows_whole_content_only() {
    let (ours, _) = folders();
    let path = ours.path().join("out");
    write(&path, "old").unwrap();
    let mut output = Output::open(&path).unwrap();
    output.write_all(b"half").unwrap();
    let mut read = String::new();
    fs::File::open(&path).unwrap().read_to_string(&mut read).unwrap();
    assert_eq!(read, "old");
    output.handle().unwrap().write_all(b" and half").unwrap();
    output.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "half and half");
}

#[test]
fn a_folder_that_is_held_stays_the_same_one() {
    let (ours, theirs) = folders();
    fs::create_dir_all(ours.path().join("e/run")).unwrap();
    fs::write(ours.path().join("e/run/own"), "own").unwrap();
    let results = Folder::open(ours.path()).unwrap();
    let run = results.folder(Path::new("e/run")).unwrap();
    // Another user moves the folder away and puts a link in its place.
    fs::rename(ours.path().join("e"), ours.path().join("moved")).unwrap();
    fs::create_dir(ours.path().join("e")).unwrap();
    symlink(theirs.path(), ours.path().join("e/run")).unwrap();
    replace(&run.path().join("new"), "new").unwrap();
    append(&run.path().join("log"), 0o600).unwrap();
    assert_eq!(names(theirs.path()), ["victim"]);
    assert_eq!(fs::read_to_string(ours.path().join("moved/run/new")).unwrap(), "new");
    let mut own = String::new();
    run.file(Path::new("own")).unwrap().read_to_string(&mut own).unwrap();
    assert_eq!(own, "own");
    assert!(results.folder(Path::new("e/run")).is_err(), "the link leads out of the results");
}

#[test]
fn paths_out_of_a_folder_are_not_opened() {
    let (ours, theirs) = folders();
    let folder = ours.path().join("run");
    fs::create_dir_all(folder.join("trials/001")).unwrap();
    fs::write(ours.path().join("secret"), "x").unwrap();
    fs::write(folder.join("trials/001/answer.json"), "{}").unwrap();
    symlink(theirs.path().join("victim"), folder.join("link")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    symlink("trials/001/answer.json", folder.join("within")).unwrap();
    pipe(&folder.join("pipe"));
    let folder = Folder::open(&folder).unwrap();
    for path in ["trials/001/answer.json", "within"] {
        folder.file(Path::new(path)).unwrap();
    }
    let absolute = ours.path().join("secret");
    let outside = ["../secret", "trials/../../secret", "link", "up/secret", absolute.to_str().unwrap()];
    for path in outside.into_iter().chain(["trials", "pipe", "none", "", "a\0b", "%2e%2e/secret"]) {
        assert!(folder.file(Path::new(path)).is_err(), "{path}");
    }
}
