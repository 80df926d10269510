//! Every crate that the workspace builds has a licence that lets kendall be given away under its own, and comes from the registry.
//!
//! `cargo deny` checks the same and, with its database of advisories, known faults; this needs no network.

use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than their text and the names of the authors.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Whether a licence expression of SPDX allows what is needed: one of the parts of an OR, and every part of an AND.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.trim();
    if ALLOWED.contains(&expression) {
        return true;
    }
    // AND binds more tightly, so the outermost OR divides first.
    for (operator, all) in [(" OR ", false), (" AND ", true)] {
        if let Some((left, right)) = split_outside(expression, operator) {
            let (left, right) = (is_allowed(left), is_allowed(right));
            return if all { left && right } else { left || right };
        }
    }
    expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).is_some_and(is_allowed)
}

/// Divides at the first operator that is in no parentheses.
fn split_outside<'a>(expression: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let places = expression.match_indices(operator).map(|(at, _)| at);
    let depth = |at: usize| {
        let before = &expression[..at];
        before.matches('(').count() - before.matches(')').count()
    };
    let at = places.into_iter().find(|&at| depth(at) == 0)?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

#[test]
fn every_crate_may_be_given_away_and_comes_from_the_registry() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 300, "{}", packages.len());
    for package in packages {
        let (name, version) = (&package["name"], &package["version"]);
        let licence = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        assert!(is_allowed(&licence), "{name} {version}: {licence:?}");
        let source = package["source"].as_str();
        assert!(source.is_none_or(|source| source == REGISTRY), "{name} {version} is from {source:?}");
    }
}

#[test]
fn expressions_are_read_as_they_bind() {
    let cases = [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("GPL-3.0 OR MIT AND ISC", true),
        ("(GPL-3.0 AND MIT) OR LGPL-2.1-or-later", false),
        ("", false),
    ];
    for (expression, expected) in cases {
        assert_eq!(is_allowed(expression), expected, "{expression}");
    }
}
