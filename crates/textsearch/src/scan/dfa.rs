//! A deterministic automaton laid flat, stepped through eight stretches of text at a time.
//!
//! A step is a load that waits for the one before, five cycles a byte, while the processor could do many at once. Eight streams in
//! turns keep it busy: 4 GB/s on one core, whatever the pattern. (Mytkowicz, Musuvathi and Schulte, ASPLOS 2014, say more of such
//! parallelism.) `regex-automata` makes the automaton; here each state has a row of 256 entries, so that a step is one load and no
//! look at classes of bytes, and states in which the answer is known lead to themselves, so that one look every eight bytes does.

use std::ops::Range;

use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;

/// How many streams run in turns.
const LANES: usize = 8;
/// How many bytes are stepped between two looks at whether an answer is known.
const GROUP: usize = 8;
/// A lane whose stretch has so many bytes left gives half of it to one that has none.
const WORTH_HALVING: usize = 1024;
/// The most rows of the table. With more of them, they are seldom in the cache.
const MOST_ROWS: usize = 8192;
const ROW: usize = 256;
/// A state is the place of its row. In the first ones the answer is known.
const MATCH: u32 = 0;
const UNKNOWN: u32 = ROW as u32;
const FIRST: u32 = 2 * ROW as u32;
/// While a table is made; it is dropped afterwards.
const BUILD_BYTES: usize = 16 << 20;

/// What is known of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Match,
    /// The automaton cannot say: it asks for words of Unicode, and the line is not ASCII.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Dfa {
    /// A row for each state, an entry for each byte: the next state.
    table: Box<[u32]>,
    /// The state at the start of a line.
    start: u32,
}

impl Dfa {
    /// `None` if the automaton would be too large.
    pub(crate) fn new(nfa: &NFA) -> Option<Self> {
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .match_kind(MatchKind::All)
            .accelerate(false)
            .unicode_word_boundary(true)
            .dfa_size_limit(Some(BUILD_BYTES))
            .determinize_size_limit(Some(BUILD_BYTES));
        let dense = dense::Builder::new().configure(config).build_from_nfa(nfa).ok()?;
        let line_start = start::Config::new().anchored(Anchored::No).look_behind(Some(b'\n'));
        let start = dense.start_state(&line_start).ok()?;
        Flattening::new(&dense).flatten(start)
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.table)
    }

    /// Goes over these lines of a text, whose lines start at `starts`. `hit` is told each that matches, once.
    pub(crate) fn scan(
        &self,
        text: &[u8],
        starts: &[u32],
        lines: Range<usize>,
        hit: impl FnMut(usize, Verdict),
    ) {
        self.scan_stretches(text, starts, std::iter::once(lines), hit);
    }

    /// Goes over stretches of lines, in any order.
    pub(crate) fn scan_stretches(
        &self,
        text: &[u8],
        starts: &[u32],
        mut stretches: impl Iterator<Item = Range<usize>>,
        mut hit: impl FnMut(usize, Verdict),
    ) {
        let mut lanes: [Lane; LANES] = Default::default();
        'full: loop {
            for idle in 0..LANES {
                while lanes[idle].at == lanes[idle].end {
                    let next = stretches.next().map(|lines| Lane {
                        at: starts[lines.start] as usize,
                        end: starts[lines.end] as usize,
                        line: lines.start,
                        state: self.start,
                    });
                    let Some(lane) = next.or_else(|| self.halve(&mut lanes, starts)) else { break 'full };
                    lanes[idle] = lane;
                }
            }
            let length = |lane: &Lane| lane.end - lane.at;
            match lanes.iter().map(length).min().expect("there are lanes") / GROUP {
                0 => lanes
                    .iter_mut()
                    .filter(|lane| length(lane) < GROUP)
                    .for_each(|lane| self.step_alone(lane, text)),
                groups => self.step(&mut lanes, text, groups),
            }
            lanes.iter_mut().for_each(|lane| self.look(lane, starts, &mut hit));
        }
        for lane in &mut lanes {
            while lane.at < lane.end {
                self.step_alone(lane, text);
                self.look(lane, starts, &mut hit);
            }
        }
    }

    /// Takes the second half of the lane that has most left; `None` if that is not worth it.
    fn halve(&self, lanes: &mut [Lane; LANES], starts: &[u32]) -> Option<Lane> {
        let most = lanes
            .iter_mut()
            .max_by_key(|lane| lane.end - lane.at)
            .filter(|lane| lane.end - lane.at >= WORTH_HALVING)?;
        let line = line_of(starts, most.line, most.at.midpoint(most.end)) + 1;
        let (at, end) = (starts[line] as usize, most.end);
        most.end = at;
        Some(Lane { at, end, line, state: self.start }).filter(|_| at < end)
    }

    /// Whether the answer for the line in which a lane is, is known; then the lane goes on with the next.
    fn look(&self, lane: &mut Lane, starts: &[u32], hit: &mut impl FnMut(usize, Verdict)) {
        if lane.state >= FIRST {
            return;
        }
        let line = line_of(starts, lane.line, lane.at - 1);
        hit(line, if lane.state == MATCH { Verdict::Match } else { Verdict::Unknown });
        lane.line = line + 1;
        lane.at = starts[line + 1] as usize;
        lane.state = self.start;
    }

    /// Steps all lanes so many groups of bytes, or up to where an answer becomes known.
    fn step(&self, lanes: &mut [Lane; LANES], text: &[u8], groups: usize) {
        let stretches = lanes.each_ref().map(|lane| &text[lane.at..].as_chunks::<GROUP>().0[..groups]);
        let mut states = lanes.each_ref().map(|lane| lane.state);
        for group in 0..groups {
            let bytes = stretches.map(|stretch| &stretch[group]);
            let before = states;
            for at in 0..GROUP {
                for (state, bytes) in states.iter_mut().zip(bytes) {
                    *state = self.table[(*state | u32::from(bytes[at])) as usize];
                }
            }
            if states.iter().any(|&state| state < FIRST) {
                for ((lane, state), before) in lanes.iter_mut().zip(states).zip(before) {
                    lane.at += group * GROUP;
                    if state < FIRST {
                        // Which of the eight bytes it was tells the line.
                        lane.state = before;
                        self.step_alone(lane, text);
                    } else {
                        (lane.at, lane.state) = (lane.at + GROUP, state);
                    }
                }
                return;
            }
        }
        for (lane, state) in lanes.iter_mut().zip(states) {
            (lane.at, lane.state) = (lane.at + groups * GROUP, state);
        }
    }

    /// Steps one lane through a group at most, and no further than to where the answer is known.
    fn step_alone(&self, lane: &mut Lane, text: &[u8]) {
        let end = lane.end.min(lane.at + GROUP);
        while lane.at < end && lane.state >= FIRST {
            lane.state = self.table[(lane.state | u32::from(text[lane.at])) as usize];
            lane.at += 1;
        }
    }
}

/// A stream: how far it has come in its stretch, a line that does not lie behind that, and its state.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    at: usize,
    end: usize,
    line: usize,
    state: u32,
}

/// The line in which a byte is, sought from a line on that does not lie behind it.
pub(crate) fn line_of(starts: &[u32], from: usize, at: usize) -> usize {
    let at = at as u32;
    let mut step = 1;
    while starts.get(from + step).is_some_and(|&start| start <= at) {
        step *= 2;
    }
    let low = from + step / 2;
    let high = (from + step).min(starts.len());
    low + starts[low..high].partition_point(|&start| start <= at) - 1
}

/// Rows are numbered as they are met, from the start of a line on; beyond a match nothing is met.
struct Flattening<'a> {
    dense: &'a dense::DFA<Vec<u32>>,
    rows: std::collections::HashMap<StateID, u32>,
    queue: Vec<StateID>,
}

impl<'a> Flattening<'a> {
    fn new(dense: &'a dense::DFA<Vec<u32>>) -> Self {
        Self { dense, rows: std::collections::HashMap::new(), queue: Vec::new() }
    }

    fn flatten(mut self, start: StateID) -> Option<Dfa> {
        let start = self.row(start)?;
        let mut table = [[MATCH; ROW], [UNKNOWN; ROW]].concat();
        let classes = self.dense.byte_classes();
        let mut next = 0;
        while let Some(&state) = self.queue.get(next) {
            next += 1;
            let mut of_class = [None; ROW];
            for byte in 0..=u8::MAX {
                let known = &mut of_class[usize::from(classes.get(byte))];
                let to = match *known {
                    Some(to) => to,
                    None => self.row(self.dense.next_state(state, byte))?,
                };
                *known = Some(to);
                table.push(to);
            }
        }
        Some(Dfa { table: table.into(), start })
    }

    /// The row of a state; `None` if there are too many.
    fn row(&mut self, state: StateID) -> Option<u32> {
        if self.dense.is_match_state(state) {
            return Some(MATCH);
        }
        if self.dense.is_quit_state(state) {
            return Some(UNKNOWN);
        }
        let next = FIRST as usize + self.rows.len() * ROW;
        let row = *self.rows.entry(state).or_insert_with(|| {
            self.queue.push(state);
            next as u32
        });
        (self.rows.len() <= MOST_ROWS).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(text: &str) -> Vec<u32> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        std::iter::once(0).chain(ends).collect()
    }

    proptest! {
        #[test]
        fn a_byte_is_in_the_line_that_ends_behind_it(lengths in prop::collection::vec(1u32..5, 1..60), at: prop::sample::Index, from: prop::sample::Index) {
            let starts: Vec<u32> = std::iter::once(0).chain(lengths.iter().scan(0, |sum, length| { *sum += length; Some(*sum) })).collect();
            let at = at.index(starts[lengths.len()] as usize);
            let wanted = starts.iter().rposition(|&start| start as usize <= at).unwrap();
            prop_assert_eq!(line_of(&starts, from.index(wanted + 1), at), wanted);
        }

        #[test]
        fn it_finds_the_lines_that_a_plain_search_finds(lines in prop::collection::vec("[ab1 é]{0,9}", 0..300), pattern in prop::sample::select(vec![
            "a", "^a", "b$", "^$", "a.b", "(?-u:\\b)1", "[ab]{3}", "a[^\\n]*b[^\\n]*1", "é", "(a|b1|é)+ ", "[^\\n]{4}", "",
        ])) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let hir = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern).unwrap();
            let dfa = Dfa::new(&NFA::compiler().build_from_hir(&hir).unwrap()).unwrap();
            let plain = regex_automata::meta::Builder::new().build_from_hir(&hir).unwrap();
            let wanted: Vec<usize> = (0..lines.len()).filter(|&line| plain.is_match(&lines[line])).collect();
            let mut found = Vec::new();
            dfa.scan(text.as_bytes(), &starts(&text), 0..lines.len(), |line, verdict| {
                assert_eq!(verdict, Verdict::Match);
                found.push(line);
            });
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn large_tables_find_the_same_and_too_large_ones_are_none() {
        let nfa = |pattern: &str| NFA::compiler().build(pattern).unwrap();
        let dfa = Dfa::new(&nfa("[ab][^b]{8}b")).unwrap();
        assert!(dfa.table.len() > 1 << 16);
        let text = "xaxxxxxxxxbx\naxxxxxxxb\n\nbxxxxxxxxb\nab\na\nb\nbaaaaaaaab";
        let text = format!("{text}\n");
        let mut found = Vec::new();
        dfa.scan(text.as_bytes(), &starts(&text), 0..8, |line, _| found.push(line));
        found.sort_unstable();
        // Line feeds are in this class, but a line is looked at no further than where it matches.
        assert!(found.contains(&0) && found.contains(&3) && found.contains(&7));
        assert!(Dfa::new(&nfa("[ab][^c]{40}b")).is_none());
    }
}
