//! Chooses the method of a search.
//!
//! Each method has a cost that is estimated before the search: from the lengths of the index's lists, from how often words occur in
//! a sample of the text, and from the measured speed of each method. The measured constants are below, as nanoseconds on one core
//! of an AMD EPYC of 2024; on other machines only their ratios need to be similar.

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

/// The cost of a byte that is skipped in a search for one word, several, very many; by automaton; by lazy automaton.
const WORD_NS: f64 = 0.032;
const WORDS_NS: f64 = 0.07;
const MANY_WORDS_NS: f64 = 0.5;
const AUTOMATON_NS: f64 = 0.28;
const REGEX_NS: f64 = 1.4;
/// The cost of a byte that PCRE2 skips, and of a line that it tries separately.
const PERL_NS: f64 = 6.6;
const PERL_TRY_NS: f64 = 520.0;
/// The cost of a line that is tried separately, and of one that is skipped for its type, where that is the only method.
const LINE_NS: f64 = 110.0;
const PASSED_NS: f64 = 2.0;
/// The cost of a line at which a search for words stops.
const STOP_NS: f64 = 25.0;
/// The cost of a line that an automaton tries among others, and of a number read from a list.
const TRY_NS: f64 = 100.0;
const NUMBER_NS: f64 = 1.3;
/// The cost of a line that need not be tried.
const KEEP_NS: f64 = 3.0;
/// The cost of any list in a block.
const BLOCK_NS: f64 = 500.0;
/// The cost of trying a line, in numbers read.
pub(crate) const TRYING_NUMBERS: u64 = (TRY_NS / NUMBER_NS) as u64;
/// A plan that costs less is chosen without considering others.
const AT_ONCE_NS: f64 = 200_000.0;

/// The most trigrams of the index to test for an expectation: this takes about a millisecond.
const EXPECTATION_TESTS: usize = 1 << 19;

const SAMPLES: usize = 16;
const SAMPLE_LINES: usize = 256;

/// A method of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchMethod {
    /// Nothing matches.
    Nothing,
    /// Every row of the types matches.
    Everything,
    /// Each row is tried separately.
    LineByLine,
    /// The index gives the rows that may match, and those are tried.
    Index,
    /// The whole text is searched for words that must occur, and the rows that have them are tried.
    Literals,
    /// A deterministic automaton runs over the whole text, in eight streams per core.
    Automaton,
    /// A lazy automaton runs over the whole text: for patterns too large for the deterministic one, and where words indicate where
    /// to begin. PCRE2 runs where no automaton is possible.
    Regex,
}

impl SearchMethod {
    /// Every method.
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Everything,
        Self::LineByLine,
        Self::Index,
        Self::Literals,
        Self::Automaton,
        Self::Regex,
    ];

    /// The search method's name in metrics and explanations.
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

impl fmt::Display for SearchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a search runs, and why.
#[derive(Debug)]
pub struct Plan {
    method: SearchMethod,
    /// The method for text that is not indexed.
    rest: SearchMethod,
    /// The index of the query's set of words to search for.
    words: usize,
    /// The windows that the query needs in each shard of the index; `None` where no row has them.
    resolved: Vec<Option<Resolved>>,
    /// The number of indexed blocks.
    indexed: usize,
    /// The most rows that the index leaves to be tried.
    candidates: Option<u64>,
    /// The methods that were considered, with their costs.
    considered: Vec<(SearchMethod, f64)>,
}

impl Plan {
    /// The cheapest plan, unless `stop` ends the construction of an automaton.
    pub(crate) fn choose(
        database: &Database,
        query: &Query,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Stopped> {
        if let Some(only) = Self::only(database, query) {
            return Ok(only);
        }
        let size = Size::of(database, query);
        let mut plan = Self::resolved(database, query, usize::MAX);
        let by_index = plan.index_cost(database, query, &size);
        if let Some(cost) = by_index {
            if plan.resolved.iter().all(Option::is_none) && plan.indexed == database.blocks.len() {
                return Ok(Self { method: SearchMethod::Nothing, ..plan });
            }
            plan.considered.push((SearchMethod::Index, cost));
            // No scan is faster than this, and considering one takes time, too.
            if cost < (size.bytes * WORD_NS).max(AT_ONCE_NS) && plan.indexed == database.blocks.len() {
                return Ok(Self { method: SearchMethod::Index, ..plan });
            }
        }
        plan.consider_words(database, query, &size);
        plan.consider_automata(database, query, &size, stop)?;
        let scans: Vec<(SearchMethod, f64)> =
            plan.considered.iter().copied().filter(|one| one.0 != SearchMethod::Index).collect();
        Ok(Self { method: cheapest(&plan.considered), rest: cheapest(&scans), ..plan })
    }

    /// The expected time of the cheapest plan on one core, on the machine on which costs were measured. It is cheap to compute: it
    /// builds no automaton, reads no text, and uses the index only up to a limit.
    pub(crate) fn expected(database: &Database, query: &Query) -> Duration {
        let cost_ns = if let Some(only) = Self::only(database, query) {
            only.cost_ns()
        } else {
            let size = Size::of(database, query);
            let scan_ns = size.bytes * if query.literals().is_empty() { AUTOMATON_NS } else { WORD_NS };
            let mut plan = Self::resolved(database, query, EXPECTATION_TESTS);
            let by_index = plan.index_cost(database, query, &size);
            by_index.unwrap_or(f64::INFINITY).min(scan_ns)
        };
        Duration::from_nanos(cost_ns as u64)
    }

    /// The only possible method, if there is just one.
    fn only(database: &Database, query: &Query) -> Option<Self> {
        let size = || Size::of(database, query);
        if database.layout != Layout::Indexed {
            let passed = if database.layout == Layout::Flat { 1.0 / size().share - 1.0 } else { 0.0 };
            let cost_ns = size().rows * (LINE_NS + passed * PASSED_NS);
            return Some(Self {
                considered: vec![(SearchMethod::LineByLine, cost_ns)],
                ..Self::of(SearchMethod::LineByLine)
            });
        }
        if query.need().need.is_none() {
            return Some(Self::of(SearchMethod::Nothing));
        }
        is_everywhere(query).then(|| Self::of(SearchMethod::Everything))
    }

    /// The plan of this method, if it is possible.
    pub(crate) fn by(database: &Database, query: &Query, method: SearchMethod) -> Option<Self> {
        let can = match method {
            SearchMethod::Nothing => query.need().need.is_none(),
            SearchMethod::Everything => is_everywhere(query),
            SearchMethod::LineByLine => return Some(Self::of(method)),
            SearchMethod::Index => query.need().need.is_some() && !database.index.shards.is_empty(),
            SearchMethod::Literals => !query.literals().is_empty(),
            SearchMethod::Automaton => query.dfa(&|| false).is_ok_and(|dfa| dfa.is_some()),
            SearchMethod::Regex => true,
        };
        if !can || database.layout != Layout::Indexed {
            return None;
        }
        Some(match method {
            SearchMethod::Index => Self { method, ..Self::resolved(database, query, usize::MAX) },
            method => Self::of(method),
        })
    }

    fn of(method: SearchMethod) -> Self {
        Self {
            method,
            rest: SearchMethod::Regex,
            words: 0,
            resolved: Vec::new(),
            indexed: 0,
            candidates: None,
            considered: Vec::new(),
        }
    }

    /// The windows that the query needs, as far as finding them takes at most this many tests of trigrams.
    fn resolved(database: &Database, query: &Query, most_tests: usize) -> Self {
        let mut plan = Self::of(SearchMethod::Index);
        let Some(need) = &query.need().need else { return plan };
        let tests_each = most_tests / database.index.shards.len().max(1);
        for indexed in &database.index.shards {
            let mut tests_left = tests_each;
            let rows = database.blocks[indexed.blocks.clone()].iter().map(|block| block.lines() as u64).sum();
            plan.resolved.push(Resolved::new(need, &indexed.shard, rows, TRYING_NUMBERS, &mut tests_left));
            plan.indexed = indexed.blocks.end;
        }
        plan
    }

    /// The cost of the index; `None` if it does not help.
    fn index_cost(&mut self, database: &Database, query: &Query, size: &Size) -> Option<f64> {
        if self.resolved.is_empty() || self.resolved.iter().flatten().any(Resolved::is_idle) {
            return None;
        }
        let most: u64 = self.resolved.iter().flatten().map(|resolved| resolved.most_lines).sum();
        let numbers: f64 = self.resolved.iter().flatten().map(|resolved| resolved.numbers).sum();
        let lines: f64 = self.resolved.iter().flatten().map(|resolved| resolved.likely_lines).sum();
        self.candidates = Some((most as f64 * size.share) as u64);
        let blocks = database.blocks.len() as f64 * BLOCK_NS;
        let each_ns = match () {
            () if query.perl().is_some() => PERL_TRY_NS,
            () if query.need().exact => KEEP_NS,
            () => TRY_NS,
        };
        Some(blocks + (numbers * NUMBER_NS + lines * each_ns) * size.share)
    }

    /// Considers searching all of the text for words and trying the lines that have them; or, where matches begin with them,
    /// continuing with a lazy automaton from there.
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
            self.considered.push((SearchMethod::Literals, cost));
        }
        self.considered.extend(lazy.map(|cost| (SearchMethod::Regex, cost)));
    }

    /// Considers automata, unless another method is known to be cheaper.
    fn consider_automata(
        &mut self,
        database: &Database,
        query: &Query,
        size: &Size,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let automaton_ns = size.bytes * AUTOMATON_NS;
        if query.perl().is_some() {
            self.considered.push((SearchMethod::Regex, size.bytes * PERL_NS));
        }
        let least_ns = self.considered.iter().map(|one| one.1).min_by(f64::total_cmp);
        if least_ns.is_some_and(|least| least <= automaton_ns) {
            return Ok(());
        }
        // For so little text, building an automaton takes longer than searching without.
        if size.bytes * REGEX_NS <= AT_ONCE_NS {
            if query.perl().is_none() {
                self.considered.push((SearchMethod::Regex, size.bytes * REGEX_NS));
            }
            return Ok(());
        }
        match (query.dfa(stop)?, query.perl()) {
            (Some(_), None) => self.considered.push((SearchMethod::Automaton, automaton_ns)),
            (Some(dfa), Some(_)) => {
                let share = sampled_share(database, |block, lines, hit| {
                    dfa.scan(block.text(), block.starts(), lines, |_, _| hit());
                });
                self.considered
                    .push((SearchMethod::Automaton, automaton_ns + share * size.rows * PERL_TRY_NS));
            }
            (None, None) => self.considered.push((SearchMethod::Regex, size.bytes * REGEX_NS)),
            (None, Some(_)) => {}
        }
        Ok(())
    }

    /// The method, except for indexed text.
    pub fn method(&self) -> SearchMethod {
        self.method
    }

    /// The expected cost on one core, in ns.
    fn cost_ns(&self) -> f64 {
        self.considered.iter().find(|one| one.0 == self.method).map_or(0.0, |one| one.1)
    }

    /// The most rows that the index leaves to be tried, if the plan uses it.
    pub fn candidates(&self) -> Option<u64> {
        self.candidates
    }

    /// The method for a block.
    pub(crate) fn method_of(&self, block: usize) -> SearchMethod {
        if self.method == SearchMethod::Index && block >= self.indexed { self.rest } else { self.method }
    }

    /// The part of the index that covers a block, and the windows that are needed there.
    pub(crate) fn index_of<'a>(
        &'a self,
        index: &'a Index,
        block: usize,
    ) -> Option<(&'a Indexed, &'a Resolved)> {
        let shard = index.shard_of(block)?;
        Some((&index.shards[shard], self.resolved.get(shard)?.as_ref()?))
    }

    /// The words to search for.
    pub(crate) fn literals<'a>(&self, query: &'a Query) -> Option<&'a Literals> {
        query.literals().get(self.words)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if let Some(candidates) = self.candidates {
            write!(f, ", at most {candidates} rows to try")?;
        }
        for (index, (method, cost_ns)) in self.considered.iter().enumerate() {
            let separator = if index == 0 { ": " } else { ", " };
            write!(f, "{separator}{method} about {:.2} ms", cost_ns / 1e6)?;
        }
        Ok(())
    }
}

fn cheapest(methods: &[(SearchMethod, f64)]) -> SearchMethod {
    methods.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(SearchMethod::Regex, |one| one.0)
}

/// The amount of text to search.
struct Size {
    rows: f64,
    bytes: f64,
    /// The share of all rows.
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
