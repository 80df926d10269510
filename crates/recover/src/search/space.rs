//! The passwords of brute force: masks by position in the notation of hashcat, or a charset of any length.

use std::ops::RangeInclusive;
use std::str::FromStr;

use kendall_digest::password::{Mask, MaskError};

/// The passwords of brute force for each length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    charset: Vec<u8>,
    masks: Vec<Mask>,
}

/// The error of an invalid mask or charset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// The class does not exist.
    #[error(
        "{mask:?} has ?{class}, which is not a class of characters; the classes are ?l ?u ?d ?s ?a ?h ?H ?b, and ?? for a question mark"
    )]
    Class {
        /// The text.
        mask: String,
        /// The character after the question mark.
        class: char,
    },
    /// The mask ends with a question mark.
    #[error("{0:?} ends with a question mark; write ?? for the character itself")]
    Unfinished(String),
    /// The mask is not valid.
    #[error("{mask:?}: {error}")]
    Mask {
        /// The text.
        mask: String,
        /// The reason.
        error: MaskError,
    },
    /// There are too many masks.
    #[error("there are {0} masks; at most {most} are allowed", most = Space::MOST_MASKS)]
    Many(usize),
    /// The charset is empty.
    #[error("the charset is empty; name one as in ?l for lower-case letters")]
    Empty,
}

impl Default for Space {
    /// Lower-case letters.
    fn default() -> Self {
        Self { charset: (b'a'..=b'z').collect(), masks: Vec::new() }
    }
}

impl Space {
    /// The most masks.
    pub const MOST_MASKS: usize = 64;

    /// The passwords of these masks, tried in this order; for a length without a mask, all passwords of the charset. A
    /// mask has for each position a class (`?l` lower-case letters, `?u` upper-case ones, `?d` digits, `?h` and `?H`
    /// hexadecimal digits, `?s` other printable characters with the space, `?a` all of these, `?b` any byte) or a
    /// character; a charset has classes and characters likewise, all of which are allowed at each position.
    ///
    /// # Errors
    /// Fails if a class does not exist or a text is empty, and if there are too many masks or candidates.
    pub fn new<'a>(charset: &str, masks: impl IntoIterator<Item = &'a str>) -> Result<Self, SpaceError> {
        let charset: Vec<u8> = positions(charset)?.concat();
        let mut seen = [false; 256];
        let charset: Vec<u8> = charset
            .into_iter()
            .filter(|byte| !std::mem::replace(&mut seen[usize::from(*byte)], true))
            .collect();
        if charset.is_empty() {
            return Err(SpaceError::Empty);
        }
        let masks = masks.into_iter().map(mask).collect::<Result<Vec<_>, _>>()?;
        if masks.len() > Self::MOST_MASKS {
            return Err(SpaceError::Many(masks.len()));
        }
        Ok(Self { charset, masks })
    }

    /// The masks of a length from 1 to [`Mask::LONGEST`]. Skips masks of 2⁶⁴ candidates and more, which are impossible
    /// to try.
    pub(super) fn of_length(&self, length: usize) -> Vec<Mask> {
        let own: Vec<Mask> =
            self.masks.iter().filter(|mask| mask.charsets().len() == length).cloned().collect();
        if own.is_empty() { Mask::uniform(&self.charset, length).into_iter().collect() } else { own }
    }

    /// The number of candidates of these lengths; `u64::MAX` if more.
    pub(super) fn size(&self, lengths: &RangeInclusive<usize>) -> u64 {
        let of_length = |length| match self.of_length(length)[..] {
            [] => u64::MAX,
            ref masks => masks.iter().fold(0, |sum: u64, mask| sum.saturating_add(mask.size())),
        };
        lengths.clone().map(of_length).fold(0, u64::saturating_add)
    }
}

impl FromStr for Space {
    type Err = SpaceError;

    /// A charset: see [`Space::new`].
    fn from_str(charset: &str) -> Result<Self, SpaceError> {
        Self::new(charset, [])
    }
}

fn mask(text: &str) -> Result<Mask, SpaceError> {
    Mask::new(positions(text)?).map_err(|error| SpaceError::Mask { mask: text.into(), error })
}

/// The allowed bytes at each position.
fn positions(text: &str) -> Result<Vec<Vec<u8>>, SpaceError> {
    let mut positions = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '?' {
            // A character of several bytes takes as many positions.
            positions.extend(character.to_string().into_bytes().into_iter().map(|byte| vec![byte]));
            continue;
        }
        let class = rest.next().ok_or_else(|| SpaceError::Unfinished(text.into()))?;
        positions.push(self::class(class).ok_or_else(|| SpaceError::Class { mask: text.into(), class })?);
    }
    Ok(positions)
}

fn class(class: char) -> Option<Vec<u8>> {
    let printable = b' '..=b'~';
    Some(match class {
        'l' => (b'a'..=b'z').collect(),
        'u' => (b'A'..=b'Z').collect(),
        'd' => (b'0'..=b'9').collect(),
        'h' => (b'0'..=b'9').chain(b'a'..=b'f').collect(),
        'H' => (b'0'..=b'9').chain(b'A'..=b'F').collect(),
        's' => printable.filter(|byte| !byte.is_ascii_alphanumeric()).collect(),
        'a' => printable.collect(),
        'b' => (0..=255).collect(),
        '?' => b"?".to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_as_hashcat_reads_them() {
        let space = Space::new("?l", ["?u?l?d?d", "a??é", "?d?d?d?d"]).unwrap();
        let four = space.of_length(4);
        assert_eq!(four.iter().map(Mask::size).collect::<Vec<_>>(), [26 * 26 * 100, 1, 10_000]);
        assert_eq!(four[1].password(0), "a?é".as_bytes());
    }

    #[test]
    fn a_length_without_masks_has_all_of_the_charset() {
        let space = Space::new("?dab?d", ["?d?d"]).unwrap();
        assert_eq!(space.size(&(1..=3)), 12 + 100 + 12 * 12 * 12);
        assert_eq!(Space::default().size(&(5..=5)), 11_881_376);
        assert_eq!(Space::default().size(&(13..=14)), u64::MAX);
        assert_eq!("?s?a".parse::<Space>().unwrap().size(&(1..=1)), 95);
    }

    #[test]
    fn an_invalid_mask_is_rejected() {
        let error = |mask| Space::new("?l", [mask]).unwrap_err().to_string();
        assert!(error("?l?x").starts_with("\"?l?x\" has ?x, which is not a class"), "{}", error("?l?x"));
        assert!(error("?l?").ends_with("write ?? for the character itself"));
        assert!(error("").contains("the passwords have 0 bytes"));
        assert_eq!(Space::new("", []), Err(SpaceError::Empty));
        assert_eq!(Space::new("?l", ["a"; 65]), Err(SpaceError::Many(65)));
    }
}
