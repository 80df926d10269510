//! The automata that decide whether one sentence has a match: the searches of `regex-automata` where they are certainly quick,
//! otherwise an automaton that can be stopped.

use std::sync::OnceLock;

use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::{Input, meta};
use regex_syntax::hir::Hir;

use crate::caches::Caches;
use crate::error::{PatternError, SearchError};
use crate::scan::lazy::{Lazy, Walked};
use crate::semantics::Semantics;

/// Up to this number of states, making a regular expression of `regex-automata` takes milliseconds.
const MOST_STATES: usize = 4096;
/// Up to this number of states times bytes of text, one of its searches is used: its slowest automaton visits every state for every
/// byte.
pub(crate) const MOST_STEPS: usize = 1 << 23;
/// Beyond this number of states times bytes, the search gives up on a sentence that only the slowest automaton can decide.
const MOST_SLOW_STEPS: usize = 1 << 27;

/// A pattern as automata, which are built when they are first needed.
#[derive(Debug)]
pub(crate) struct Automaton {
    hir: Hir,
    most_bytes: usize,
    nfa: NFA,
    regex: OnceLock<Regex>,
    lazy: OnceLock<Lazy>,
}

/// A regular expression of `regex-automata`, whose caches are counted.
#[derive(Debug)]
pub(crate) struct Regex {
    regex: meta::Regex,
    caches: Caches<meta::Cache>,
}

impl Regex {
    fn new(regex: meta::Regex) -> Self {
        let of_caches = regex.clone();
        Self { regex, caches: Caches::new(move || of_caches.create_cache(), meta::Cache::memory_usage) }
    }

    /// Searches with a cache of this thread.
    pub(crate) fn search<T>(&self, search: impl FnOnce(&meta::Regex, &mut meta::Cache) -> T) -> T {
        self.caches.search(|cache| search(&self.regex, cache))
    }

    fn is_match(&self, sentence: &[u8]) -> bool {
        let input = Input::new(sentence).earliest(true);
        self.search(|regex, cache| regex.search_half_with(cache, &input).is_some())
    }

    fn bytes(&self) -> usize {
        self.regex.memory_usage() + self.caches.bytes()
    }
}

impl Automaton {
    /// Fails if the automaton of a pattern is too large.
    pub(crate) fn new(hir: &Hir, semantics: &Semantics) -> Result<Self, PatternError> {
        let config = thompson::Config::new()
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(semantics.compiled_bytes));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(|_| {
            let reason = format!(
                "its automaton is larger than {} bytes; repeat less often, or use smaller classes",
                semantics.compiled_bytes
            );
            PatternError { at: 1, reason }
        })?;
        let most_bytes = semantics.compiled_bytes;
        Ok(Self { hir: hir.clone(), most_bytes, nfa, regex: OnceLock::new(), lazy: OnceLock::new() })
    }

    pub(crate) fn nfa(&self) -> &NFA {
        &self.nfa
    }

    /// Whether the regular expression of `regex-automata` is quick to build.
    pub(crate) fn is_small(&self) -> bool {
        self.nfa.states().len() <= MOST_STATES
    }

    /// The most bytes of text that its regular expression is certain to search in little time.
    pub(crate) fn most_text(&self) -> usize {
        MOST_STEPS / self.nfa.states().len().max(1)
    }

    /// The regular expression, also of a pattern for which it is slow to build: to find where a match is.
    pub(crate) fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            let config = meta::Config::new()
                .which_captures(WhichCaptures::Implicit)
                // The reverse automaton and that with captures are as large again.
                .nfa_size_limit(Some(8 * self.most_bytes))
                .utf8_empty(true);
            let regex = meta::Builder::new().configure(config).build_from_hir(&self.hir);
            Regex::new(regex.expect("what fits within the limit once fits within eight times the limit"))
        })
    }

    /// Whether a sentence has a match; `None` if it was stopped.
    pub(crate) fn is_match(
        &self,
        sentence: &[u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<bool>, SearchError> {
        if self.is_small() && sentence.len() <= self.most_text() {
            return Ok(Some(self.regex().is_match(sentence)));
        }
        match self.lazy.get_or_init(|| Lazy::new(&self.nfa)).line(sentence, stop) {
            Walked::Match => Ok(Some(true)),
            Walked::NoMatch => Ok(Some(false)),
            Walked::Stopped => Ok(None),
            Walked::Unknown if sentence.len().saturating_mul(self.nfa.states().len()) > MOST_SLOW_STEPS => {
                Err(SearchError::TooLarge { bytes: sentence.len() })
            }
            Walked::Unknown => Ok(Some(self.regex().is_match(sentence))),
        }
    }

    /// The memory that it takes now.
    pub(crate) fn bytes(&self) -> usize {
        self.nfa.memory_usage()
            + self.regex.get().map_or(0, Regex::bytes)
            + self.lazy.get().map_or(0, Lazy::bytes)
    }
}
