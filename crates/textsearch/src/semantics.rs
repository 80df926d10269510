//! What patterns mean, as far as that can be chosen.

/// What a match of a pattern with a sentence is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matching {
    /// Some part of the sentence matches, as with Java's `Matcher.find`.
    #[default]
    Find,
    /// The whole sentence matches, as with Java's `String.matches`.
    Whole,
}

/// Which characters `\d`, `\w`, `\s`, `\b`, `\p{Alpha}` and the like know, and which letters `(?i)` takes for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// Those of ASCII, as Java does without flags.
    #[default]
    Ascii,
    /// Those of Unicode, as Java does with `(?U)`.
    Unicode,
}

/// What becomes of patterns that no finite automaton can do: look-around, back-references, possessive repeats, atomic groups and `\X`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backtracking {
    /// They are refused.
    #[default]
    Refuse,
    /// They are run by trying, with this many steps at most for each sentence.
    Within {
        /// PCRE2's match limit.
        steps: u32,
    },
}

impl Backtracking {
    /// With this number of steps at most, or refused.
    pub fn of(steps: Option<u64>) -> Self {
        let within = |steps| Self::Within { steps: u32::try_from(steps).unwrap_or(u32::MAX) };
        steps.map_or(Self::Refuse, within)
    }
}

/// What patterns mean, and how large they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// What a match is.
    pub matching: Matching,
    /// What letters and digits are.
    pub alphabet: Alphabet,
    /// What becomes of patterns that automata cannot do.
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
