//! A lazy automaton that scans one line and can be stopped in the middle: for patterns and lines so large that the searches of
//! `regex-automata`, which always run to their end, would take seconds.

use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::start;

use crate::caches::Caches;

/// The memory that a thread may use for the automaton's cache. A larger set of states than this still fits.
const CACHE_BYTES: usize = 2 << 20;
/// The number of states of the automaton that are stepped between two checks of whether to stop: about a millisecond.
const STATES_BETWEEN_CHECKS: usize = 1 << 18;

/// The outcome of scanning a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    Match,
    NoMatch,
    /// The automaton cannot decide: the pattern uses Unicode words, and the line is not ASCII.
    Unknown,
    Stopped,
}

/// The automaton, and the cache of each thread.
#[derive(Debug)]
pub(crate) struct Lazy {
    automaton: DFA,
    caches: Caches<Cache>,
    bytes_between_checks: usize,
}

impl Lazy {
    pub(crate) fn new(nfa: &NFA) -> Self {
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true);
        let automaton = DFA::builder()
            .configure(config)
            .build_from_nfa(nfa.clone())
            .expect("words of Unicode are left to others, and the size of the cache is not checked");
        let of_cache = automaton.clone();
        let states = nfa.states().len().max(1);
        Self {
            caches: Caches::new(move || of_cache.create_cache(), Cache::memory_usage),
            automaton,
            bytes_between_checks: (STATES_BETWEEN_CHECKS / states).max(1),
        }
    }

    /// Scans a line, without its line feed.
    pub(crate) fn line(&self, line: &[u8], stop: &dyn Fn() -> bool) -> Walked {
        self.caches.search(|cache| self.walk(cache, line, stop))
    }

    fn walk(&self, cache: &mut Cache, line: &[u8], stop: &dyn Fn() -> bool) -> Walked {
        let line_start = start::Config::new().anchored(Anchored::No).look_behind(Some(b'\n'));
        let Ok(mut state) = self.automaton.start_state(cache, &line_start) else {
            return Walked::Unknown;
        };
        let bytes = line.iter().chain(b"\n");
        for (at, &byte) in bytes.enumerate() {
            if at % self.bytes_between_checks == 0 && stop() {
                return Walked::Stopped;
            }
            let Ok(next) = self.automaton.next_state(cache, state, byte) else {
                return Walked::Unknown;
            };
            state = next;
            if state.is_tagged() {
                match () {
                    () if state.is_match() => return Walked::Match,
                    () if state.is_dead() => return Walked::NoMatch,
                    () if state.is_quit() => return Walked::Unknown,
                    () => {}
                }
            }
        }
        Walked::NoMatch
    }

    /// The memory that it takes now.
    pub(crate) fn bytes(&self) -> usize {
        self.automaton.memory_usage() + self.caches.bytes()
    }
}
