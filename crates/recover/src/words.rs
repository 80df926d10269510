//! Lists of words that passwords are likely to be, the likeliest first.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub mod rules;

/// Words of a list, in its order, of up to [`LONGEST`](Self::LONGEST) bytes each.
#[derive(Clone, Default)]
pub struct Words {
    text: Vec<u8>,
    /// Where in the text each word begins, and its length.
    places: Vec<(u32, u8)>,
    skipped: Skipped,
    /// The numbers of all words, the shortest first, and within a length in the order of the list.
    by_length: Vec<u32>,
}

/// The lines that are not words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines that are not UTF-8.
    pub not_text: usize,
    /// Lines that are longer than a word may be.
    pub too_long: usize,
}

/// The reason why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WordsError {
    /// The file cannot be read.
    #[error("cannot read the list of words {path}: {error}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// The file is too long.
    #[error("the list of words {0} has more than {most} MiB; use a shorter one, such as its first part", most = Words::MOST_BYTES >> 20)]
    TooLong(PathBuf),
    /// The file has no word.
    #[error("the list of words {path} has no usable word ({not_text} lines are not UTF-8, {too_long} are longer than {longest} bytes)", not_text = .skipped.not_text, too_long = .skipped.too_long, longest = Words::LONGEST)]
    Empty {
        /// The path of the file.
        path: PathBuf,
        /// The lines that are not words.
        skipped: Skipped,
    },
}

impl Words {
    /// The most bytes of a word.
    pub const LONGEST: usize = 55;
    /// The most bytes of a list.
    pub const MOST_BYTES: u64 = 512 << 20;

    /// The list that comes with kendall: 30,000 common passwords, from the crate zxcvbn.
    pub fn common() -> Self {
        Self::of(include_bytes!("../words/common.txt").to_vec())
    }

    /// The words of a file, one per line. Ignores empty lines; skips and counts other lines that are not words.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has more than [`MOST_BYTES`](Self::MOST_BYTES), or has no word.
    pub fn open(path: &Path) -> Result<Self, WordsError> {
        let unreadable = |error| WordsError::Unreadable { path: path.to_path_buf(), error };
        let file = File::open(path).map_err(unreadable)?;
        let mut text = Vec::new();
        file.take(Self::MOST_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > Self::MOST_BYTES {
            return Err(WordsError::TooLong(path.to_path_buf()));
        }
        let words = Self::of(text);
        if words.len() == 0 {
            return Err(WordsError::Empty { path: path.to_path_buf(), skipped: words.skipped });
        }
        Ok(words)
    }

    /// The words of a text, one per line; of no more than [`MOST_BYTES`](Self::MOST_BYTES).
    pub fn of(text: Vec<u8>) -> Self {
        let mut words = Self { text, ..Self::default() };
        let mut start = 0;
        for line in words.text.split(|byte| *byte == b'\n') {
            let word = line.strip_suffix(b"\r").unwrap_or(line);
            if std::str::from_utf8(word).is_err() {
                words.skipped.not_text += 1;
            } else if word.len() > Self::LONGEST {
                words.skipped.too_long += 1;
            } else if !word.is_empty() {
                words.places.push((start, word.len() as u8));
            }
            start += line.len() as u32 + 1;
        }
        words.by_length = (0..words.places.len() as u32).collect();
        words.by_length.sort_by_key(|number| words.places[*number as usize].1);
        words
    }

    /// The number of words.
    #[expect(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The word of this number, from 0.
    ///
    /// # Panics
    /// Panics if the list is not that long.
    pub fn get(&self, number: usize) -> &[u8] {
        let (start, length) = self.places[number];
        &self.text[start as usize..][..usize::from(length)]
    }

    /// All words, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// The lines of the list that are not words.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The numbers of the words that have from `least` to `most` bytes.
    pub(crate) fn of_length(&self, least: usize, most: usize) -> &[u32] {
        let shorter = |length: usize| {
            self.by_length.partition_point(|number| usize::from(self.places[*number as usize].1) < length)
        };
        let (from, until) = (shorter(least), shorter(most + 1));
        &self.by_length[from..until.max(from)]
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_words_are_counted_and_skipped() {
        let long = "x".repeat(56);
        let text = [b"one\r\n\ntw\xffo\nthree\n".as_slice(), long.as_bytes(), b"\nfour"].concat();
        let words = Words::of(text);
        assert_eq!(words.iter().collect::<Vec<_>>(), [b"one".as_slice(), b"three", b"four"]);
        assert_eq!(words.skipped(), Skipped { not_text: 1, too_long: 1 });
        assert_eq!(words.of_length(4, 5), [2, 1]);
        assert_eq!(words.of_length(3, 3), [0]);
        assert!(words.of_length(6, 50).is_empty() && words.of_length(5, 3).is_empty());
    }

    #[test]
    fn the_list_of_kendall_has_words_of_the_study() {
        let words = Words::common();
        assert_eq!((words.len(), words.skipped()), (30_000, Skipped::default()));
        assert_eq!(words.get(0), b"123456");
        for word in ["test", "hello", "merlin"] {
            assert!(words.iter().any(|other| other == word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn a_list_that_is_missing_or_empty_says_so() {
        let missing = Words::open(Path::new("/nowhere/words.txt")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read the list of words /nowhere/words.txt: "), "{missing}");
        let empty = Words::open(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(empty.contains("has no usable word (0 lines are not UTF-8, 0 are longer"), "{empty}");
    }
}
