//! Examples in documentation run as tests, and crates without any do not start rustdoc: it takes half a second for each.

use std::fs;
use std::path::Path;

/// Whether a doc comment of this source has an example that rustdoc compiles.
fn has_example(source: &str) -> bool {
    let mut inside = false;
    source.lines().map(str::trim_start).filter(|line| line.starts_with("//")).any(|line| {
        let text = line.trim_start_matches(['/', '!']).trim();
        let Some(language) = text.strip_prefix("```") else { return false };
        inside = !inside;
        inside && ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&language)
    })
}

fn any_example(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => any_example(&path),
        false => {
            path.extension().is_some_and(|e| e == "rs") && has_example(&fs::read_to_string(&path).unwrap())
        }
    })
}

#[test]
fn exactly_the_crates_with_examples_in_their_documentation_run_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.join("src/lib.rs").exists() {
            continue;
        }
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let runs = !manifest.contains("\ndoctest = false\n");
        let has = any_example(&folder.join("src"));
        assert_eq!(runs, has, "{}: set or remove `doctest = false` under [lib]", folder.display());
    }
}

#[test]
fn only_code_of_rust_is_an_example() {
    assert!(has_example("//! ```\n//! assert!(true);\n//! ```"));
    assert!(has_example("    /// ```no_run\n    /// run();\n    /// ```"));
    assert!(!has_example("//! ```text\n//! a picture\n//! ```"));
    assert!(!has_example("let fence = \"```\";"));
}
