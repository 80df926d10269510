//! The trigrams that a sentence must have for a pattern to match it.
//!
//! The pattern is walked from left to right with the last two bytes in hand, each as the set of bytes that it can be. Together with
//! the next one they make a window: one of the trigrams in the product of the three sets must occur. Where a pattern branches, so
//! does the walk, up to a bound; the rest then has separate windows. A part that is not understood needs no trigram, so an answer
//! is never lost.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The most branches that are followed in parallel.
const MOST_BRANCHES: usize = 16;
/// The most parts that are walked.
const MOST_STEPS: usize = 20_000;
/// The most copies of a repeated part that are walked; more make no new windows, if the part is a byte.
const MOST_COPIES: u32 = 4;

/// The most windows that are needed together: the rarest of these are certainly rare enough.
const MOST_WINDOWS: usize = 64;

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn one(byte: u8) -> Self {
        let mut set = Self([0; 4]);
        set.insert(byte);
        set
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte) / 64] |= 1 << (byte % 64);
    }

    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte) / 64] >> (byte % 64) & 1 == 1
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=255).filter(|&byte| self.contains(byte))
    }
}

/// Three consecutive bytes, each one of a set.
pub(crate) type Window = [ByteSet; 3];

/// The windows that a sentence must have: all of these, and of each list one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) windows: Vec<Window>,
    pub(crate) one_of: Vec<Vec<Self>>,
}

/// The windows that a pattern needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternNeed {
    /// `None`: no sentence can match.
    pub(crate) need: Option<Need>,
    /// Whether every sentence that has them matches.
    pub(crate) exact: bool,
}

pub(crate) fn pattern_need(hir: &Hir) -> PatternNeed {
    let mut walk = Walk { steps: 0 };
    let mut branches = walk.part(hir, vec![Branch::default()]);
    // A single window describes a pattern of three bytes completely, and a padded one a pattern of two.
    let exact = branches.iter().all(|branch| branch.plain && matches!(branch.run, 2 | 3));
    branches.iter_mut().for_each(Branch::end_run);
    PatternNeed { need: joined(branches), exact }
}

/// One of the paths through the pattern.
#[derive(Clone, Debug)]
struct Branch {
    need: Need,
    /// The last bytes, two at most.
    last: Vec<ByteSet>,
    /// The number of consecutive bytes up to here.
    run: usize,
    /// Whether these bytes are the whole pattern.
    plain: bool,
}

impl Default for Branch {
    fn default() -> Self {
        Self { need: Need::default(), last: Vec::new(), run: 0, plain: true }
    }
}

impl Branch {
    fn push(&mut self, set: ByteSet) {
        if self.run > 0 && self.last.is_empty() {
            // Behind the end of the sentence nothing matches.
            self.plain = false;
        }
        if let [first, second] = self.last[..] {
            self.need.add([first, second, set]);
            self.last.remove(0);
        }
        self.last.push(set);
        self.run += 1;
    }

    /// The next byte does not follow immediately, or is not known.
    fn end_run(&mut self) {
        if let ([first, second], 2) = (&self.last[..], self.run) {
            // Behind the end of a line there is nothing, but before its last byte there can be.
            let ends = *second == ByteSet::one(b'\n');
            let padded = if ends { [ByteSet::ALL, *first, *second] } else { [*first, *second, ByteSet::ALL] };
            self.need.add(padded);
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.last.clear();
        self.run = 0;
        self.plain = false;
    }
}

impl Need {
    fn add(&mut self, window: Window) {
        if self.windows.len() < MOST_WINDOWS && !self.windows.contains(&window) {
            self.windows.push(window);
        }
    }

    fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.one_of.is_empty()
    }
}

/// The disjunction of the branches; `None` for an empty list.
fn joined(branches: Vec<Branch>) -> Option<Need> {
    let mut needs: Vec<Need> = branches.into_iter().map(|branch| branch.need).collect();
    needs.dedup();
    match needs.len() {
        0 => None,
        1 => needs.pop(),
        _ if needs.iter().any(Need::is_empty) => Some(Need::default()),
        _ => Some(Need { windows: Vec::new(), one_of: vec![needs] }),
    }
}

struct Walk {
    steps: usize,
}

impl Walk {
    fn part(&mut self, hir: &Hir, mut branches: Vec<Branch>) -> Vec<Branch> {
        self.steps += branches.len();
        if self.steps > MOST_STEPS {
            branches.iter_mut().for_each(Branch::end_run);
            return branches;
        }
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                for branch in &mut branches {
                    literal.0.iter().for_each(|&byte| branch.push(ByteSet::one(byte)));
                }
            }
            HirKind::Class(class) => match bytes(class) {
                Some(set) if set.len() == 0 => branches.clear(),
                Some(set) => branches.iter_mut().for_each(|branch| branch.push(set)),
                None => branches.iter_mut().for_each(Branch::end_run),
            },
            HirKind::Look(look) => branches.iter_mut().for_each(|branch| place(branch, *look)),
            HirKind::Capture(capture) => return self.part(&capture.sub, branches),
            HirKind::Concat(parts) => {
                for part in parts {
                    branches = self.part(part, branches);
                }
            }
            HirKind::Alternation(parts) => return self.fork(parts.iter().map(Some), branches),
            HirKind::Repetition(repeat) => return self.repeated(repeat, branches),
        }
        branches
    }

    /// Follows each of these parts; `None` is the empty part.
    fn fork<'h>(
        &mut self,
        parts: impl Iterator<Item = Option<&'h Hir>> + Clone,
        mut branches: Vec<Branch>,
    ) -> Vec<Branch> {
        let step = |walk: &mut Self, part: Option<&Hir>, from: Vec<Branch>| match part {
            Some(part) => walk.part(part, from),
            None => from,
        };
        if branches.len() * parts.clone().count() <= MOST_BRANCHES {
            let forked: Vec<Branch> = parts.flat_map(|part| step(self, part, branches.clone())).collect();
            return if forked.len() <= MOST_BRANCHES { forked } else { collapsed(forked) };
        }
        let fresh = || vec![Branch { plain: false, ..Branch::default() }];
        let mut apart: Vec<Branch> = parts.flat_map(|part| step(self, part, fresh())).collect();
        apart.iter_mut().for_each(Branch::end_run);
        let Some(need) = joined(apart) else { return Vec::new() };
        for branch in &mut branches {
            branch.end_run();
            need.windows.iter().for_each(|window| branch.need.add(*window));
            branch.need.one_of.extend(need.one_of.iter().cloned());
        }
        branches
    }

    fn repeated(&mut self, repeat: &regex_syntax::hir::Repetition, mut branches: Vec<Branch>) -> Vec<Branch> {
        if (repeat.min, repeat.max) == (0, Some(1)) {
            return self.fork([None, Some(&*repeat.sub)].into_iter(), branches);
        }
        let copies = repeat.min.min(MOST_COPIES);
        for _ in 0..copies {
            branches = self.part(&repeat.sub, branches);
        }
        if repeat.max == Some(copies) {
            return branches;
        }
        // The rest follows any number of copies: the last one, or, without any, the part before.
        let mut before = if repeat.min == 0 { branches.clone() } else { Vec::new() };
        before.iter_mut().for_each(|branch| branch.plain = false);
        branches.iter_mut().for_each(Branch::end_run);
        if repeat.max == Some(0) {
            return before;
        }
        before.extend(self.part(&repeat.sub, branches));
        if before.len() > MOST_BRANCHES { collapsed(before) } else { before }
    }
}

/// Combines all branches into one that needs what any of them does.
fn collapsed(mut branches: Vec<Branch>) -> Vec<Branch> {
    branches.iter_mut().for_each(Branch::end_run);
    joined(branches).map(|need| Branch { need, plain: false, ..Branch::default() }).into_iter().collect()
}

fn place(branch: &mut Branch, look: Look) {
    match look {
        Look::StartLF => {
            let plain = branch.plain && branch.run == 0;
            branch.end_run();
            branch.push(ByteSet::one(b'\n'));
            branch.plain = plain;
        }
        // An empty sentence: its two line feeds are not a trigram.
        Look::EndLF if branch.last.last() == Some(&ByteSet::one(b'\n')) => branch.forget(),
        Look::EndLF => {
            branch.push(ByteSet::one(b'\n'));
            // Only further end marks can follow, which must not count as line feeds again.
            let plain = branch.plain;
            let run = branch.run;
            branch.end_run();
            (branch.plain, branch.run) = (plain, run);
        }
        _ => branch.plain = false,
    }
}

/// The bytes of a class, if each of its characters is one byte.
fn bytes(class: &Class) -> Option<ByteSet> {
    let Class::Unicode(class) = class else { return None };
    let mut set = ByteSet([0; 4]);
    for range in class.iter() {
        if !range.end().is_ascii() {
            return None;
        }
        (range.start() as u8..=range.end() as u8).for_each(|byte| set.insert(byte));
    }
    Some(set)
}
