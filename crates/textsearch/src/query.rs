//! A request: types and a pattern.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Hir, Look};

use crate::automaton::Automaton;
use crate::error::{PatternError, SearchError};
use crate::index::need::{PatternNeed, pattern_need};
use crate::pattern::{Pattern, Perl};
use crate::scan::dfa::{Dfa, Making, make};
use crate::scan::literals::Literals;
use crate::semantics::Semantics;

/// A query: the sentences of these types that match this pattern.
pub struct Query {
    kinds: Vec<i32>,
    text: String,
    semantics: Semantics,
    pattern: Pattern,
    /// For what sentences must contain.
    contains: Automaton,
    /// For a whole match.
    entire: OnceLock<Automaton>,
    dfa: OnceLock<Option<Dfa>>,
    literals: OnceLock<Vec<Literals>>,
    need: OnceLock<PatternNeed>,
}

impl Query {
    /// Reads `types;pattern`: integers with commas between them, or none for all types; and everything after the first semicolon.
    ///
    /// # Errors
    /// Reports what cannot be read or is rejected, and where.
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

    /// A query for sentences of these types, or of all types if the list is empty.
    ///
    /// # Errors
    /// Reports why the pattern is rejected.
    pub fn new(mut kinds: Vec<i32>, pattern: &str, semantics: &Semantics) -> Result<Self, PatternError> {
        kinds.sort_unstable();
        kinds.dedup();
        let parsed = Pattern::parse(pattern, semantics)?;
        let contains = Automaton::new(&parsed.contains, semantics)?;
        if parsed.entire != parsed.contains {
            // It is rarely used, but then it must not be too large either.
            drop(Automaton::new(&parsed.entire, semantics)?);
        }
        Ok(Self {
            kinds,
            text: pattern.to_owned(),
            semantics: *semantics,
            pattern: parsed,
            contains,
            entire: OnceLock::new(),
            dfa: OnceLock::new(),
            literals: OnceLock::new(),
            need: OnceLock::new(),
        })
    }

    /// The types, in order; an empty list means all.
    pub fn kinds(&self) -> &[i32] {
        &self.kinds
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.text
    }

    /// The semantics of the pattern.
    pub fn semantics(&self) -> &Semantics {
        &self.semantics
    }

    /// The canonical form, which is equal for requests with the same answer and equivalent patterns.
    pub fn canonical(&self) -> Canonical {
        Canonical { kinds: self.kinds.clone(), pattern: self.pattern.canonical.clone() }
    }

    /// Whether a sentence matches. It must have no line feed; this is the definition that every search follows.
    ///
    /// # Errors
    /// Fails if backtracking takes too many steps.
    pub fn is_match(&self, sentence: &[u8]) -> Result<bool, SearchError> {
        let matches = self.is_match_unless(sentence, &|| false)?;
        Ok(matches.expect("it was not stopped"))
    }

    /// As [`is_match`](Self::is_match); `None` if `stop` ended it.
    pub(crate) fn is_match_unless(
        &self,
        sentence: &[u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<bool>, SearchError> {
        match &self.pattern.perl {
            Some(perl) => perl.is_match(sentence).map(Some),
            None if self.pattern.dot_matters => self.entire().is_match(sentence, stop),
            None => self.contains.is_match(sentence, stop),
        }
    }

    /// Where the pattern matches in a sentence, one match after the other: the ranges to colour.
    ///
    /// # Errors
    /// Fails if backtracking takes too many steps.
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
        let found = self.entire().regex().search(|regex, cache| regex.search_with(cache, &input));
        Ok(found.map(|found| (found.start(), found.end())))
    }

    /// The PCRE2 pattern that decides where automata cannot.
    pub(crate) fn perl(&self) -> Option<&Perl> {
        self.pattern.perl.as_ref()
    }

    /// What sentences must contain.
    pub(crate) fn hir(&self) -> &Hir {
        &self.pattern.contains
    }

    /// The automaton for what sentences must contain, unless it is too large, or `stop` ends its construction. Threads that need
    /// it at the same time each build it.
    pub(crate) fn dfa(&self, stop: &dyn Fn() -> bool) -> Result<Option<&Dfa>, Stopped> {
        if self.dfa.get().is_none() {
            let made = match make(self.contains.nfa(), stop) {
                Making::Made(dfa) => Some(dfa),
                Making::TooLarge => None,
                Making::Stopped => return Err(Stopped),
            };
            let _ = self.dfa.set(made);
        }
        Ok(self.dfa.get().expect("it was just set").as_ref())
    }

    /// The sets of words of which sentences must have one.
    pub(crate) fn literals(&self) -> &[Literals] {
        self.literals.get_or_init(|| Literals::of(&self.pattern.contains))
    }

    /// The trigrams that sentences must have.
    pub(crate) fn need(&self) -> &PatternNeed {
        self.need.get_or_init(|| pattern_need(&self.pattern.contains))
    }

    /// Whether a sentence that contains what it must may still not match: in all sentences, or in those in which `.` stops
    /// somewhere.
    pub(crate) fn checks(&self) -> Checks {
        // Between the bytes of a character there is no boundary of ASCII words either; an automaton may take that for a match.
        let within_characters = self.pattern.contains.properties().look_set().contains(Look::WordAsciiNegate);
        if self.pattern.perl.is_some() || within_characters {
            Checks::All
        } else if self.pattern.dot_matters {
            Checks::WithTerminators
        } else {
            Checks::None
        }
    }

    /// The memory that it takes now: automata are built when they are first needed, and the caches of threads grow.
    pub(crate) fn bytes(&self) -> usize {
        let dfa = self.dfa.get().and_then(Option::as_ref);
        size_of::<Self>()
            + self.text.len()
            + self.contains.bytes()
            + self.entire.get().map_or(0, Automaton::bytes)
            + dfa.map_or(0, Dfa::bytes)
            + self.pattern.perl.as_ref().map_or(0, Perl::bytes)
    }

    /// The automaton for what sentences must contain.
    pub(crate) fn contains(&self) -> &Automaton {
        &self.contains
    }

    /// The automaton for a whole match.
    fn entire(&self) -> &Automaton {
        self.entire.get_or_init(|| {
            Automaton::new(&self.pattern.entire, &self.semantics).expect("it was not too large before")
        })
    }
}

/// Work on a query was stopped before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// The sentences that contain what they must and are checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    None,
    WithTerminators,
    All,
}

/// The start of the character behind this position.
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

/// The parts of a request on which its answer depends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Canonical {
    kinds: Vec<i32>,
    pattern: Arc<str>,
}
