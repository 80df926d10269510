//! The house has floors, and arrows point down: a crate uses only crates on floors below its own.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Every crate that is there, from the ground up. A new crate is added here with the floor it is built on.
const FLOORS: [&[&str]; 6] = [
    &["kendall-station", "kendall-digest", "kendall-linkmodel", "kendall-testbed"],
    &["kendall-record"],
    &["kendall-solve", "kendall-load", "kendall-probe", "kendall-link", "kendall-service", "kendall-push"],
    &[
        "kendall-reverse",
        "kendall-recover",
        "kendall-textsearch",
        "kendall-http",
        "kendall-hold",
        "kendall-report",
    ],
    &["kendall-lab", "kendall-web"],
    &["kendall"],
];

fn floor(package: &str) -> Option<usize> {
    FLOORS.iter().position(|crates| crates.contains(&package))
}

#[test]
fn no_arrow_points_up() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let uses: BTreeMap<&str, Vec<&str>> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            (
                package["name"].as_str().unwrap(),
                dependencies.map(|one| one["name"].as_str().unwrap()).collect(),
            )
        })
        .collect();
    assert_eq!(
        uses.len(),
        FLOORS.iter().map(|crates| crates.len()).sum::<usize>(),
        "every crate has a floor"
    );
    for (package, dependencies) in &uses {
        let own = floor(package).unwrap_or_else(|| panic!("{package} stands on no floor"));
        for dependency in dependencies.iter().filter(|name| uses.contains_key(*name)) {
            let below = floor(dependency).unwrap();
            assert!(below < own, "{package} (floor {own}) uses {dependency} (floor {below})");
        }
    }
}
