//! The ways in which people turn a word into a password: a change, then something appended.
//!
//! 6 changes and 6 ways to append make 35 rules, since the unchanged word alone is not one; together they make up
//! to 1157 candidates of each word.

use std::fmt;

/// A change to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// No change.
    AsIs,
    /// The first letter in upper case.
    Capital,
    /// Puts all letters in upper case.
    Upper,
    /// `a`, `e`, `i`, `o` and `s` as `4`, `3`, `1`, `0` and `5`.
    Leet,
    /// The last byte first.
    Reverse,
    /// The word twice.
    Double,
}

impl Change {
    /// Every change, the likeliest first.
    pub const ALL: [Self; 6] =
        [Self::AsIs, Self::Capital, Self::Upper, Self::Leet, Self::Reverse, Self::Double];

    fn name(self) -> &'static str {
        match self {
            Self::AsIs => "word",
            Self::Capital => "capital",
            Self::Upper => "upper",
            Self::Leet => "leet",
            Self::Reverse => "reverse",
            Self::Double => "double",
        }
    }

    /// Puts the changed word into `changed`; returns whether it differs from the word.
    fn apply(self, word: &[u8], changed: &mut Vec<u8>) -> bool {
        changed.clear();
        changed.extend_from_slice(word);
        match self {
            Self::AsIs => return true,
            Self::Capital => changed[..1].make_ascii_uppercase(),
            Self::Upper => {
                changed.make_ascii_uppercase();
                // For a single letter it equals the capital.
                if changed[1..] == word[1..] {
                    return false;
                }
            }
            Self::Leet => changed.iter_mut().for_each(|byte| *byte = leet(*byte)),
            Self::Reverse => changed.reverse(),
            Self::Double => changed.extend_from_slice(word),
        }
        changed != word
    }

    /// The shortest and the longest word that this turns into `least` to `most` bytes.
    fn words_for(self, least: usize, most: usize) -> (usize, usize) {
        match self {
            Self::Double => (least.div_ceil(2), most / 2),
            _ => (least, most),
        }
    }
}

fn leet(byte: u8) -> u8 {
    match byte {
        b'a' => b'4',
        b'e' => b'3',
        b'i' => b'1',
        b'o' => b'0',
        b's' => b'5',
        other => other,
    }
}

/// The ending of a changed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Nothing.
    Nothing,
    /// `!`.
    Bang,
    /// `123`.
    Run,
    /// A digit.
    Digit,
    /// Two digits.
    TwoDigits,
    /// A year from 1950 to 2029.
    Year,
}

const FIRST_YEAR: u32 = 1950;
const YEARS: u32 = 80;

impl Ending {
    /// Every ending, those with the fewest forms first.
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Bang, Self::Run, Self::Digit, Self::TwoDigits, Self::Year];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Bang => "+!",
            Self::Run => "+123",
            Self::Digit => "+digit",
            Self::TwoDigits => "+2 digits",
            Self::Year => "+year",
        }
    }

    /// The number of its forms.
    fn forms(self) -> u32 {
        match self {
            Self::Nothing | Self::Bang | Self::Run => 1,
            Self::Digit => 10,
            Self::TwoDigits => 100,
            Self::Year => YEARS,
        }
    }

    /// The number of bytes of the ending.
    fn bytes(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bang | Self::Digit => 1,
            Self::TwoDigits => 2,
            Self::Run => 3,
            Self::Year => 4,
        }
    }

    /// Appends one of its forms.
    fn append(self, form: u32, password: &mut Vec<u8>) {
        let digit = |number: u32| b'0' + (number % 10) as u8;
        match self {
            Self::Nothing => {}
            Self::Bang => password.push(b'!'),
            Self::Run => password.extend_from_slice(b"123"),
            Self::Digit => password.push(digit(form)),
            Self::TwoDigits => password.extend([digit(form / 10), digit(form)]),
            Self::Year => {
                let year = FIRST_YEAR + form;
                password.extend([digit(year / 1000), digit(year / 100), digit(year / 10), digit(year)]);
            }
        }
    }
}

/// A change and an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    change: Change,
    ending: Ending,
}

impl Rule {
    /// All rules.
    pub fn all() -> impl Iterator<Item = Self> {
        let rules =
            Ending::ALL.into_iter().flat_map(|ending| Change::ALL.map(|change| Self { change, ending }));
        // The word itself belongs to the dictionary.
        rules.skip(1)
    }

    /// The number of candidates that it makes of a word.
    pub fn forms(self) -> u32 {
        self.ending.forms()
    }

    /// The shortest and the longest word that it turns into passwords of `least` to `most` bytes, if there are any.
    pub(crate) fn words_for(self, least: usize, most: usize) -> Option<(usize, usize)> {
        let most = most.checked_sub(self.ending.bytes())?;
        let (shortest, longest) = self.change.words_for(least.saturating_sub(self.ending.bytes()), most);
        (shortest.max(1) <= longest).then_some((shortest.max(1), longest))
    }

    /// Passes the candidates that it makes of a word to `test`, until that accepts one, which is then in
    /// `password`; returns whether it did. A change without effect makes none.
    pub(crate) fn apply(
        self,
        word: &[u8],
        password: &mut Vec<u8>,
        mut test: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        if !self.change.apply(word, password) {
            return false;
        }
        let changed = password.len();
        (0..self.forms()).any(|form| {
            password.truncate(changed);
            self.ending.append(form, password);
            test(password)
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.change.name(), self.ending.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn candidates(rule: Rule, word: &str) -> Vec<String> {
        let mut all = Vec::new();
        rule.apply(word.as_bytes(), &mut Vec::new(), |password| {
            all.push(String::from_utf8(password.to_vec()).unwrap());
            false
        });
        all
    }

    #[test]
    fn the_documented_numbers_of_rules_and_candidates_are_right() {
        assert_eq!(Rule::all().count(), 35);
        assert_eq!(Rule::all().map(Rule::forms).sum::<u32>(), 1157);
        let all: Vec<_> = Rule::all().flat_map(|rule| candidates(rule, "passion")).collect();
        assert_eq!(all.len(), 1157);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1157, "none twice");
        for one in [
            "Passion",
            "PASSION",
            "p45510n",
            "noissap",
            "passionpassion",
            "passion7",
            "passion1987",
            "Passion42",
            "p45510n!",
            "passion123",
        ] {
            assert!(all.iter().any(|other| other == one), "{one}");
        }
        assert!(!all.contains(&"passion".to_string()));
    }

    #[test]
    fn the_length_of_a_candidate_is_predicted() {
        for rule in Rule::all() {
            for length in 1..12 {
                let word = &"abcdefghijkl"[..length];
                for candidate in candidates(rule, word) {
                    let (shortest, longest) = rule.words_for(candidate.len(), candidate.len()).unwrap();
                    assert!((shortest..=longest).contains(&length), "{rule} of {word}");
                }
            }
        }
    }

    #[test]
    fn a_change_without_effect_makes_no_candidates() {
        for word in ["11111", "x"] {
            let all: Vec<_> = Rule::all().flat_map(|rule| candidates(rule, word)).collect();
            assert!(!all.iter().any(|candidate| candidate == word), "{word}");
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{word}");
        }
    }
}
