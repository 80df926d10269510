//! One search for a password, executed in pieces.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use std::vec::IntoIter;

use kendall_digest::Interrupt;

use super::in_mask::{InMask, OnCluster, TrialEnd, TrialOutcome, wait_for_workers};
use super::learned::Kind;
use super::piece::{Candidates, Piece};
use super::query::{FoundPassword, PasswordQuery, PasswordSource};
use super::shared::Shared;
use crate::words::rules::Rule;

/// The most candidates of a part that came back from a cluster to try before other parts are served.
const PART_OF_WAITING: u64 = 100_000;

/// The progress of a search. `tried` counts from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There are candidates left.
    More {
        /// The number of candidates tried.
        tried: u64,
    },
    /// The password is found.
    Found(FoundPassword),
    /// No candidate has the digest.
    Nowhere {
        /// The number of candidates tried.
        tried: u64,
        /// The number of candidates beyond the limit, which were not tried; `u64::MAX` if there are more.
        left_out: u64,
    },
}

/// One search, which can be interrupted and resumed. It tries no candidate twice, except at most some thousand that
/// were in progress at an interrupt.
pub struct Hunt {
    finder: Arc<Shared>,
    query: PasswordQuery,
    left_out: u64,
    rest: IntoIter<Piece>,
    now: Option<Now>,
    /// Parts of which workers have all that is left.
    waiting: Vec<OnCluster>,
    tried: u64,
}

/// A part that is being tried.
enum Now {
    Words(InWords),
    Mask(InMask),
    OnCluster(Box<OnCluster>),
}

/// The candidates that a rule makes of words: these, from the one at `next` on.
struct InWords {
    rule: Rule,
    shortest: usize,
    longest: usize,
    next: usize,
}

impl Hunt {
    pub(super) fn new(finder: Arc<Shared>, query: PasswordQuery, pieces: Vec<Piece>, left_out: u64) -> Self {
        Self { finder, query, left_out, rest: pieces.into_iter(), now: None, waiting: Vec::new(), tried: 0 }
    }

    /// Tries about `units` more candidates, up to some thousand beyond that, or fewer if it is interrupted, which
    /// takes effect within some 10 µs.
    pub fn advance(&mut self, interrupt: &Interrupt, units: u64) -> Progress {
        let until = self.tried.saturating_add(units.max(1));
        while self.tried < until && !interrupt.is_raised() {
            if let Some(password) = self.ask_workers(interrupt) {
                return self.found(password);
            }
            let now = match &mut self.now {
                Some(now) => now,
                None => match self.rest.next() {
                    Some((.., candidates)) => self.now.insert(begin(&self.finder, &self.query, candidates)),
                    None if self.waiting.is_empty() => return self.nowhere(),
                    None => {
                        wait_for_workers();
                        break;
                    }
                },
            };
            let start = Instant::now();
            // What workers have tried may be more than was asked for.
            let most = until.saturating_sub(self.tried);
            if most == 0 {
                break;
            }
            let (kind, TrialOutcome { count, end }) = match now {
                Now::Words(words) => (Kind::Rules, words.advance(&self.finder, &self.query, interrupt, most)),
                Now::Mask(mask) => (Kind::Masks, mask.advance(interrupt, most)),
                Now::OnCluster(part) => match part.advance(interrupt, most) {
                    (count, Some(end)) => (Kind::Masks, TrialOutcome { count, end }),
                    (count, None) => {
                        self.tried += count;
                        if let Some(Now::OnCluster(part)) = self.now.take() {
                            self.waiting.push(*part);
                        }
                        continue;
                    }
                },
            };
            // A part on a cluster says nothing about this machine.
            if count > 0 && !matches!(now, Now::OnCluster(_)) {
                self.finder.learned.note_time(kind, count, start.elapsed().as_nanos() as f64);
            }
            self.tried += count;
            match end {
                TrialEnd::Found(password) => return self.found(password),
                TrialEnd::Done => self.now = None,
                TrialEnd::Enough => {}
            }
        }
        Progress::More { tried: self.tried }
    }

    /// Takes in what workers did with the parts that they have. A part that comes back is continued here.
    fn ask_workers(&mut self, interrupt: &Interrupt) -> Option<Vec<u8>> {
        let mut at = 0;
        while let Some(part) = self.waiting.get_mut(at) {
            let (count, end) = part.advance(interrupt, PART_OF_WAITING);
            self.tried += count;
            match end {
                Some(TrialEnd::Found(password)) => {
                    self.now = None;
                    return Some(password);
                }
                Some(TrialEnd::Done) => drop(self.waiting.swap_remove(at)),
                Some(TrialEnd::Enough) | None => at += 1,
            }
        }
        None
    }

    fn found(&mut self, password: Vec<u8>) -> Progress {
        let (by, rule) = match &self.now {
            Some(Now::Words(words)) => (PasswordSource::Rules, Some(words.rule)),
            _ => (PasswordSource::BruteForce, None),
        };
        let found = FoundPassword { password, by, tried: self.tried };
        self.finder.note_found(&self.query, &found, rule);
        Progress::Found(found)
    }

    fn nowhere(&self) -> Progress {
        self.finder.note_nowhere(&self.query, self.left_out);
        Progress::Nowhere { tried: self.tried, left_out: self.left_out }
    }
}

fn begin(finder: &Shared, query: &PasswordQuery, candidates: Candidates) -> Now {
    match candidates {
        Candidates::Words { rule, shortest, longest } => {
            Now::Words(InWords { rule, shortest, longest, next: 0 })
        }
        Candidates::Mask(mask) => {
            let (engine, hash) = (finder.engine, &query.hash);
            let cluster = finder.cluster.as_ref();
            match cluster.and_then(|cluster| OnCluster::begin(cluster, engine, hash, &mask)) {
                Some(part) => Now::OnCluster(Box::new(part)),
                None => Now::Mask(InMask::new(engine, hash, mask)),
            }
        }
    }
}

impl InWords {
    fn advance(
        &mut self,
        finder: &Shared,
        query: &PasswordQuery,
        interrupt: &Interrupt,
        most: u64,
    ) -> TrialOutcome {
        let words = finder.words.of_length(self.shortest, self.longest);
        let mut count = 0;
        let mut password = Vec::new();
        while self.next < words.len() {
            if count >= most || interrupt.is_raised() {
                return TrialOutcome { count, end: TrialEnd::Enough };
            }
            let word = finder.words.get(words[self.next] as usize);
            let found = self.rule.apply(word, &mut password, |candidate| {
                count += 1;
                query.hash.is_of(candidate)
            });
            if found {
                return TrialOutcome { count, end: TrialEnd::Found(password) };
            }
            self.next += 1;
        }
        TrialOutcome { count, end: TrialEnd::Done }
    }
}

impl fmt::Debug for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query, tried, left_out, .. } = self;
        f.debug_struct("Hunt")
            .field("query", query)
            .field("tried", tried)
            .field("left_out", left_out)
            .finish_non_exhaustive()
    }
}
