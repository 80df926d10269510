//! What a plan does with one block.

use std::ops::Range;

use crate::data::block::Block;
use crate::database::Database;
use crate::error::SearchError;
use crate::index::evaluate::Bits;
use crate::lines::{Found, LineSet};
use crate::pattern::Perl;
use crate::plan::{Plan, TRYING_NUMBERS, Way};
use crate::query::Checks;
use crate::query::Query;
use crate::scan::dfa::{Verdict, line_of};

/// How many sentences are tried one by one between two checks of whether to stop.
const BETWEEN_LOOKS: usize = 64;

/// Does a plan block by block, with room that is used again.
pub(crate) struct Work<'a> {
    database: &'a Database,
    query: &'a Query,
    plan: &'a Plan,
    /// Whether to stop in the middle of a block.
    stop: &'a dyn Fn() -> bool,
    /// Lines that may match.
    candidates: LineSet,
    /// Lines that contain what they must.
    found: LineSet,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        database: &'a Database,
        query: &'a Query,
        plan: &'a Plan,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let (candidates, found) = Default::default();
        Self { database, query, plan, stop, candidates, found }
    }

    /// The answer of a block; `None` if it was stopped meanwhile.
    pub(crate) fn part(&mut self, number: usize) -> Result<Option<Found>, SearchError> {
        let block = &self.database.blocks[number];
        let stretches = block.lines_of(self.query.kinds());
        self.found.clear(block.lines());
        match self.plan.way_of(number) {
            Way::Nothing => return Ok(Some(Found::Nothing)),
            Way::Everything if self.query.checks() == Checks::None => return Ok(Some(Found::All)),
            Way::Everything => stretches.into_iter().for_each(|lines| self.found.insert_all(lines)),
            Way::LineByLine => return self.line_by_line(block, &stretches),
            Way::Index => self.by_index(number, &stretches),
            Way::Literals => self.by_literals(block, &stretches),
            Way::Automaton => self.by_automaton(block, &stretches),
            Way::Regex => match self.query.perl() {
                Some(perl) => return self.by_perl(perl, block, &stretches),
                None => self.by_regex(block, &stretches),
            },
        }
        let doubtful = match self.query.checks() {
            Checks::None => false,
            Checks::WithTerminators => block.has_terminators,
            Checks::All => true,
        };
        if doubtful && !self.check(block)? {
            return Ok(None);
        }
        Ok(Some(Found::new(&self.found, block)))
    }

    /// Tries each line that was found by itself; `false` if it was stopped.
    fn check(&mut self, block: &Block) -> Result<bool, SearchError> {
        std::mem::swap(&mut self.found, &mut self.candidates);
        self.found.clear(block.lines());
        for (count, line) in self.candidates.iter().enumerate() {
            if count.is_multiple_of(BETWEEN_LOOKS) && (self.stop)() {
                return Ok(false);
            }
            if self.query.is_match(block.sentence(line))? {
                self.found.insert(line);
            }
        }
        Ok(true)
    }

    fn line_by_line(
        &mut self,
        block: &Block,
        stretches: &[Range<usize>],
    ) -> Result<Option<Found>, SearchError> {
        let kinds = self.query.kinds();
        for line in stretches.iter().cloned().flatten() {
            if line.is_multiple_of(BETWEEN_LOOKS) && (self.stop)() {
                return Ok(None);
            }
            let wanted = kinds.is_empty() || kinds.binary_search(&block.kind(line)).is_ok();
            if wanted && self.query.is_match(block.sentence(line))? {
                self.found.insert(line);
            }
        }
        Ok(Some(Found::new(&self.found, block)))
    }

    /// Has PCRE2 go over all of the text, some sentences at a time.
    fn by_perl(
        &mut self,
        perl: &Perl,
        block: &Block,
        stretches: &[Range<usize>],
    ) -> Result<Option<Found>, SearchError> {
        let starts = block.starts();
        for lines in stretches {
            for first in lines.clone().step_by(BETWEEN_LOOKS) {
                if (self.stop)() {
                    return Ok(None);
                }
                let some = first..(first + BETWEEN_LOOKS).min(lines.end);
                let from = starts[first] as usize;
                let found = &mut self.found;
                let scanned = perl.scan(&block.text()[from..starts[some.end] as usize - 1], |at| {
                    let line = line_of(starts, first, from + at);
                    found.insert(line);
                    starts[line + 1] as usize - from
                });
                if scanned.is_none() {
                    for line in some {
                        if self.query.is_match(block.sentence(line))? {
                            self.found.insert(line);
                        }
                    }
                }
            }
        }
        Ok(Some(Found::new(&self.found, block)))
    }

    fn by_index(&mut self, number: usize, stretches: &[Range<usize>]) {
        let Some((shard, resolved)) = self.plan.index_of(&self.database.index, number) else { return };
        let block = &self.database.blocks[number];
        self.candidates.clear(block.lines());
        let (first, segments) = &shard.segments[number - shard.blocks.start];
        for (offset, segment) in segments.iter().enumerate() {
            let wanted = |lines: &&Range<usize>| lines.start < segment.end && segment.start < lines.end;
            let mut wanted = stretches.iter().filter(wanted).peekable();
            if wanted.peek().is_none() {
                continue;
            }
            let mut bits = Bits::none(segment.len());
            resolved.mark(&shard.shard, first + offset as u16, TRYING_NUMBERS, &mut bits);
            for lines in wanted {
                self.candidates.insert_bits(bits.words(), segment.start, lines);
            }
        }
        self.try_candidates(block, self.query.asked().exact && resolved.is_whole);
    }

    fn by_literals(&mut self, block: &Block, stretches: &[Range<usize>]) {
        let Some(literals) = self.plan.literals(self.query) else { return };
        self.candidates.clear(block.lines());
        for lines in stretches {
            literals.scan(block.text(), block.starts(), lines.clone(), |line| self.candidates.insert(line));
        }
        self.try_candidates(block, literals.exact);
    }

    /// Finds those among the candidates that contain what they must; all of them if they are known to.
    fn try_candidates(&mut self, block: &Block, exact: bool) {
        // What backtracks is looked at again anyway, and mostly few are left.
        if exact || self.query.checks() == Checks::All {
            std::mem::swap(&mut self.found, &mut self.candidates);
            return;
        }
        fetch(block, &self.candidates);
        let found = &mut self.found;
        if let Some(literals) =
            self.query.literals().iter().find(|literals| literals.exact && literals.is_one())
        {
            let with = self.candidates.iter().filter(|&line| literals.is_in(block.sentence(line)));
            with.for_each(|line| found.insert(line));
        } else if let Some(dfa) = self.query.dfa() {
            let query = self.query;
            dfa.scan_stretches(block.text(), block.starts(), self.candidates.stretches(), |line, verdict| {
                if verdict == Verdict::Match || query.contains().is_match(block.sentence(line)) {
                    found.insert(line);
                }
            });
        } else {
            let regex = self.query.contains();
            let with = self.candidates.iter().filter(|&line| regex.is_match(block.sentence(line)));
            with.for_each(|line| found.insert(line));
        }
    }

    fn by_automaton(&mut self, block: &Block, stretches: &[Range<usize>]) {
        let Some(dfa) = self.query.dfa() else { return self.by_regex(block, stretches) };
        for lines in stretches {
            dfa.scan(block.text(), block.starts(), lines.clone(), |line, verdict| {
                if verdict == Verdict::Match || self.query.contains().is_match(block.sentence(line)) {
                    self.found.insert(line);
                }
            });
        }
    }

    fn by_regex(&mut self, block: &Block, stretches: &[Range<usize>]) {
        let (text, starts) = (block.text(), block.starts());
        let regex = self.query.contains();
        for lines in stretches {
            // Without the last line feed, behind which no line is.
            let end = starts[lines.end] as usize - 1;
            let mut line = lines.start;
            while line < lines.end {
                let input = regex_automata::Input::new(text).range(starts[line] as usize..end).earliest(true);
                let Some(found) = regex.search_half(&input) else { break };
                let at = found.offset().min(end);
                line = line_of(starts, line, at);
                self.found.insert(line);
                line += 1;
            }
        }
    }
}

/// Has the memory bring lines that are far from each other, all at once: one that is waited for before the next is asked for takes
/// longer to come than to be tried.
fn fetch(block: &Block, lines: &LineSet) {
    const FAR: usize = 4;
    if lines.len() * FAR > block.lines() {
        return;
    }
    let (text, starts) = (block.text(), block.starts());
    let ends = lines.iter().map(|line| text[starts[line] as usize] ^ text[starts[line + 1] as usize - 1]);
    std::hint::black_box(ends.fold(0, |all, byte| all ^ byte));
}
