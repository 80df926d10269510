//! The semantics of patterns, as far as they can be chosen.

/// The condition for a match of a pattern with a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matching {
    /// Some part of the sentence matches, as with Java's `Matcher.find`.
    #[default]
    Find,
    /// The whole sentence matches, as with Java's `String.matches`.
    Whole,
}

/// Which characters `\d`, `\w`, `\s`, `\b`, `\p{Alpha}` and the like match, and which letters `(?i)` treats as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// The letters of ASCII, as Java does without flags.
    #[default]
    Ascii,
    /// The letters of Unicode, as Java does with `(?U)`.
    Unicode,
}

/// How to handle patterns that are not possible with a finite automaton: look-around, back-references, possessive repeats, atomic
/// groups and `\X`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backtracking {
    /// Patterns that need backtracking are rejected.
    #[default]
    Refuse,
    /// Patterns that need backtracking may take at most this many steps for each sentence.
    Within {
        /// PCRE2's match limit.
        steps: u32,
    },
}

impl Backtracking {
    /// With at most this number of steps, or rejected.
    pub fn of(steps: Option<u64>) -> Self {
        let within = |steps| Self::Within { steps: u32::try_from(steps).unwrap_or(u32::MAX) };
        steps.map_or(Self::Refuse, within)
    }
}

/// The semantics of patterns, and their largest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// The condition for a match.
    pub matching: Matching,
    /// Which characters count as letters and digits.
    pub alphabet: Alphabet,
    /// How to handle patterns that are not possible with automata.
    pub backtracking: Backtracking,
    /// The longest pattern, in bytes.
    pub pattern_bytes: usize,
    /// The largest automaton, in bytes, before it is made deterministic.
    pub compiled_bytes: usize,
}

impl Default for Semantics {
    fn default() -> Self {
        Self {
            matching: Matching::default(),
            alphabet: Alphabet::default(),
            backtracking: Backtracking::default(),
            pattern_bytes: 4096,
            compiled_bytes: 2 << 20,
        }
    }
}
