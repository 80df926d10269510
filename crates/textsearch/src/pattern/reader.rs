//! A pattern as characters that are read one by one, and the state of the parser. The rules of the grammar are in
//! [`parse`](super::parse), those of sets of characters in [`bracket`](super::bracket).

use std::collections::HashMap;

use super::tree::Case;
use crate::error::PatternError;
use crate::semantics::Alphabet;

/// The deepest nesting of groups and classes.
const MOST_DEPTH: usize = 100;

/// A part that is not possible with a finite automaton.
pub(crate) struct Irregular {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// A pattern that is being read.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a [char],
    /// The position before the next character.
    pub(crate) next: usize,
    pub(crate) flags: Flags,
    pub(crate) groups: u32,
    pub(crate) names: HashMap<String, u32>,
    pub(crate) irregular: Option<Irregular>,
    /// Back-references, to be checked once all groups are known.
    pub(crate) references: Vec<(usize, u32)>,
}

/// The flags that `(?…)` switches.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    pub(crate) ignore_case: bool,
    pub(crate) unicode_case: bool,
    pub(crate) dot_all: bool,
    pub(crate) comments: bool,
    pub(crate) unix_lines: bool,
    pub(crate) alphabet: Alphabet,
}

impl Parser<'_> {
    /// The number of the next character, from 1.
    pub(crate) fn at(&self) -> usize {
        self.next + 1
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.next + ahead).copied()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.next += usize::from(next.is_some());
        next
    }

    pub(crate) fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.next += usize::from(there);
        there
    }

    pub(crate) fn eat_all(&mut self, wanted: &str) -> bool {
        let there = wanted.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c));
        self.next += if there { wanted.chars().count() } else { 0 };
        there
    }

    /// The text up to a mark, and consumes both; `None` without a mark.
    pub(crate) fn take_until(&mut self, mark: char) -> Option<String> {
        let length = self.text[self.next..].iter().position(|&c| c == mark)?;
        let taken = self.text[self.next..self.next + length].iter().collect();
        self.next += length + 1;
        Some(taken)
    }

    pub(crate) fn error(&self, at: usize, reason: &str) -> PatternError {
        PatternError { at, reason: reason.to_owned() }
    }

    pub(crate) fn check_depth(&self, at: usize, depth: usize) -> Result<(), PatternError> {
        if depth > MOST_DEPTH {
            return Err(self.error(at, &format!("groups are nested deeper than {MOST_DEPTH}")));
        }
        Ok(())
    }

    pub(crate) fn alphabet(&self) -> Alphabet {
        self.flags.alphabet
    }

    pub(crate) fn case(&self) -> Case {
        match self.flags {
            Flags { ignore_case: false, .. } => Case::Exact,
            Flags { unicode_case: false, alphabet: Alphabet::Ascii, .. } => Case::Ascii,
            _ => Case::Unicode,
        }
    }

    /// Skips blanks and comments with `(?x)`.
    pub(crate) fn skip_blanks(&mut self) {
        while self.flags.comments {
            match self.peek() {
                Some(c) if c.is_ascii_whitespace() || c == '\x0b' => self.next += 1,
                Some('#') => while !matches!(self.next(), None | Some('\n')) {},
                _ => break,
            }
        }
    }

    pub(crate) fn irregular(&mut self, at: usize, what: &'static str) {
        self.irregular.get_or_insert(Irregular { at, what });
    }

    /// The characters up to `\E`, or to the end.
    pub(crate) fn quoted(&mut self) -> Vec<char> {
        let mut chars = Vec::new();
        while self.peek().is_some() && !self.eat_all("\\E") {
            chars.extend(self.next());
        }
        chars
    }
}
