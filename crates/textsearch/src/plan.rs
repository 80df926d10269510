//! Chooses the way to search.
//!
//! Each way has a cost that is estimated from what is known before the search: the lengths of the index's lists, how often words are
//! in a sample of the text, and how fast each way was measured to be. What was measured is below, as nanoseconds on one core of an
//! AMD EPYC of 2024; of other machines only the ratios need to be alike.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::data::block::Block;
use crate::database::Database;
use crate::index::evaluate::Resolved;
use crate::index::whole::{Index, Indexed};
use crate::opening::Layout;
use crate::query::{Query, Stopped};
use crate::scan::literals::Literals;

/// A byte that is passed over in search of one word, of several, of very many; by automaton; by lazy automaton.
const WORD_NS: f64 = 0.032;
const WORDS_NS: f64 = 0.07;
const MANY_WORDS_NS: f64 = 0.5;
const AUTOMATON_NS: f64 = 0.28;
const REGEX_NS: f64 = 1.4;
/// A byte that PCRE2 passes over, and a line that it tries by itself.
const PERL_NS: f64 = 6.6;
const PERL_TRY_NS: f64 = 520.0;
/// A line that is tried by itself, and one that is passed over for its type, where that is the only way.
const LINE_NS: f64 = 110.0;
const PASSED_NS: f64 = 2.0;
/// A line that a search for words stops at.
const STOP_NS: f64 = 25.0;
/// A line that is tried by automaton among others that are, and a number read from a list.
const TRY_NS: f64 = 100.0;
const NUMBER_NS: f64 = 1.3;
/// A line that needs not be tried.
const KEEP_NS: f64 = 3.0;
/// What any list costs in a block.
const BLOCK_NS: f64 = 500.0;
/// What trying a line costs, in numbers read.
pub(crate) const TRYING_NUMBERS: u64 = (TRY_NS / NUMBER_NS) as u64;
/// Below this, no other way is thought of.
const AT_ONCE_NS: f64 = 200_000.0;

const SAMPLES: usize = 16;
const SAMPLE_LINES: usize = 256;

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Nothing can match.
    Nothing,
    /// Each row of the types matches.
    Everything,
    /// Each row is tried by itself.
    LineByLine,
    /// The index says which rows may match, and those are tried.
    Index,
    /// Words that must be there are sought in the whole text, and the rows that have them are tried.
    Literals,
    /// A deterministic automaton goes over the whole text, in eight streams a core.
    Automaton,
    /// A lazily made automaton goes over the whole text: for patterns too large for the other, and where words tell it where to
    /// begin. PCRE2 does where no automaton can.
    Regex,
}

impl Way {
    /// All.
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Everything,
        Self::LineByLine,
        Self::Index,
        Self::Literals,
        Self::Automaton,
        Self::Regex,
    ];

    /// Its name in metrics and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Everything => "everything",
            Self::LineByLine => "line-by-line",
            Self::Index => "index",
            Self::Literals => "literals",
            Self::Automaton => "automaton",
            Self::Regex => "regex",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a search is done, and why so.
#[derive(Debug)]
pub struct Plan {
    way: Way,
    /// What is not indexed is searched so.
    rest: Way,
    /// Which of the query's sets of words is sought.
    words: usize,
    /// What the query asks of each shard of the index; `None` where no row has it.
    asked: Vec<Option<Resolved>>,
    /// How many blocks are indexed.
    indexed: usize,
    /// How many rows the index leaves to be tried, at most.
    candidates: Option<u64>,
    /// What was thought of, with its cost.
    considered: Vec<(Way, f64)>,
}

impl Plan {
    /// The cheapest, unless `stop` ends the making of an automaton.
    pub(crate) fn choose(
        database: &Database,
        query: &Query,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Stopped> {
        if let Some(only) = Self::only(database, query) {
            return Ok(only);
        }
        let size = Size::of(database, query);
        let mut plan = Self::resolved(database, query);
        let by_index = plan.index_cost(database, query, &size);
        if let Some(cost) = by_index {
            if plan.asked.iter().all(Option::is_none) && plan.indexed == database.blocks.len() {
                return Ok(Self { way: Way::Nothing, ..plan });
            }
            plan.considered.push((Way::Index, cost));
            // No scan is faster than this, and to think of one takes its time, too.
            if cost < (size.bytes * WORD_NS).max(AT_ONCE_NS) && plan.indexed == database.blocks.len() {
                return Ok(Self { way: Way::Index, ..plan });
            }
        }
        plan.consider_words(database, query, &size);
        plan.consider_automata(database, query, &size, stop)?;
        let scans: Vec<(Way, f64)> =
            plan.considered.iter().copied().filter(|one| one.0 != Way::Index).collect();
        Ok(Self { way: cheapest(&plan.considered), rest: cheapest(&scans), ..plan })
    }

    /// How long the cheapest should take on one core, on the machine on which costs were measured. It costs little itself: no
    /// automaton is made and no text is looked at.
    pub(crate) fn expected(database: &Database, query: &Query) -> Duration {
        let cost_ns = if let Some(only) = Self::only(database, query) {
            only.cost_ns()
        } else {
            let size = Size::of(database, query);
            let scan_ns = size.bytes * if query.literals().is_empty() { AUTOMATON_NS } else { WORD_NS };
            let by_index = Self::resolved(database, query).index_cost(database, query, &size);
            by_index.unwrap_or(f64::INFINITY).min(scan_ns)
        };
        Duration::from_nanos(cost_ns as u64)
    }

    /// The way that there is no other to.
    fn only(database: &Database, query: &Query) -> Option<Self> {
        let size = || Size::of(database, query);
        if database.layout != Layout::Indexed {
            let passed = if database.layout == Layout::Flat { 1.0 / size().share - 1.0 } else { 0.0 };
            let cost_ns = size().rows * (LINE_NS + passed * PASSED_NS);
            return Some(Self { considered: vec![(Way::LineByLine, cost_ns)], ..Self::of(Way::LineByLine) });
        }
        if query.asked().need.is_none() {
            return Some(Self::of(Way::Nothing));
        }
        is_everywhere(query).then(|| Self::of(Way::Everything))
    }

    /// This way, if it can be done.
    pub(crate) fn by(database: &Database, query: &Query, way: Way) -> Option<Self> {
        let can = match way {
            Way::Nothing => query.asked().need.is_none(),
            Way::Everything => is_everywhere(query),
            Way::LineByLine => return Some(Self::of(way)),
            Way::Index => query.asked().need.is_some() && !database.index.shards.is_empty(),
            Way::Literals => !query.literals().is_empty(),
            Way::Automaton => query.dfa(&|| false).is_ok_and(|dfa| dfa.is_some()),
            Way::Regex => true,
        };
        if !can || database.layout != Layout::Indexed {
            return None;
        }
        Some(match way {
            Way::Index => Self { way, ..Self::resolved(database, query) },
            way => Self::of(way),
        })
    }

    fn of(way: Way) -> Self {
        Self {
            way,
            rest: Way::Regex,
            words: 0,
            asked: Vec::new(),
            indexed: 0,
            candidates: None,
            considered: Vec::new(),
        }
    }

    fn resolved(database: &Database, query: &Query) -> Self {
        let mut plan = Self::of(Way::Index);
        let Some(need) = &query.asked().need else { return plan };
        for indexed in &database.index.shards {
            let rows = database.blocks[indexed.blocks.clone()].iter().map(|block| block.lines() as u64).sum();
            plan.asked.push(Resolved::new(need, &indexed.shard, rows, TRYING_NUMBERS));
            plan.indexed = indexed.blocks.end;
        }
        plan
    }

    /// What the index costs; `None` if it does not help.
    fn index_cost(&mut self, database: &Database, query: &Query, size: &Size) -> Option<f64> {
        if self.asked.is_empty() || self.asked.iter().flatten().any(Resolved::is_idle) {
            return None;
        }
        let most: u64 = self.asked.iter().flatten().map(|asked| asked.most_lines).sum();
        let numbers: f64 = self.asked.iter().flatten().map(|asked| asked.numbers).sum();
        let lines: f64 = self.asked.iter().flatten().map(|asked| asked.likely_lines).sum();
        self.candidates = Some((most as f64 * size.share) as u64);
        let blocks = database.blocks.len() as f64 * BLOCK_NS;
        let each_ns = match () {
            () if query.perl().is_some() => PERL_TRY_NS,
            () if query.asked().exact => KEEP_NS,
            () => TRY_NS,
        };
        Some(blocks + (numbers * NUMBER_NS + lines * each_ns) * size.share)
    }

    /// Thinks of looking for words in all of the text, to try the lines that have them; or, where matches begin with them, to have a
    /// lazy automaton go on from there.
    fn consider_words(&mut self, database: &Database, query: &Query, size: &Size) {
        let mut best: Option<(usize, f64)> = None;
        let mut lazy: Option<f64> = None;
        let line_bytes = size.bytes / size.rows.max(1.0);
        let most_bytes =
            query.hir().properties().maximum_len().map_or(line_bytes, |most| line_bytes.min(most as f64));
        for (index, literals) in query.literals().iter().enumerate() {
            let byte_ns = match () {
                () if literals.is_one() => WORD_NS,
                () if literals.is_packed() => WORDS_NS,
                () => MANY_WORDS_NS,
            };
            let stops = size.rows
                * sampled_share(database, |block, lines, hit| {
                    literals.scan(block.text(), block.starts(), lines, |_| hit())
                });
            let try_ns = match () {
                () if query.perl().is_some() => PERL_TRY_NS,
                () if literals.exact => 0.0,
                () => TRY_NS,
            };
            let cost = size.bytes * byte_ns + stops * (STOP_NS + try_ns);
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((index, cost));
            }
            if literals.leads
                && !literals.exact
                && byte_ns <= WORDS_NS
                && query.perl().is_none()
                && query.contains().is_small()
            {
                let cost = size.bytes * byte_ns + stops * (STOP_NS + most_bytes * REGEX_NS);
                lazy = Some(lazy.map_or(cost, |least| least.min(cost)));
            }
        }
        if let Some((index, cost)) = best {
            self.words = index;
            self.considered.push((Way::Literals, cost));
        }
        self.considered.extend(lazy.map(|cost| (Way::Regex, cost)));
    }

    /// Thinks of automata, unless something else is known to be cheaper.
    fn consider_automata(
        &mut self,
        database: &Database,
        query: &Query,
        size: &Size,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let automaton_ns = size.bytes * AUTOMATON_NS;
        if query.perl().is_some() {
            self.considered.push((Way::Regex, size.bytes * PERL_NS));
        }
        let least_ns = self.considered.iter().map(|one| one.1).min_by(f64::total_cmp);
        if least_ns.is_some_and(|least| least <= automaton_ns) {
            return Ok(());
        }
        // To make an automaton takes longer than to go over so little text without.
        if size.bytes * REGEX_NS <= AT_ONCE_NS {
            if query.perl().is_none() {
                self.considered.push((Way::Regex, size.bytes * REGEX_NS));
            }
            return Ok(());
        }
        match (query.dfa(stop)?, query.perl()) {
            (Some(_), None) => self.considered.push((Way::Automaton, automaton_ns)),
            (Some(dfa), Some(_)) => {
                let share = sampled_share(database, |block, lines, hit| {
                    dfa.scan(block.text(), block.starts(), lines, |_, _| hit());
                });
                self.considered.push((Way::Automaton, automaton_ns + share * size.rows * PERL_TRY_NS));
            }
            (None, None) => self.considered.push((Way::Regex, size.bytes * REGEX_NS)),
            (None, Some(_)) => {}
        }
        Ok(())
    }

    /// How it is done, but for what is not indexed.
    pub fn way(&self) -> Way {
        self.way
    }

    /// What it should cost on one core, in ns.
    fn cost_ns(&self) -> f64 {
        self.considered.iter().find(|one| one.0 == self.way).map_or(0.0, |one| one.1)
    }

    /// How many rows the index leaves to be tried, at most, if it was asked.
    pub fn candidates(&self) -> Option<u64> {
        self.candidates
    }

    /// How a block is searched.
    pub(crate) fn way_of(&self, block: usize) -> Way {
        if self.way == Way::Index && block >= self.indexed { self.rest } else { self.way }
    }

    /// The part of the index that covers a block, and what is asked of it.
    pub(crate) fn index_of<'a>(
        &'a self,
        index: &'a Index,
        block: usize,
    ) -> Option<(&'a Indexed, &'a Resolved)> {
        let shard = index.shard_of(block)?;
        Some((&index.shards[shard], self.asked.get(shard)?.as_ref()?))
    }

    /// The words that are sought.
    pub(crate) fn literals<'a>(&self, query: &'a Query) -> Option<&'a Literals> {
        query.literals().get(self.words)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.way)?;
        if let Some(candidates) = self.candidates {
            write!(f, ", at most {candidates} rows to try")?;
        }
        for (index, (way, cost_ns)) in self.considered.iter().enumerate() {
            let separator = if index == 0 { ": " } else { ", " };
            write!(f, "{separator}{way} about {:.2} ms", cost_ns / 1e6)?;
        }
        Ok(())
    }
}

fn cheapest(ways: &[(Way, f64)]) -> Way {
    ways.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(Way::Regex, |one| one.0)
}

/// How much there is to search.
struct Size {
    rows: f64,
    bytes: f64,
    /// Of all rows.
    share: f64,
}

impl Size {
    fn of(database: &Database, query: &Query) -> Self {
        let contents = database.contents();
        let all = contents.rows().max(1) as f64;
        let of = |kind: &i32| contents.rows_by_type.get(kind).copied().unwrap_or(0);
        let rows = match query.kinds() {
            [] => all,
            kinds => kinds.iter().map(of).sum::<u64>() as f64,
        };
        Self { rows, bytes: contents.sentence_bytes as f64 * rows / all, share: rows / all }
    }
}

/// Whether any sentence matches, or at least contains what it must.
fn is_everywhere(query: &Query) -> bool {
    let properties = query.hir().properties();
    properties.minimum_len() == Some(0) && properties.look_set().is_empty()
}

/// The share of lines that a scan hits, in a sample.
fn sampled_share(database: &Database, scan: impl Fn(&Block, Range<usize>, &mut dyn FnMut())) -> f64 {
    let blocks = &database.blocks;
    let (mut seen, mut hits) = (0, 0);
    for sample in 0..SAMPLES.min(blocks.len()) {
        let block: &Block = &blocks[sample * blocks.len() / SAMPLES.min(blocks.len())];
        let first = block.lines() * sample / SAMPLES;
        let lines = first..(first + SAMPLE_LINES).min(block.lines());
        seen += lines.len();
        scan(block, lines, &mut || hits += 1);
    }
    f64::from(hits) / (seen.max(1) as f64)
}
