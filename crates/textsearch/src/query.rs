//! A request: types and a pattern.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_syntax::hir::{Hir, Look};

use crate::error::{PatternError, SearchError};
use crate::index::need::{Asked, ask};
use crate::pattern::{Pattern, Perl};
use crate::scan::dfa::Dfa;
use crate::scan::literals::Literals;
use crate::semantics::Semantics;

/// What is sought: sentences of these types that match this pattern.
pub struct Query {
    kinds: Vec<i32>,
    text: String,
    semantics: Semantics,
    pattern: Pattern,
    /// Of what sentences must contain.
    nfa: NFA,
    contains: OnceLock<meta::Regex>,
    entire: OnceLock<meta::Regex>,
    dfa: OnceLock<Option<Dfa>>,
    literals: OnceLock<Vec<Literals>>,
    asked: OnceLock<Asked>,
}

impl Query {
    /// Reads `types;pattern`: integers with commas between them, or none for all types; and all that follows the first semicolon.
    ///
    /// # Errors
    /// Says what cannot be read or is refused, and where.
    pub fn parse(request: &str, semantics: &Semantics) -> Result<Self, SearchError> {
        let (kinds, pattern) = Self::parts(request)?;
        Ok(Self::new(kinds, pattern, semantics)?)
    }

    /// The types of a request, in order, and its pattern.
    pub(crate) fn parts(request: &str) -> Result<(Vec<i32>, &str), SearchError> {
        let (types, pattern) = request.split_once(';').ok_or(SearchError::NoSemicolon)?;
        let mut kinds = if types.trim().is_empty() {
            Vec::new()
        } else {
            let kind = |word: &str| {
                word.trim().parse().map_err(|_| SearchError::BadType { word: word.trim().to_owned() })
            };
            types.split(',').map(kind).collect::<Result<Vec<i32>, _>>()?
        };
        kinds.sort_unstable();
        kinds.dedup();
        Ok((kinds, pattern))
    }

    /// Sentences of these types, of all if there are none.
    ///
    /// # Errors
    /// Says why the pattern is refused.
    pub fn new(mut kinds: Vec<i32>, pattern: &str, semantics: &Semantics) -> Result<Self, PatternError> {
        kinds.sort_unstable();
        kinds.dedup();
        let parsed = Pattern::parse(pattern, semantics)?;
        let nfa = nfa(&parsed.contains, semantics)?;
        if parsed.entire != parsed.contains {
            // It is rarely run, but then it must not be too large either.
            drop(self::nfa(&parsed.entire, semantics)?);
        }
        Ok(Self {
            kinds,
            text: pattern.to_owned(),
            semantics: *semantics,
            pattern: parsed,
            nfa,
            contains: OnceLock::new(),
            entire: OnceLock::new(),
            dfa: OnceLock::new(),
            literals: OnceLock::new(),
            asked: OnceLock::new(),
        })
    }

    /// The types, in order; none means all.
    pub fn kinds(&self) -> &[i32] {
        &self.kinds
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.text
    }

    /// What the pattern means.
    pub fn semantics(&self) -> &Semantics {
        &self.semantics
    }

    /// The same for requests that have the same answer because their patterns come to the same.
    pub fn canonical(&self) -> Canonical {
        Canonical { kinds: self.kinds.clone(), pattern: self.pattern.canonical.clone() }
    }

    /// Whether a sentence matches. It must have no line feed; this is what every search comes to.
    ///
    /// # Errors
    /// Where backtracking takes too many steps.
    pub fn is_match(&self, sentence: &[u8]) -> Result<bool, SearchError> {
        if let Some(perl) = &self.pattern.perl {
            return perl.is_match(sentence);
        }
        Ok(if self.pattern.dot_matters {
            self.entire().is_match(sentence)
        } else {
            self.contains().is_match(sentence)
        })
    }

    /// Where in a sentence the pattern matches, one match behind the other: what to colour.
    ///
    /// # Errors
    /// Where backtracking takes too many steps.
    pub fn matches(&self, sentence: &[u8]) -> Result<Vec<std::ops::Range<usize>>, SearchError> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = self.find_at(sentence, at)? {
            if end > start {
                found.push(start..end);
            }
            at = if end > start { end } else { after(sentence, end) };
            if at > sentence.len() {
                break;
            }
        }
        Ok(found)
    }

    fn find_at(&self, sentence: &[u8], at: usize) -> Result<Option<(usize, usize)>, SearchError> {
        if let Some(perl) = &self.pattern.perl {
            return perl.find_at(sentence, at);
        }
        let input = regex_automata::Input::new(sentence).range(at..);
        Ok(self.entire().find(input).map(|found| (found.start(), found.end())))
    }

    /// What decides where automata cannot.
    pub(crate) fn perl(&self) -> Option<&Perl> {
        self.pattern.perl.as_ref()
    }

    /// What sentences must contain.
    pub(crate) fn hir(&self) -> &Hir {
        &self.pattern.contains
    }

    /// Steps over what sentences must contain; `None` if it is too large for that.
    pub(crate) fn dfa(&self) -> Option<&Dfa> {
        self.dfa.get_or_init(|| Dfa::new(&self.nfa)).as_ref()
    }

    /// The sets of words of which sentences must have one.
    pub(crate) fn literals(&self) -> &[Literals] {
        self.literals.get_or_init(|| Literals::of(&self.pattern.contains))
    }

    /// The trigrams that sentences must have.
    pub(crate) fn asked(&self) -> &Asked {
        self.asked.get_or_init(|| ask(&self.pattern.contains))
    }

    /// Whether a sentence that contains what it must may still not match: in all, or in those in which `.` stops somewhere.
    pub(crate) fn checks(&self) -> Checks {
        // Between the bytes of a character, too, there is no boundary of ASCII words; an automaton may take that for a match.
        let within_characters = self.pattern.contains.properties().look_set().contains(Look::WordAsciiNegate);
        if self.pattern.perl.is_some() || within_characters {
            Checks::All
        } else if self.pattern.dot_matters {
            Checks::WithTerminators
        } else {
            Checks::None
        }
    }

    /// How much memory it takes by now: automata are made when they are first needed. What libraries keep for each thread is not
    /// in it.
    pub(crate) fn bytes(&self) -> usize {
        let regexes = [&self.contains, &self.entire].into_iter().filter_map(OnceLock::get);
        let dfa = self.dfa.get().and_then(Option::as_ref);
        size_of::<Self>()
            + self.text.len()
            + self.nfa.memory_usage()
            + dfa.map_or(0, Dfa::bytes)
            + regexes.map(meta::Regex::memory_usage).sum::<usize>()
    }

    /// Finds what sentences must contain.
    pub(crate) fn contains(&self) -> &meta::Regex {
        self.contains.get_or_init(|| regex(&self.pattern.contains, &self.semantics))
    }

    /// Finds all that a match takes.
    fn entire(&self) -> &meta::Regex {
        self.entire.get_or_init(|| regex(&self.pattern.entire, &self.semantics))
    }
}

/// Which sentences that contain what they must are looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    None,
    WithTerminators,
    All,
}

/// Where the character behind this place starts.
fn after(sentence: &[u8], at: usize) -> usize {
    let next = |&at: &usize| sentence.get(at).is_none_or(|byte| (*byte as i8) >= -0x40);
    (at + 1..).find(next).expect("the end is the start of nothing")
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("kinds", &self.kinds)
            .field("pattern", &self.text)
            .finish_non_exhaustive()
    }
}

/// A request as far as its answer depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Canonical {
    kinds: Vec<i32>,
    pattern: Arc<str>,
}

fn nfa(hir: &Hir, semantics: &Semantics) -> Result<NFA, PatternError> {
    let config = thompson::Config::new()
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(semantics.compiled_bytes));
    thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(|_| PatternError {
        at: 1,
        reason: format!(
            "its automaton is larger than {} bytes; repeat less often, or use smaller classes",
            semantics.compiled_bytes
        ),
    })
}

fn regex(hir: &Hir, semantics: &Semantics) -> meta::Regex {
    let config = meta::Config::new()
        .which_captures(WhichCaptures::Implicit)
        // The reverse automaton and that with captures are as large again.
        .nfa_size_limit(Some(8 * semantics.compiled_bytes))
        .utf8_empty(true);
    meta::Builder::new()
        .configure(config)
        .build_from_hir(hir)
        .expect("what fits within the limit once fits within eight times the limit")
}
