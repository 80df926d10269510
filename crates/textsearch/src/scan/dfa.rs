//! A deterministic automaton as a flat table, stepped through eight stretches of text at a time.
//!
//! A step is a load that waits for the one before, five cycles per byte, while the processor could do many at once. Eight
//! interleaved streams keep it busy: 3 to 4 GB/s on one core, whatever the pattern. (Mytkowicz, Musuvathi and Schulte, ASPLOS 2014,
//! analyse such parallelism.) `regex-automata` makes the automaton; here each state has a row of 256 entries, so that a step is one
//! load without a lookup of byte classes, and states in which the answer is known lead to themselves, so that a check every few
//! bytes is enough.

mod making;

use std::hint::black_box;
use std::ops::Range;

pub(crate) use making::{Making, make};

/// The number of interleaved streams.
const LANES: usize = 8;
/// The number of bytes that are stepped between two checks of whether an answer is known.
const GROUP: usize = 16;
/// The number of bytes of each stream that are copied next to each other, where each is found without a register for its position.
const PIECE: usize = 128;
/// The number of starts of lines in a cache line.
const CACHE_LINE_STARTS: usize = 16;
/// A lane with at least this many bytes left gives half of its stretch to one that has none.
const WORTH_HALVING: usize = 1024;
/// The most rows of the table. With more of them, they are seldom in the cache.
const MOST_ROWS: usize = 8192;
const ROW: usize = 256;
/// The most rows of a table whose entries have two bytes. Every index lies in it, which saves a bounds check at each step.
const SMALL_ROWS: usize = 256;
/// A state is the index of its row, see [`place`]. In the first ones the answer is known.
const MATCH: u32 = 0;
const UNKNOWN: u32 = ROW as u32;
const FIRST: u32 = 2 * ROW as u32;

/// The result for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineVerdict {
    Match,
    /// The automaton cannot decide: the pattern uses Unicode words, and the line is not ASCII.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Dfa {
    table: Table,
    /// The state at the start of a line.
    start: u32,
}

/// The position of a row: the entry of a byte is at the exclusive or of this position and the byte.
///
/// Text has mostly lower-case letters, whose entries would lie in the same few sets of the first-level cache in all rows, and evict
/// each other from some 90 rows on. So rows that are as far apart as the cache's sets have their entries in different orders.
fn place(row: usize) -> u32 {
    ((row * ROW) | ((row >> 2 & 0xf) << 4)) as u32
}

/// A row for each state, an entry for each byte: the next state.
#[derive(Debug)]
enum Table {
    Small(Box<[u16; SMALL_ROWS * ROW]>),
    Large(Box<[u32]>),
}

/// The operations of a table for the loops that step through it.
trait Step {
    /// The state behind a byte.
    fn step(&self, state: u32, byte: u8) -> u32;

    /// The same state, bounded so that the compiler sees that it is a state.
    fn within(state: u32) -> u32;
}

impl Step for [u16; SMALL_ROWS * ROW] {
    #[inline(always)]
    fn step(&self, state: u32, byte: u8) -> u32 {
        u32::from(self[(state ^ u32::from(byte)) as usize])
    }

    #[inline(always)]
    fn within(state: u32) -> u32 {
        state & 0xffff
    }
}

impl Step for [u32] {
    #[inline(always)]
    fn step(&self, state: u32, byte: u8) -> u32 {
        self[(state ^ u32::from(byte)) as usize]
    }

    #[inline(always)]
    fn within(state: u32) -> u32 {
        state
    }
}

impl Table {
    fn new(entries: Vec<u32>) -> Self {
        if entries.len() > SMALL_ROWS * ROW {
            return Self::Large(entries.into());
        }
        let mut small = vec![0; SMALL_ROWS * ROW];
        for (place, entry) in small.iter_mut().zip(entries) {
            *place = entry as u16;
        }
        Self::Small(small.into_boxed_slice().try_into().expect("it has the length of the table"))
    }
}

impl Dfa {
    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.table {
            Table::Small(table) => size_of_val(&**table),
            Table::Large(table) => size_of_val(&**table),
        }
    }

    /// Scans these lines of a text, whose lines start at `starts`. Calls `hit` once for each that matches.
    pub(crate) fn scan(
        &self,
        text: &[u8],
        starts: &[u32],
        lines: Range<usize>,
        hit: impl FnMut(usize, LineVerdict),
    ) {
        // Each hit looks up where its line starts, far from the one before: prefetching brings them all from memory at once.
        let fetched =
            starts[lines.clone()].iter().step_by(CACHE_LINE_STARTS).fold(0, |all, start| all ^ start);
        black_box(fetched);
        self.scan_stretches(text, starts, std::iter::once(lines), hit);
    }

    /// Scans stretches of lines, in any order.
    pub(crate) fn scan_stretches(
        &self,
        text: &[u8],
        starts: &[u32],
        stretches: impl Iterator<Item = Range<usize>>,
        hit: impl FnMut(usize, LineVerdict),
    ) {
        match &self.table {
            Table::Small(table) => {
                Walk::new(&**table, self.start, text, starts).over(stretches, hit);
            }
            Table::Large(table) => {
                Walk::new(&**table, self.start, text, starts).over(stretches, hit);
            }
        }
    }
}

/// A table in the middle of a text, in several streams.
struct Walk<'a, T: Step + ?Sized> {
    table: &'a T,
    start: u32,
    text: &'a [u8],
    /// The starts of its lines.
    starts: &'a [u32],
    lanes: [Lane; LANES],
    /// The next bytes of each lane, from `place` on. Next to each other, each is found without a register for the lane's position.
    pieces: [[u8; PIECE]; LANES],
    place: usize,
}

impl<'a, T: Step + ?Sized> Walk<'a, T> {
    fn new(table: &'a T, start: u32, text: &'a [u8], starts: &'a [u32]) -> Self {
        Self { table, start, text, starts, lanes: Default::default(), pieces: [[0; PIECE]; LANES], place: 0 }
    }

    fn over(
        mut self,
        mut stretches: impl Iterator<Item = Range<usize>>,
        mut hit: impl FnMut(usize, LineVerdict),
    ) {
        'full: loop {
            for idle in 0..LANES {
                while self.lanes[idle].left() == 0 {
                    let next = stretches.next().map(|lines| Lane {
                        at: self.starts[lines.start] as usize,
                        end: self.starts[lines.end] as usize,
                        line: lines.start,
                        state: self.start,
                    });
                    let Some(lane) = next.or_else(|| self.halve()) else { break 'full };
                    self.lanes[idle] = lane;
                    self.fill(idle);
                }
            }
            match self.lanes.iter().map(Lane::left).min().expect("there are lanes") / GROUP {
                0 => {
                    for ending in 0..LANES {
                        if self.lanes[ending].left() < GROUP {
                            self.step_alone(ending, &mut hit);
                            self.fill(ending);
                        }
                    }
                }
                groups => self.step(groups, &mut hit),
            }
        }
        for last in 0..LANES {
            while self.lanes[last].left() > 0 {
                self.step_alone(last, &mut hit);
            }
        }
    }

    /// Takes the second half of the lane that has most left; `None` if that is not worthwhile.
    fn halve(&mut self) -> Option<Lane> {
        let most = self.lanes.iter_mut().max_by_key(|lane| lane.left())?;
        if most.left() < WORTH_HALVING {
            return None;
        }
        let line = line_of(self.starts, most.line, most.at.midpoint(most.end)) + 1;
        let (at, end) = (self.starts[line] as usize, most.end);
        most.end = at;
        Some(Lane { at, end, line, state: self.start }).filter(|_| at < end)
    }

    /// Copies the next bytes of a lane, from `place` on.
    fn fill(&mut self, lane: usize) {
        let (piece, at) = (&mut self.pieces[lane], self.lanes[lane].at);
        // The bytes before `place` are not read, but a copy of constant length is fastest.
        match at.checked_sub(self.place).and_then(|from| self.text[from..].first_chunk()) {
            Some(bytes) => *piece = *bytes,
            None => {
                let rest = &self.text[at..];
                let most = rest.len().min(PIECE - self.place);
                piece[self.place..][..most].copy_from_slice(&rest[..most]);
            }
        }
    }

    /// Steps all lanes this many groups of bytes, or fewer if one of them comes to its end.
    fn step(&mut self, mut groups: usize, hit: &mut impl FnMut(usize, LineVerdict)) {
        let mut states = self.lanes.each_ref().map(|lane| lane.state);
        let mut done = 0;
        while done < groups {
            if self.place == PIECE {
                self.place = 0;
                for (piece, lane) in self.pieces.iter_mut().zip(&self.lanes) {
                    let rest = &self.text[lane.at.wrapping_add(done * GROUP)..];
                    match rest.first_chunk() {
                        Some(bytes) => *piece = *bytes,
                        None => piece[..rest.len()].copy_from_slice(rest),
                    }
                }
            }
            let before = states;
            self.step_group(&mut states);
            self.place += GROUP;
            if states.iter().any(|&state| state < FIRST) {
                for known in 0..LANES {
                    if states[known] >= FIRST {
                        continue;
                    }
                    // The position of the byte gives the line.
                    let lane = &mut self.lanes[known];
                    (lane.at, lane.state) = (lane.at.wrapping_add(done * GROUP), before[known]);
                    self.step_alone(known, hit);
                    self.fill(known);
                    let lane = &mut self.lanes[known];
                    states[known] = lane.state;
                    groups = groups.min(done + 1 + lane.left() / GROUP);
                    // As if it had been there from the start.
                    lane.at = lane.at.wrapping_sub((done + 1) * GROUP);
                }
            }
            done += 1;
        }
        for (lane, state) in self.lanes.iter_mut().zip(states) {
            (lane.at, lane.state) = (lane.at.wrapping_add(done * GROUP), state);
        }
    }

    /// Steps all streams through a group of their pieces: one byte of each, then the next of each. If the loop were unrolled, the
    /// compiler would reorder it stream by stream, and steps would wait for one another.
    #[inline(always)]
    fn step_group(&self, states: &mut [u32; LANES]) {
        let mut own = states.map(T::within);
        for pair in 0..black_box(GROUP / 2) {
            let at = (self.place + 2 * pair) % PIECE;
            for at in [at, at | 1] {
                for (state, piece) in own.iter_mut().zip(&self.pieces) {
                    *state = self.table.step(*state, piece[at]);
                }
            }
        }
        *states = own;
    }

    /// Steps one lane through at most one group, and no further than to where the answer for its line is known; then it continues
    /// with the next line.
    fn step_alone(&mut self, lane: usize, hit: &mut impl FnMut(usize, LineVerdict)) {
        let lane = &mut self.lanes[lane];
        let end = lane.end.min(lane.at + GROUP);
        while lane.at < end && lane.state >= FIRST {
            lane.state = self.table.step(lane.state, self.text[lane.at]);
            lane.at += 1;
        }
        if lane.state < FIRST {
            let line = line_of(self.starts, lane.line, lane.at - 1);
            hit(line, if lane.state == MATCH { LineVerdict::Match } else { LineVerdict::Unknown });
            (lane.line, lane.at, lane.state) = (line + 1, self.starts[line + 1] as usize, self.start);
        }
    }
}

/// A stream: its position in its stretch, a line at or before that, and its state.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    at: usize,
    end: usize,
    line: usize,
    state: u32,
}

impl Lane {
    /// The number of bytes it has left.
    fn left(&self) -> usize {
        self.end - self.at
    }
}

/// The line that contains a byte, searched from a line at or before it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex_automata::nfa::thompson::NFA;

    fn made(nfa: &NFA) -> Option<Dfa> {
        match make(nfa, &|| false) {
            Making::Made(dfa) => Some(dfa),
            Making::TooLarge => None,
            Making::Stopped => unreachable!("nothing stops it"),
        }
    }

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
            let dfa = made(&NFA::compiler().build_from_hir(&hir).unwrap()).unwrap();
            let plain = regex_automata::meta::Builder::new().build_from_hir(&hir).unwrap();
            let wanted: Vec<usize> = (0..lines.len()).filter(|&line| plain.is_match(&lines[line])).collect();
            let mut found = Vec::new();
            dfa.scan(text.as_bytes(), &starts(&text), 0..lines.len(), |line, verdict| {
                assert_eq!(verdict, LineVerdict::Match);
                found.push(line);
            });
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn large_tables_find_the_same_and_too_large_ones_are_none() {
        let nfa = |pattern: &str| NFA::compiler().build(pattern).unwrap();
        let dfa = made(&nfa("[ab][^b]{8}b")).unwrap();
        assert!(matches!(dfa.table, Table::Large(_)));
        let text = "xaxxxxxxxxbx\naxxxxxxxb\n\nbxxxxxxxxb\nab\na\nb\nbaaaaaaaab";
        let text = format!("{text}\n");
        let mut found = Vec::new();
        dfa.scan(text.as_bytes(), &starts(&text), 0..8, |line, _| found.push(line));
        found.sort_unstable();
        // Line feeds are in this class, but a line is read no further than where it matches.
        assert!(found.contains(&0) && found.contains(&3) && found.contains(&7));
        assert!(made(&nfa("[ab][^c]{40}b")).is_none());
    }
}
