//! The name of a type contains its subject: `Seen` or `Place` alone says nothing outside of its module.

use std::fs;
use std::path::Path;

/// Names that say nothing without a subject; `ReplayVerdict` and `LoadOptions` have one.
const BARE: [&str; 18] = [
    "Asked", "Ended", "Floor", "Found", "Given", "Gone", "Got", "Kept", "Options", "Place", "Said", "Seen",
    "Taken", "Told", "Verdict", "Watched", "Way", "Whole",
];

/// The name of the type that a line defines, if it defines one.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let restriction = rest.strip_prefix('(').and_then(|rest| rest.find(')').map(|end| &rest[end + 1..]));
        restriction.unwrap_or(rest).trim_start()
    });
    let (kind, rest) = line.split_once(' ')?;
    let is_type = matches!(kind, "struct" | "enum" | "union" | "type" | "trait");
    is_type.then(|| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next())?
}

/// The definitions of types with bare names below a folder.
fn bare(root: &Path, folder: &Path, places: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            bare(root, &path, places);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for (line, number) in fs::read_to_string(&path).unwrap().lines().zip(1..) {
                if let Some(name) = defined(line).filter(|name| BARE.contains(name)) {
                    places.push(format!("{}:{number}: {name}", path.strip_prefix(root).unwrap().display()));
                }
            }
        }
    }
}

#[test]
fn no_type_has_a_name_without_a_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut places = Vec::new();
    bare(&root, &root.join("crates"), &mut places);
    places.sort();
    assert!(places.is_empty(), "name each of these types after its subject:\n  {}", places.join("\n  "));
}

#[test]
fn definitions_are_found_and_uses_are_not() {
    assert_eq!(defined("pub(crate) struct Seen<'a> {"), Some("Seen"));
    assert_eq!(defined("    pub(in crate::server) enum Way {"), Some("Way"));
    assert_eq!(defined("type Told = (u64, u64);"), Some("Told"));
    assert_eq!(defined("struct Place(Arc<Laid>);"), Some("Place"));
    assert_eq!(defined("pub struct ReplayVerdict {"), Some("ReplayVerdict"));
    assert_eq!(defined("let seen = Seen { struct_name };"), None);
    assert_eq!(defined("/// A struct Seen is named in a comment."), None);
}
