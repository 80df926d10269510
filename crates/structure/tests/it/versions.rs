//! A crate is compiled in one version, unless a dependency needs another version than the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crates that are compiled in several versions, and the dependencies that need the older ones. A line goes when these move on.
const SEVERAL: [(&str, &str); 19] = [
    ("base64", "hdrhistogram, usvg, boon, and the drivers of MariaDB and PostgreSQL"),
    ("block-buffer", "digest 0.10"),
    ("const-oid", "digest 0.10"),
    ("cpufeatures", "sha2 0.10 and curve25519-dalek 4"),
    ("crypto-common", "digest 0.10"),
    ("curve25519-dalek", "opaque-ke"),
    ("digest", "opaque-ke"),
    ("fallible-iterator", "the driver of PostgreSQL"),
    ("getrandom", "rand_core 0.6, and the driver of MariaDB"),
    ("hmac", "opaque-ke"),
    ("miniz_oxide", "png"),
    ("num-bigint", "the driver of MariaDB"),
    ("rand", "opaque-ke"),
    ("rand_core", "opaque-ke"),
    ("sha1", "the driver of MariaDB"),
    ("sha2", "opaque-ke"),
    ("signal-hook", "crossterm"),
    ("syn", "the derive macros of prost, strum, zerocopy and zeroize"),
    ("vte", "strip-ansi-escapes"),
];

#[test]
fn no_further_crate_is_compiled_in_several_versions() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--duplicates",
            "--depth",
            "0",
            "--prefix",
            "none",
            "--offline",
            "--locked",
        ])
        .args(["--target", "x86_64-unknown-linux-gnu", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    // One version with several sets of features is listed, too.
    versions.retain(|_, versions| versions.len() > 1);
    let found: Vec<&str> = versions.into_keys().collect();
    assert_eq!(found, SEVERAL.map(|(name, _)| name), "use one version, or add the reason to SEVERAL");
}
