//! Executes a plan on one block.

use std::ops::Range;

use crate::automaton::Automaton;
use crate::data::block::Block;
use crate::database::Database;
use crate::error::SearchError;
use crate::index::evaluate::Bits;
use crate::lines::{BlockAnswer, LineSet};
use crate::pattern::Perl;
use crate::plan::{Plan, SearchMethod, TRYING_NUMBERS};
use crate::query::Checks;
use crate::query::Query;
use crate::scan::dfa::{LineVerdict, line_of};

/// How many sentences are tried one by one between two checks of whether to stop.
const BETWEEN_LOOKS: usize = 64;

/// Executes a plan block by block, with buffers that are reused.
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

    /// The answer of a block; `None` if it was stopped.
    pub(crate) fn part(&mut self, number: usize) -> Result<Option<BlockAnswer>, SearchError> {
        let block = &self.database.blocks[number];
        let stretches = block.lines_of(self.query.kinds());
        self.found.clear(block.lines());
        match self.plan.method_of(number) {
            SearchMethod::Nothing => return Ok(Some(BlockAnswer::Nothing)),
            SearchMethod::Everything if self.query.checks() == Checks::None => {
                return Ok(Some(BlockAnswer::All));
            }
            SearchMethod::Everything => stretches.into_iter().for_each(|lines| self.found.insert_all(lines)),
            SearchMethod::LineByLine => return self.line_by_line(block, &stretches),
            SearchMethod::Index if !self.by_index(number, &stretches)? => return Ok(None),
            SearchMethod::Literals if !self.by_literals(block, &stretches)? => return Ok(None),
            SearchMethod::Automaton if !self.by_automaton(block, &stretches)? => return Ok(None),
            SearchMethod::Index | SearchMethod::Literals | SearchMethod::Automaton => {}
            SearchMethod::Regex => match self.query.perl() {
                Some(perl) => return self.by_perl(perl, block, &stretches),
                None if !self.by_regex(block, &stretches)? => return Ok(None),
                None => {}
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
        Ok(Some(BlockAnswer::new(&self.found, block)))
    }

    /// Tries each line that was found separately; `false` if it was stopped.
    fn check(&mut self, block: &Block) -> Result<bool, SearchError> {
        std::mem::swap(&mut self.found, &mut self.candidates);
        self.found.clear(block.lines());
        for (count, line) in self.candidates.iter().enumerate() {
            if count.is_multiple_of(BETWEEN_LOOKS) && (self.stop)() {
                return Ok(false);
            }
            match self.query.is_match_unless(block.sentence(line), self.stop)? {
                Some(true) => self.found.insert(line),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Tries lines one by one for what they must contain; `false` if it was stopped.
    fn try_lines(
        &mut self,
        block: &Block,
        lines: impl IntoIterator<Item = usize>,
    ) -> Result<bool, SearchError> {
        for (count, line) in lines.into_iter().enumerate() {
            if count.is_multiple_of(BETWEEN_LOOKS) && (self.stop)() {
                return Ok(false);
            }
            match self.query.contains().is_match(block.sentence(line), self.stop)? {
                Some(true) => self.found.insert(line),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn line_by_line(
        &mut self,
        block: &Block,
        stretches: &[Range<usize>],
    ) -> Result<Option<BlockAnswer>, SearchError> {
        let kinds = self.query.kinds();
        for line in stretches.iter().cloned().flatten() {
            if line.is_multiple_of(BETWEEN_LOOKS) && (self.stop)() {
                return Ok(None);
            }
            let wanted = kinds.is_empty() || kinds.binary_search(&block.kind(line)).is_ok();
            if !wanted {
                continue;
            }
            match self.query.is_match_unless(block.sentence(line), self.stop)? {
                Some(true) => self.found.insert(line),
                Some(false) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(BlockAnswer::new(&self.found, block)))
    }

    /// Runs PCRE2 over all of the text, some sentences at a time.
    fn by_perl(
        &mut self,
        perl: &Perl,
        block: &Block,
        stretches: &[Range<usize>],
    ) -> Result<Option<BlockAnswer>, SearchError> {
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
        Ok(Some(BlockAnswer::new(&self.found, block)))
    }

    /// Finds the lines among those that the index gives; `false` if it was stopped, as for all methods below.
    fn by_index(&mut self, number: usize, stretches: &[Range<usize>]) -> Result<bool, SearchError> {
        let Some((shard, resolved)) = self.plan.index_of(&self.database.index, number) else {
            return Ok(true);
        };
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
        self.try_candidates(block, self.query.need().exact && resolved.is_whole)
    }

    fn by_literals(&mut self, block: &Block, stretches: &[Range<usize>]) -> Result<bool, SearchError> {
        let Some(literals) = self.plan.literals(self.query) else { return Ok(true) };
        self.candidates.clear(block.lines());
        for lines in stretches {
            literals.scan(block.text(), block.starts(), lines.clone(), |line| self.candidates.insert(line));
        }
        self.try_candidates(block, literals.exact)
    }

    /// Finds those among the candidates that contain what they must; all of them if that is known.
    fn try_candidates(&mut self, block: &Block, exact: bool) -> Result<bool, SearchError> {
        // Lines that need backtracking are checked again anyway, and mostly few are left.
        if exact || self.query.checks() == Checks::All {
            std::mem::swap(&mut self.found, &mut self.candidates);
            return Ok(true);
        }
        fetch(block, &self.candidates);
        let found = &mut self.found;
        if let Some(literals) =
            self.query.literals().iter().find(|literals| literals.exact && literals.is_one())
        {
            let with = self.candidates.iter().filter(|&line| literals.is_in(block.sentence(line)));
            with.for_each(|line| found.insert(line));
            return Ok(true);
        }
        let Ok(dfa) = self.query.dfa(self.stop) else { return Ok(false) };
        let mut unknown = Vec::new();
        match dfa {
            Some(dfa) => {
                let hit = sorted(found, &mut unknown);
                dfa.scan_stretches(block.text(), block.starts(), self.candidates.stretches(), hit);
            }
            None => unknown.extend(self.candidates.iter()),
        }
        self.try_lines(block, unknown)
    }

    fn by_automaton(&mut self, block: &Block, stretches: &[Range<usize>]) -> Result<bool, SearchError> {
        let Ok(dfa) = self.query.dfa(self.stop) else { return Ok(false) };
        let Some(dfa) = dfa else { return self.by_regex(block, stretches) };
        let mut unknown = Vec::new();
        for lines in stretches {
            let hit = sorted(&mut self.found, &mut unknown);
            dfa.scan(block.text(), block.starts(), lines.clone(), hit);
        }
        self.try_lines(block, unknown)
    }

    fn by_regex(&mut self, block: &Block, stretches: &[Range<usize>]) -> Result<bool, SearchError> {
        let automaton = self.query.contains();
        if !automaton.is_small() {
            return self.try_lines(block, stretches.iter().cloned().flatten());
        }
        for lines in stretches {
            let mut line = lines.start;
            while line < lines.end {
                if (self.stop)() {
                    return Ok(false);
                }
                let some = line..lines_within(block, line..lines.end, automaton.most_text());
                line = some.end;
                if some.is_empty() {
                    // This one is too long to be searched without checks of whether to stop.
                    line += 1;
                    if !self.try_lines(block, some.start..line)? {
                        return Ok(false);
                    }
                } else {
                    self.search_lines(automaton, block, some);
                }
            }
        }
        Ok(true)
    }

    /// Searches lines in one call.
    fn search_lines(&mut self, automaton: &Automaton, block: &Block, lines: Range<usize>) {
        let (text, starts) = (block.text(), block.starts());
        // Without the last line feed, behind which no line is.
        let end = starts[lines.end] as usize - 1;
        automaton.regex().search(|regex, cache| {
            let mut line = lines.start;
            while line < lines.end {
                let input = regex_automata::Input::new(text).range(starts[line] as usize..end).earliest(true);
                let Some(found) = regex.search_half_with(cache, &input) else { break };
                let at = found.offset().min(end);
                line = line_of(starts, line, at);
                self.found.insert(line);
                line += 1;
            }
        });
    }
}

/// The last of these lines up to which there are at most this number of bytes.
fn lines_within(block: &Block, lines: Range<usize>, most_bytes: usize) -> usize {
    let starts = &block.starts()[lines.start..=lines.end];
    let within = starts.partition_point(|&start| (start - starts[0]) as usize <= most_bytes);
    lines.start + within - 1
}

/// Separates the lines that match from those that the automaton cannot decide.
fn sorted<'a>(found: &'a mut LineSet, unknown: &'a mut Vec<usize>) -> impl FnMut(usize, LineVerdict) + 'a {
    move |line, verdict| match verdict {
        LineVerdict::Match => found.insert(line),
        LineVerdict::Unknown => unknown.push(line),
    }
}

/// Prefetches lines that are far from each other, all at once: waiting for each before requesting the next takes longer than
/// trying it.
fn fetch(block: &Block, lines: &LineSet) {
    const FAR: usize = 4;
    if lines.len() * FAR > block.lines() {
        return;
    }
    let (text, starts) = (block.text(), block.starts());
    let ends = lines.iter().map(|line| text[starts[line] as usize] ^ text[starts[line + 1] as usize - 1]);
    std::hint::black_box(ends.fold(0, |all, byte| all ^ byte));
}
