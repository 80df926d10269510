//! One search, done in pieces.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use std::vec::IntoIter;

use kendall_digest::Interrupt;
use kendall_digest::password::{Mask, Outcome, Search};

use super::learned::Kind;
use super::piece::{Candidates, Piece};
use super::shared::Shared;
use super::wanted::{Found, Wanted, Way};
use crate::words::rules::Rule;

/// How far a search has come. `tried` counts from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There are candidates left.
    More {
        /// How many were tried.
        tried: u64,
    },
    /// The password is found.
    Found(Found),
    /// No candidate has the digest.
    Nowhere {
        /// How many were tried.
        tried: u64,
        /// How many there would have been beyond the bound, which were not tried; `u64::MAX` if there are more.
        left_out: u64,
    },
}

/// One search, which can be interrupted and gone on with. No candidate is tried twice for it, but for at most some
/// thousand that were under way when it was interrupted.
pub struct Hunt {
    finder: Arc<Shared>,
    wanted: Wanted,
    left_out: u64,
    rest: IntoIter<Piece>,
    now: Option<Now>,
    tried: u64,
}

/// A part that is being tried.
enum Now {
    Words(InWords),
    Mask(InMask),
}

/// What a rule makes of words: these, from the one at `next` on.
struct InWords {
    rule: Rule,
    shortest: usize,
    longest: usize,
    next: usize,
}

/// The passwords of a mask, from this number on.
struct InMask {
    mask: Mask,
    search: Search,
    next: u64,
}

/// What came of trying candidates.
struct Tried {
    count: u64,
    end: End,
}

/// Why no more were tried.
enum End {
    Found(Vec<u8>),
    /// The part has no more.
    Done,
    /// This many were asked for, or an interrupt was seen.
    Enough,
}

impl Hunt {
    pub(super) fn new(finder: Arc<Shared>, wanted: Wanted, pieces: Vec<Piece>, left_out: u64) -> Self {
        Self { finder, wanted, left_out, rest: pieces.into_iter(), now: None, tried: 0 }
    }

    /// Tries some `units` of candidates more, up to some thousand beyond that, or fewer if it is interrupted, which is
    /// seen within some 10 µs.
    pub fn advance(&mut self, interrupt: &Interrupt, units: u64) -> Progress {
        let until = self.tried.saturating_add(units.max(1));
        while self.tried < until && !interrupt.is_raised() {
            let now = match &mut self.now {
                Some(now) => now,
                None => match self.rest.next() {
                    Some((.., candidates)) => self.now.insert(begin(&self.finder, &self.wanted, candidates)),
                    None => return self.nowhere(),
                },
            };
            let start = Instant::now();
            let most = until - self.tried;
            let (kind, Tried { count, end }) = match now {
                Now::Words(words) => {
                    (Kind::Rules, words.advance(&self.finder, &self.wanted, interrupt, most))
                }
                Now::Mask(mask) => (Kind::Masks, mask.advance(interrupt, most)),
            };
            if count > 0 {
                self.finder.learned.note_time(kind, count, start.elapsed().as_nanos() as f64);
            }
            self.tried += count;
            match end {
                End::Found(password) => return self.found(password),
                End::Done => self.now = None,
                End::Enough => {}
            }
        }
        Progress::More { tried: self.tried }
    }

    fn found(&mut self, password: Vec<u8>) -> Progress {
        let (by, rule) = match &self.now {
            Some(Now::Words(words)) => (Way::Rules, Some(words.rule)),
            _ => (Way::BruteForce, None),
        };
        let found = Found { password, by, tried: self.tried };
        self.finder.note_found(&self.wanted, &found, rule);
        Progress::Found(found)
    }

    fn nowhere(&self) -> Progress {
        self.finder.note_nowhere(&self.wanted, self.left_out);
        Progress::Nowhere { tried: self.tried, left_out: self.left_out }
    }
}

fn begin(finder: &Shared, wanted: &Wanted, candidates: Candidates) -> Now {
    match candidates {
        Candidates::Words { rule, shortest, longest } => {
            Now::Words(InWords { rule, shortest, longest, next: 0 })
        }
        Candidates::Mask(mask) => {
            let search = Search::new(finder.engine, &wanted.hash.target(), &mask);
            Now::Mask(InMask { mask, search, next: 0 })
        }
    }
}

impl InWords {
    fn advance(&mut self, finder: &Shared, wanted: &Wanted, interrupt: &Interrupt, most: u64) -> Tried {
        let words = finder.words.of_length(self.shortest, self.longest);
        let mut count = 0;
        let mut password = Vec::new();
        while self.next < words.len() {
            if count >= most || interrupt.is_raised() {
                return Tried { count, end: End::Enough };
            }
            let word = finder.words.get(words[self.next] as usize);
            let found = self.rule.apply(word, &mut password, |candidate| {
                count += 1;
                wanted.hash.is_of(candidate)
            });
            if found {
                return Tried { count, end: End::Found(password) };
            }
            self.next += 1;
        }
        Tried { count, end: End::Done }
    }
}

impl InMask {
    fn advance(&mut self, interrupt: &Interrupt, most: u64) -> Tried {
        // Rows that were begun are finished, for that takes no longer.
        let end = self.next.saturating_add(most).checked_next_multiple_of(self.search.grain());
        let end = end.unwrap_or(u64::MAX).min(self.mask.size());
        let (next, end) = match self.search.scan(self.next..end, interrupt) {
            Outcome::Found { value, .. } => (value + 1, End::Found(self.mask.password(value))),
            Outcome::Stopped { at } => (at, End::Enough),
            Outcome::Absent if end == self.mask.size() => (end, End::Done),
            Outcome::Absent => (end, End::Enough),
        };
        Tried { count: next - std::mem::replace(&mut self.next, next), end }
    }
}

impl fmt::Debug for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, tried, left_out, .. } = self;
        f.debug_struct("Hunt")
            .field("wanted", wanted)
            .field("tried", tried)
            .field("left_out", left_out)
            .finish_non_exhaustive()
    }
}
