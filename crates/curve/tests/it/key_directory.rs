//! Key directories, and that the reference's tools and this crate can use each other's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use kendall_curve::{CurveError, KeyDirectory};

/// Every file and directory with its mode and length.
fn listing(directory: &Path) -> Vec<(String, u32, Option<u64>)> {
    let mut entries = Vec::new();
    for folder in ["", ".expertsonly"] {
        for entry in fs::read_dir(directory.join(folder)).unwrap() {
            let (entry, folder) = (entry.unwrap(), Path::new(folder));
            let metadata = entry.metadata().unwrap();
            let name = folder.join(entry.file_name()).to_string_lossy().into_owned();
            entries.push((
                name,
                metadata.permissions().mode() & 0o7777,
                metadata.is_file().then_some(metadata.len()),
            ));
        }
    }
    entries.sort();
    entries
}

#[test]
fn a_directory_is_as_the_reference_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    let keys = KeyDirectory::create(&ours).unwrap();
    let expected: [(&str, u32, Option<u64>); 6] = [
        (".expertsonly", 0o700, None),
        (".expertsonly/lock", 0o600, Some(1)),
        (".expertsonly/noncecounter", 0o600, Some(8)),
        (".expertsonly/noncekey", 0o600, Some(32)),
        (".expertsonly/secretkey", 0o600, Some(32)),
        ("publickey", 0o644, Some(32)),
    ];
    let listed = listing(&ours);
    assert!(
        listed.iter().map(|(name, mode, length)| (name.as_str(), *mode, *length)).eq(expected),
        "{listed:?}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(KeyDirectory::open(&ours).unwrap().secret(), keys.secret());

    if !crate::reference::is_here() {
        return;
    }
    let theirs = folder.path().join("theirs");
    assert!(Command::new("curvecpmakekey").arg(&theirs).status().unwrap().success());
    assert_eq!(listing(&theirs), listed);
    for (directory, keys) in [(&theirs, KeyDirectory::open(&theirs).unwrap()), (&ours, keys)] {
        let printed = Command::new("curvecpprintkey").arg(directory).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap().trim(), format!("{:?}", keys.public_key()));
        keys.nonces().unwrap();
    }
}

#[test]
fn nothing_is_overwritten_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("key");
    KeyDirectory::create(&directory).unwrap();
    assert!(
        matches!(KeyDirectory::create(&directory), Err(CurveError::KeyDirectoryExists(path)) if path == directory)
    );

    let public = fs::read(directory.join("publickey")).unwrap();
    fs::write(directory.join("publickey"), [1; 32]).unwrap();
    assert!(matches!(KeyDirectory::open(&directory), Err(CurveError::KeysDiffer(_))));
    for wrong in [&public[..31], &[&public[..], b"\n"].concat()] {
        fs::write(directory.join("publickey"), wrong).unwrap();
        let error = KeyDirectory::open(&directory).unwrap_err().to_string();
        assert!(
            error.contains("publickey is not a valid key file: it must have exactly 32 bytes"),
            "{error}"
        );
    }
    let missing = KeyDirectory::open(&folder.path().join("absent")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("secretkey"), "{missing}");
}
