//! Names with `*` and `?`, expanded as in a shell, for where there is no shell.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The most paths of one pattern.
const MOST_PATHS: usize = 100_000;

/// Whether a path has a wildcard character.
pub fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// The paths of a pattern, in order of their names, with numbers in them by value: `*` matches any characters of one name and `?`
/// one character; neither matches a dot at the beginning of a name.
///
/// # Errors
/// Fails if a folder cannot be read, or there are too many paths.
pub fn expand(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = match component {
            Component::Normal(name) if is_pattern(Path::new(name)) => name.to_string_lossy(),
            plain => {
                found.iter_mut().for_each(|path| path.push(plain));
                continue;
            }
        };
        let mut next = Vec::new();
        for folder in &found {
            next.extend(matching(folder, &name)?);
            if next.len() > MOST_PATHS {
                return Err(io::Error::other(format!("it matches more than {MOST_PATHS} paths")));
            }
        }
        found = next;
    }
    found.retain(|path| path.exists());
    found.sort_by_cached_key(|path| key(&path.to_string_lossy()));
    Ok(found)
}

/// The entries of a folder with names of this pattern.
fn matching(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !place.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in place.read_dir()? {
        let name = entry?.file_name();
        let is_hidden = name.as_encoded_bytes().first() == Some(&b'.') && !pattern.starts_with('.');
        if !is_hidden && fits(&name.to_string_lossy(), pattern) {
            found.push(folder.join(name));
        }
    }
    Ok(found)
}

/// Whether a name matches a pattern. It only backtracks to the last `*`, so its time is at most proportional to the product of both
/// lengths.
fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[at] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, of) = (taken + 1, place + 1);
            }
        }
    }
    pattern[of..].iter().all(|letter| *letter == '*')
}

/// The key by which paths are sorted: their text, with numbers by value, so that run-10 comes after run-9.
fn key(text: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let after = &rest[digits..];
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        parts.push((rest[..digits].to_owned(), after[..end].parse().unwrap_or(u64::MAX)));
        rest = &after[end..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_pattern_stands_for_the_paths_that_a_shell_would_find() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["new-1/a", "new-2/a", "new-10/b", "old-1/a", ".new-3/a"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let found = expand(&folder.path().join(pattern)).unwrap();
            found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(found("new-*"), ["new-1", "new-2", "new-10"]);
        assert_eq!(found("*-1"), ["new-1", "old-1"]);
        assert_eq!(found("*/a"), ["new-1/a", "new-2/a", "old-1/a"]);
        assert_eq!(found("new-?/*"), ["new-1/a", "new-2/a"]);
        assert_eq!(found(".new*"), [".new-3"]);
        assert!(found("none-*").is_empty() && found("new-1/a/*/b").is_empty());
        assert!(is_pattern(Path::new("a?")) && !is_pattern(Path::new("a-b")));
        assert_eq!(found("new-1"), ["new-1"]);
    }

    #[test]
    fn names_fit_patterns_and_no_pattern_takes_forever() {
        let all = [
            ("", "", true),
            ("", "*", true),
            ("abc", "a*c", true),
            ("abc", "a?c", true),
            ("abc", "a?", false),
        ];
        for (name, pattern, does) in all {
            assert_eq!(fits(name, pattern), does, "{name} {pattern}");
        }
        assert!(fits("aXbXc", "a*b*c") && !fits("aXbX", "a*b*c"));
        assert!(!fits(&"a".repeat(200), &("a*".repeat(50) + "b")));
    }
}
