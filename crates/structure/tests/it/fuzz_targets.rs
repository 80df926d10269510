//! Every fuzz target has its name alone, its row in docs/fuzzing.md, and a program for libFuzzer, which can be built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::floors::packages;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The crate of each target, by the target's name. Targets are in the library, but in curvecp's tests.
fn targets() -> BTreeMap<String, String> {
    let mut targets = BTreeMap::new();
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let files = ["src/fuzzing.rs", "tests/it/fuzzing/mod.rs"].map(|file| folder.join(file));
        for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            for rest in text.split("Target { name: \"").skip(1) {
                let (name, _) = rest.split_once('"').unwrap();
                let of = folder.file_name().unwrap().to_str().unwrap().to_owned();
                let before = targets.insert(name.to_owned(), of);
                assert_eq!(before, None, "two targets are called {name}");
            }
        }
    }
    targets
}

#[test]
fn every_target_is_in_the_table_of_the_documentation() {
    let page = fs::read_to_string(root().join("docs/fuzzing.md")).unwrap();
    let rows: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let targets = targets();
    assert!(targets.len() > 40, "the targets are not found");
    assert_eq!(rows, targets.keys().map(String::as_str).collect());
}

#[test]
fn every_crate_with_targets_has_a_program() {
    let programs = fs::read_dir(root().join("fuzz/src/bin")).unwrap().map(|entry| entry.unwrap().path());
    let programs: BTreeSet<String> =
        programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(programs, targets().into_values().collect());
}

#[test]
fn the_lock_file_of_the_programs_has_what_crates_use() {
    let lock = fs::read_to_string(root().join("fuzz/Cargo.lock")).unwrap();
    let locked: BTreeMap<&str, &str> = lock
        .split("[[package]]\nname = \"")
        .skip(1)
        .map(|package| package.split_once('"').unwrap())
        .filter(|(name, _)| name.starts_with("kendall-"))
        .collect();
    assert!(locked.len() > 40, "the packages are not found");
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let Some(of) = locked.get(name) else { continue };
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        for used in dependencies.filter(|used| used["kind"].is_null() && used["optional"] == false) {
            let used = used["name"].as_str().unwrap();
            assert!(
                // A version follows the name where there are several.
                of.contains(&format!("\"{used}\"")) || of.contains(&format!("\"{used} ")),
                "fuzz/Cargo.lock lacks {used} of {name}: cargo update --offline --workspace --manifest-path fuzz/Cargo.toml"
            );
        }
    }
}
