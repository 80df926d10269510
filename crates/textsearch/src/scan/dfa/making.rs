//! Builds the table of a deterministic automaton, one transition at a time, so that a deadline can end it anywhere.
//!
//! `regex-automata` computes the transitions of its lazy automaton when they are first needed; this needs all of them, breadth
//! first. Its `dense` automata are built in one call, which takes seconds for a large pattern and cannot be interrupted.

use std::collections::HashMap;

use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::start;

use super::{Dfa, FIRST, MATCH, MOST_ROWS, ROW, Table, UNKNOWN, place};

/// The cache during the construction of a table; it is dropped afterwards.
const BUILD_BYTES: usize = 16 << 20;
/// The most work for a table, in bytes of the sets of states that are read and written: a fraction of a second.
const MOST_WORK: usize = 1 << 28;
/// The cost of a transition besides its sets, in the same unit.
const TRANSITION_WORK: usize = 64;
/// The amount of work between two checks of whether to stop: less than a millisecond.
const WORK_BETWEEN_CHECKS: usize = 1 << 18;

/// The outcome of building a table.
#[derive(Debug)]
pub(crate) enum Making {
    Made(Dfa),
    /// The automaton would have too many rows, or take too much memory or work.
    TooLarge,
    Stopped,
}

/// Builds a table, unless it is too large or `stop` ends the work.
pub(crate) fn make(nfa: &NFA, stop: &dyn Fn() -> bool) -> Making {
    let config = DFA::config()
        .match_kind(MatchKind::All)
        .unicode_word_boundary(true)
        .cache_capacity(BUILD_BYTES)
        // The cache never loses a state: where it is full, the automaton is too large.
        .minimum_cache_clear_count(Some(0));
    let Ok(automaton) = DFA::builder().configure(config).build_from_nfa(nfa.clone()) else {
        return Making::TooLarge;
    };
    let rows = Rows {
        cache: automaton.create_cache(),
        automaton: &automaton,
        numbers: HashMap::new(),
        queue: Vec::new(),
        work: 0,
    };
    match rows.table(stop) {
        Ok(dfa) => Making::Made(dfa),
        Err(Unfinished::TooLarge) => Making::TooLarge,
        Err(Unfinished::Stopped) => Making::Stopped,
    }
}

/// The reason why there is no table.
enum Unfinished {
    TooLarge,
    Stopped,
}

/// Rows are numbered as they are reached, from the start of a line; nothing is reached beyond a match.
struct Rows<'a> {
    automaton: &'a DFA,
    cache: Cache,
    /// The row of a state, and the bytes of its set.
    numbers: HashMap<LazyStateID, (u32, usize)>,
    queue: Vec<LazyStateID>,
    work: usize,
}

impl Rows<'_> {
    fn table(mut self, stop: &dyn Fn() -> bool) -> Result<Dfa, Unfinished> {
        let line_start = start::Config::new().anchored(Anchored::No).look_behind(Some(b'\n'));
        let before = self.cache.memory_usage();
        let start = self.automaton.start_state(&mut self.cache, &line_start);
        let start = start.map_err(|_| Unfinished::TooLarge)?;
        let set_bytes = self.cache.memory_usage().saturating_sub(before);
        let (start, _) = self.row(start, set_bytes)?;
        let mut table = [[MATCH; ROW], [UNKNOWN; ROW]].concat();
        let classes = self.automaton.byte_classes();
        let (mut next, mut checked) = (0, 0);
        while let Some(&state) = self.queue.get(next) {
            next += 1;
            let row = place(table.len() / ROW) as usize;
            let (_, from_bytes) = self.numbers[&state];
            table.resize(table.len() + ROW, MATCH);
            let mut of_class = [None; ROW];
            for byte in 0..=u8::MAX {
                let known = &mut of_class[usize::from(classes.get(byte))];
                let to = match *known {
                    Some(to) => to,
                    None => {
                        let (to, to_bytes) = self.step(state, byte)?;
                        self.work += from_bytes + to_bytes + TRANSITION_WORK;
                        if self.work > MOST_WORK {
                            return Err(Unfinished::TooLarge);
                        }
                        if self.work - checked > WORK_BETWEEN_CHECKS {
                            checked = self.work;
                            if stop() {
                                return Err(Unfinished::Stopped);
                            }
                        }
                        to
                    }
                };
                *known = Some(to);
                table[row ^ usize::from(byte)] = to;
            }
        }
        Ok(Dfa { table: Table::new(table), start })
    }

    /// The row behind a byte, and the bytes of its set.
    fn step(&mut self, state: LazyStateID, byte: u8) -> Result<(u32, usize), Unfinished> {
        let before = self.cache.memory_usage();
        let next = self.automaton.next_state(&mut self.cache, state, byte);
        let next = next.map_err(|_| Unfinished::TooLarge)?;
        let grown = self.cache.memory_usage().saturating_sub(before);
        self.row(next, grown)
    }

    /// The row of a state, which takes the given number of bytes if it is new.
    fn row(&mut self, state: LazyStateID, set_bytes: usize) -> Result<(u32, usize), Unfinished> {
        if state.is_match() {
            return Ok((MATCH, set_bytes));
        }
        if state.is_quit() {
            return Ok((UNKNOWN, set_bytes));
        }
        let next = place(FIRST as usize / ROW + self.numbers.len());
        let row = *self.numbers.entry(state).or_insert_with(|| {
            self.queue.push(state);
            (next, set_bytes)
        });
        if self.numbers.len() > MOST_ROWS { Err(Unfinished::TooLarge) } else { Ok(row) }
    }
}
