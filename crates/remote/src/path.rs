//! Paths inside a copied tree: bytes, without any part that could lead out of it.

use std::borrow::Cow;
use std::fmt;

/// The longest path in bytes: one less than the kernel's limit, which counts the zero at the end.
const MAX_PATH: usize = 4095;
/// The longest name of a file, on every file system of Linux.
const MAX_NAME: usize = 255;

/// A path relative to some folder: names separated by single slashes, none of them empty, `.` or `..`. The empty path is
/// the folder itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreePath(Vec<u8>);

/// Bytes are not a valid [`TreePath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path \"{0}\" is refused: it must name something inside the folder, without \"..\" and not from the root"
)]
pub struct BadPath(pub String);

impl TreePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`BadPath`].
    pub fn new(path: impl Into<Vec<u8>>) -> Result<Self, BadPath> {
        let path = path.into();
        let is_valid = path.is_empty() || path.split(|byte| *byte == b'/').all(is_name);
        if is_valid && path.len() <= MAX_PATH {
            Ok(Self(path))
        } else {
            Err(BadPath(shown(&path).into_owned()))
        }
    }

    /// A path as a user writes it: `.`, repeated slashes and slashes at either end are dropped.
    ///
    /// # Errors
    /// [`BadPath`] where it contains `..`.
    pub fn normalised(path: &[u8]) -> Result<Self, BadPath> {
        let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        Self::new(names.collect::<Vec<_>>().join(&b'/')).map_err(|_| BadPath(shown(path).into_owned()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the path is that of the folder itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of something inside.
    ///
    /// # Errors
    /// [`BadPath`] where the result is too long.
    pub fn join(&self, inner: &Self) -> Result<Self, BadPath> {
        match (self.is_empty(), inner.is_empty()) {
            (true, _) => Ok(inner.clone()),
            (_, true) => Ok(self.clone()),
            _ => Self::new([&self.0, &b"/"[..], &inner.0].concat()),
        }
    }

    /// The path without its last name, and that name; `None` of the empty path.
    pub fn split_last(&self) -> Option<(Self, &[u8])> {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => Some((Self(self.0[..at].to_vec()), &self.0[at + 1..])),
            None if self.is_empty() => None,
            None => Some((Self::default(), &self.0)),
        }
    }

    /// The names from the first to the last.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// Whether this is `folder` or something inside it.
    pub fn is_within(&self, folder: &Self) -> bool {
        match self.0.strip_prefix(&folder.0[..]) {
            Some(rest) => folder.is_empty() || rest.is_empty() || rest[0] == b'/',
            None => false,
        }
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { ".".into() } else { shown(&self.0) }.as_ref())
    }
}

/// Whether bytes are the name of a file, and not one that leads elsewhere.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= MAX_NAME
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// Bytes as a terminal may show them: control characters and what is not UTF-8 are escaped.
pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    let plain = |text: &str| !text.chars().any(char::is_control);
    match std::str::from_utf8(bytes) {
        Ok(text) if plain(text) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_that_lead_out_are_refused() {
        for bad in ["..", "a/..", "../a", "/a", "a//b", "a/", "./a", "a/./b", "a\0b"] {
            assert!(TreePath::new(bad).is_err(), "{bad:?}");
        }
        assert!(TreePath::new(vec![b'a'; 256]).is_err());
        assert!(TreePath::new(b"caf\xe9/..b".to_vec()).is_ok());
        assert!(TreePath::normalised(b"/a/../b").is_err());
        assert_eq!(TreePath::normalised(b"//a/./b/").unwrap().as_bytes(), b"a/b");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown(b"a\x1b[2Jb\xff"), "a\\u{1b}[2Jb\\xff");
    }

    #[test]
    fn a_name_that_begins_alike_is_not_within() {
        let path = |text: &str| TreePath::new(text).unwrap();
        assert!(path("a/b").is_within(&path("a")));
        assert!(!path("ab").is_within(&path("a")));
        assert!(path("ab").is_within(&path("")));
    }

    proptest! {
        #[test]
        fn a_path_that_is_accepted_has_only_names(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(path) = TreePath::new(bytes) {
                prop_assert!(path.names().all(is_name));
                if let Some((parent, name)) = path.split_last() {
                    prop_assert_eq!(parent.join(&TreePath::new(name).unwrap()).unwrap(), path);
                }
            }
        }
    }
}
