//! The house has floors, and arrows point down: a crate uses only crates on floors below its own.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// The workspace's packages as Cargo sees them.
fn packages() -> Vec<Value> {
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
