//! Words of which one must be in a sentence for the pattern to match, and the search for them in a whole text.

use aho_corasick::{AhoCorasick, packed};
use memchr::memmem;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};

use super::dfa::line_of;

/// The most words that vector instructions search for at once.
const MOST_WORDS: usize = 64;

/// A search for one of several words.
#[derive(Debug)]
pub(crate) struct Literals {
    finder: Finder,
    /// Whether every sentence with one of these words matches, so that no further check is needed.
    pub(crate) exact: bool,
    /// Whether matches begin with one of them.
    pub(crate) leads: bool,
}

#[derive(Debug)]
enum Finder {
    One(Box<memmem::Finder<'static>>),
    Packed(packed::Searcher),
    Many(AhoCorasick),
}

impl Literals {
    /// The sets of words that could be searched for instead of a pattern.
    pub(crate) fn of(hir: &Hir) -> Vec<Self> {
        let mut sets: Vec<(Vec<Vec<u8>>, bool, bool)> = Vec::new();
        for kind in [ExtractKind::Prefix, ExtractKind::Suffix] {
            let at_start = matches!(kind, ExtractKind::Prefix);
            let mut extractor = Extractor::new();
            extractor.kind(kind).limit_total(MOST_WORDS);
            let mut words = extractor.extract(hir);
            let exact = words.is_exact() && hir.properties().look_set().is_empty();
            if exact {
                words.minimize_by_preference();
            } else if at_start {
                words.optimize_for_prefix_by_preference();
            } else {
                words.optimize_for_suffix_by_preference();
            }
            sets.extend(finite(&words).map(|words| (words, exact, at_start)));
        }
        if let HirKind::Concat(parts) = hir.kind() {
            for part in parts {
                let words = Extractor::new().limit_total(MOST_WORDS).extract(part);
                sets.extend(finite(&words).map(|words| (words, false, false)));
            }
        }
        sets.dedup();
        sets.into_iter().filter_map(|(words, exact, leads)| Self::new(words, exact, leads)).collect()
    }

    fn new(words: Vec<Vec<u8>>, exact: bool, leads: bool) -> Option<Self> {
        let finder = match &words[..] {
            [] => return None,
            [one] => Finder::One(Box::new(memmem::Finder::new(one).into_owned())),
            several => match packed::Searcher::new(several) {
                Some(packed) => Finder::Packed(packed),
                None => Finder::Many(AhoCorasick::new(several).ok()?),
            },
        };
        Some(Self { finder, exact, leads })
    }

    /// Whether there is only one word, which is the fastest.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self.finder, Finder::One(_))
    }

    /// Whether vector instructions search for them.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.finder, Finder::Packed(_))
    }

    /// The position of the first of them.
    fn find(&self, text: &[u8]) -> Option<usize> {
        match &self.finder {
            Finder::One(finder) => finder.find(text),
            Finder::Packed(searcher) => searcher.find(text).map(|found| found.start()),
            Finder::Many(searcher) => searcher.find(text).map(|found| found.start()),
        }
    }

    pub(crate) fn is_in(&self, sentence: &[u8]) -> bool {
        self.find(sentence).is_some()
    }

    /// Reports each of these lines that has one of the words, once.
    pub(crate) fn scan(
        &self,
        text: &[u8],
        starts: &[u32],
        lines: std::ops::Range<usize>,
        mut hit: impl FnMut(usize),
    ) {
        let end = starts[lines.end] as usize;
        let mut line = lines.start;
        while line < lines.end {
            let at = starts[line] as usize;
            let Some(found) = self.find(&text[at..end]) else { return };
            let with = line_of(starts, line, at + found);
            hit(with);
            line = with + 1;
        }
    }
}

/// The words of a sequence, if it has an end and none is empty.
fn finite(words: &Seq) -> Option<Vec<Vec<u8>>> {
    let words = words.literals()?;
    let usable = !words.is_empty() && words.len() <= MOST_WORDS && words.iter().all(|word| !word.is_empty());
    usable.then(|| words.iter().map(|word| word.as_bytes().to_vec()).collect())
}
