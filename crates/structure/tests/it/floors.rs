//! The house has floors, and arrows point down: a crate uses only crates on floors below its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The workspace's packages as Cargo sees them.
pub(super) fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn no_arrow_points_up() {
    let packages = packages();
    let floors: BTreeMap<&str, u64> = packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().unwrap();
            let floor = package["metadata"]["kendall"]["floor"].as_u64();
            (
                name,
                floor
                    .unwrap_or_else(|| panic!("{name} names no floor: [package.metadata.kendall] floor = N")),
            )
        })
        .collect();
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let dependency = dependency["name"].as_str().unwrap();
            let Some(below) = floors.get(dependency) else { continue };
            let own = floors[name];
            assert!(*below < own, "{name} (floor {own}) uses {dependency} (floor {below})");
        }
    }
}

/// What is written to disk and read back depends on nothing that draws: `report` is used by those who show, and by no crate that
/// runs, records or analyses.
#[test]
fn only_who_shows_depends_on_what_draws() {
    let uses_report = |package: &&Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        dependencies.iter().any(|dependency| dependency["name"] == "kendall-report")
    };
    let packages = packages();
    let who: BTreeSet<&str> =
        packages.iter().filter(uses_report).map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(who, BTreeSet::from(["kendall", "kendall-bench", "kendall-solvecli", "kendall-web"]));
}

/// The most lines of a file, and of a crate with its tests, benchmarks and examples.
const FILE_LINES: usize = 500;
const CRATE_LINES: usize = 15_000;

/// The Rust files below a folder, and how many lines each has.
fn files(folder: &Path) -> Vec<(PathBuf, usize)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(self::files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&entry).unwrap().lines().count();
            files.push((entry, lines));
        }
    }
    files
}

#[test]
fn no_crate_and_no_file_is_too_long_to_read() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path()) {
        let files = files(&folder);
        let lines: usize = files.iter().map(|(_, lines)| lines).sum();
        assert!(lines <= CRATE_LINES, "{} has {lines} lines; split it", folder.display());
        for (file, lines) in files {
            assert!(lines <= FILE_LINES, "{} has {lines} lines; split it", file.display());
        }
    }
}
