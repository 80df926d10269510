//! Names of accounts: which are valid, and which are too alike to exist side by side.
//!
//! A name is enforced by UsernameCaseMapped of PRECIS (RFC 8265): compatibility width mapping, case mapping, NFC, only letters,
//! digits and visible ASCII, the Bidi rule. Then it must be "highly restrictive" by UTS 39: letters of one script, or of the
//! combinations that Japanese, Korean and Chinese use in addition to Latin. What makes it unique is its [`NameKey`], the skeleton of
//! UTS 39: names that look the same have the same key, whatever their code points and their case.
//!
//! A client may send a name as its user typed it: the server answers with the form that it keeps. A client that compares names applies
//! the same rules.

use std::fmt;
use std::sync::Arc;

use precis_profiles::UsernameCaseMapped;
use precis_profiles::precis_core::profile::PrecisFastInvocation;
use unicode_security::{RestrictionLevel, RestrictionLevelDetection, skeleton};

/// The most characters of a name.
pub const NAME_CHARS: usize = 32;
/// The most bytes of a name in UTF-8, as a client sends it and as the server keeps it.
pub const NAME_BYTES: usize = 128;
/// The most bytes of a key, by the bound of the stores. Latin and Cyrillic names reach it with their 32nd character, Chinese and
/// Japanese ones with their 21st.
pub const KEY_BYTES: usize = 64;
/// How often case mapping and the skeleton follow each other until nothing changes; three rounds suffice for all of Unicode.
const ROUNDS: usize = 4;

/// A valid name, as other users see it. Equality is by its characters, not by its looks: compare [`key`](Self::key) for these.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name {
    shown: Arc<str>,
    key: NameKey,
}

/// The key of a name, which makes it unique: all names that look like it have the same key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameKey(Arc<str>);

/// The reason why a text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty or too long.
    #[error("a name has 1 to {NAME_CHARS} characters, of Chinese and Japanese ones 21; choose another name")]
    Length,
    /// The name has characters that RFC 8265 excludes.
    #[error(
        "a name has letters, digits and visible ASCII characters only, and no spaces; choose another name"
    )]
    Characters,
    /// The name mixes scripts.
    #[error("a name has letters of one script, for example all Latin or all Cyrillic; choose another name")]
    Scripts,
}

impl Name {
    /// Reads a name as its user typed it.
    ///
    /// # Errors
    /// Fails on a text that the rules of this module exclude.
    pub fn new(typed: &str) -> Result<Self, NameError> {
        if typed.is_empty() || typed.len() > NAME_BYTES {
            return Err(NameError::Length);
        }
        let shown = UsernameCaseMapped::enforce(typed).map_err(|_| NameError::Characters)?;
        // NFC can join characters so that the rule of a third one no longer holds, and the shown name would not be valid.
        if UsernameCaseMapped::enforce(&*shown).ok().as_ref() != Some(&shown) {
            return Err(NameError::Characters);
        }
        if shown.len() > NAME_BYTES || shown.chars().count() > NAME_CHARS {
            return Err(NameError::Length);
        }
        if !shown.check_restriction_level(RestrictionLevel::HighlyRestrictive) {
            return Err(NameError::Scripts);
        }
        let key = key_of(&shown);
        // A mark alone has an empty skeleton in some versions of the data.
        if key.is_empty() || key.len() > KEY_BYTES {
            return Err(NameError::Length);
        }
        Ok(Self { shown: shown.into(), key: NameKey(key.into()) })
    }

    /// The name as other users see it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The key that makes the name unique.
    pub fn key(&self) -> &NameKey {
        &self.key
    }
}

impl NameKey {
    /// The key as the stores keep it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The skeleton of UTS 39, section 4, and its small letters: the data has look-alikes of capital letters that a name in
/// small letters only reaches through its digits (0 looks like O).
fn key_of(shown: &str) -> String {
    let mut key = shown.to_owned();
    for _ in 0..ROUNDS {
        let next: String = skeleton(&key.to_lowercase()).collect();
        if next == key {
            break;
        }
        key = next;
    }
    key.to_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> NameKey {
        Name::new(name).unwrap().key().clone()
    }

    #[test]
    fn look_alikes_share_a_key() {
        // Case, width, digits for letters, letters that join to another, and whole words of another script.
        for (one, other) in [
            ("Alice", "alice"),
            ("alice", "ａlice"),
            ("paul", "pau1"),
            ("bob", "b0b"),
            ("marnie", "mamie"),
            ("paypa", "раура"),
            ("cafe\u{301}", "café"),
        ] {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
        for (one, other) in [("alice", "alicia"), ("anna", "hanna"), ("müller", "muller"), ("петр", "петя")]
        {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
    }

    #[test]
    fn the_form_that_others_see_is_kept() {
        assert_eq!(Name::new("Ａlice").unwrap().shown(), "alice");
        assert_eq!(Name::new("b0b").unwrap().shown(), "b0b");
        assert_eq!(Name::new("山田タロ").unwrap().shown(), "山田タロ");
    }

    #[test]
    fn names_that_could_mislead_are_refused() {
        for (typed, error) in [
            ("", NameError::Length),
            ("a name", NameError::Characters),
            ("tab\t", NameError::Characters),
            ("zero\u{200b}width", NameError::Characters),
            ("right\u{202e}left", NameError::Characters),
            ("pаypal", NameError::Scripts),
            ("αlice", NameError::Scripts),
            (&"a".repeat(33), NameError::Length),
            (&"é".repeat(65), NameError::Length),
        ] {
            assert_eq!(Name::new(typed).map(|name| name.shown().to_owned()), Err(error), "{typed:?}");
        }
    }

    proptest! {
        /// The form that is kept is itself a name, of the same form and key; and a key is the key of what it looks like.
        #[test]
        fn a_name_is_its_own_name(typed in any::<String>()) {
            if let Ok(name) = Name::new(&typed) {
                prop_assert_eq!(Name::new(name.shown()), Ok(name.clone()));
                prop_assert!(name.key().as_str().len() <= KEY_BYTES && name.shown().len() <= NAME_BYTES);
                prop_assert_eq!(key_of(name.key().as_str()), name.key().as_str());
            }
        }
    }
}
