//! The shared state of all searches of a [`Finder`](super::Finder): words, tables, cache, statistics, counters.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kendall_cluster::Cluster;
use kendall_digest::Engine;
use kendall_digest::password::Mask;
use kendall_service::{Counter, Registry};
use prometheus_client::metrics::family::Family;

use super::cache::SearchCache;
use super::index::Index;
use super::learned::{Kind, Learned, Part};
use super::piece::{Candidates, Piece};
use super::query::{FoundPassword, Hash, PasswordQuery, PasswordSource, Strategy};
use super::space::Space;
use super::table::{Table, TableReport};
use crate::words::Words;
use crate::words::rules::Rule;

/// The shared state of all searches.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) cluster: Option<Cluster>,
    pub(super) strategy: Strategy,
    pub(super) most_candidates: u64,
    pub(super) space: Space,
    pub(super) words: Arc<Words>,
    pub(super) dictionary: Option<Dictionary>,
    pub(super) table: Option<Arc<Table>>,
    pub(super) cache: SearchCache,
    pub(super) learned: Learned,
    pub(super) counts: Counts,
}

/// The list of words by their digests.
#[derive(Debug)]
pub(super) struct Dictionary {
    sha1: Index,
    sha256: Index,
    md5: Index,
}

/// Counters by length, and by source or rule.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) asked: Family<[(&'static str, String); 1], Counter>,
    pub(super) found: Family<[(&'static str, String); 2], Counter>,
    pub(super) nowhere: Family<[(&'static str, String); 1], Counter>,
    pub(super) by_rule: Family<[(&'static str, String); 1], Counter>,
}

/// The label of a range of lengths in metrics: one of a few.
fn label(lengths: &RangeInclusive<usize>) -> String {
    let (start, end) = (lengths.start(), lengths.end());
    if start == end && *end <= Mask::LONGEST { end.to_string() } else { "several".into() }
}

impl Dictionary {
    pub(super) fn new(words: &Words) -> Self {
        let index = |hash: fn(&[u8]) -> Hash| {
            Index::of(&words.iter().map(|word| hash(word).first_word()).collect::<Vec<_>>())
        };
        std::thread::scope(|scope| {
            let [sha1, sha256] = [Hash::sha1, Hash::sha256].map(|hash| scope.spawn(move || index(hash)));
            let md5 = index(Hash::md5);
            let [sha1, sha256] = [sha1, sha256].map(|thread| thread.join().expect("hashing does not panic"));
            Self { sha1, sha256, md5 }
        })
    }

    /// The word with this digest.
    fn look_up<'a>(&self, words: &'a Words, hash: &Hash) -> Option<&'a [u8]> {
        let index = match hash {
            Hash::Sha1(_) => &self.sha1,
            Hash::Sha256(_) => &self.sha256,
            Hash::Md5(_) => &self.md5,
        };
        let candidates = index.look_up(hash.first_word()).iter();
        candidates.map(|number| words.get(*number as usize)).find(|word| hash.is_of(word))
    }
}

impl Shared {
    /// The password, if it is known without a search.
    pub(super) fn at_once(&self, query: &PasswordQuery) -> Option<FoundPassword> {
        self.counts.asked.get_or_create(&[("length", label(&query.lengths))]).inc();
        let found = |password: &[u8], by| FoundPassword { password: password.to_vec(), by, tried: 0 };
        let in_dictionary = || {
            let dictionary = self.dictionary.as_ref()?;
            dictionary.look_up(&self.words, &query.hash).map(|word| found(word, PasswordSource::Dictionary))
        };
        let in_table = || {
            let table = self.table.as_ref()?;
            let password = table.look_up(query)?;
            table.note_hit(self.brute_force_ns(query));
            Some(found(&password, PasswordSource::Table))
        };
        let found = self.cache.recall(query).or_else(in_dictionary).or_else(in_table)?;
        self.count_found(query, &found);
        Some(found)
    }

    /// The average time of brute force for a password that exists, as far as the limit of candidates allows it.
    fn brute_force_ns(&self, query: &PasswordQuery) -> f64 {
        let size = self.space.size(&query.lengths).min(self.most_candidates);
        size as f64 / 2.0 * self.learned.ns_of(Kind::Masks)
    }

    fn count_found(&self, query: &PasswordQuery, found: &FoundPassword) {
        let labels = [("way", found.by.name().to_string()), ("length", label(&query.lengths))];
        self.counts.found.get_or_create(&labels).inc();
    }

    /// Records a password that a search found.
    pub(super) fn note_found(&self, query: &PasswordQuery, found: &FoundPassword, rule: Option<Rule>) {
        self.count_found(query, found);
        if let Some(rule) = rule {
            self.counts.by_rule.get_or_create(&[("rule", rule.to_string())]).inc();
        }
        self.cache.remember(query.hash, found);
        if self.strategy == Strategy::Adaptive {
            let length = found.password.len();
            let masks = self.space.of_length(length).into_iter().enumerate();
            let masks = masks.filter(|(_, mask)| mask.number(&found.password).is_some());
            let of_mask =
                |(place, _)| [None, Some(found.password[0])].map(|first| Part::Mask { length, place, first });
            self.learned
                .note(&query.lengths, rule.map(Part::Rule).into_iter().chain(masks.flat_map(of_mask)));
        }
    }

    /// Records that a search ended without a password.
    pub(super) fn note_nowhere(&self, query: &PasswordQuery, left_out: u64) {
        self.counts.nowhere.get_or_create(&[("length", label(&query.lengths))]).inc();
        self.cache.remember_nowhere(query.clone(), left_out);
    }

    /// The parts of a search in the order in which they are tried, and the number of candidates that are skipped
    /// because they are beyond the limit.
    pub(super) fn pieces(&self, lengths: &RangeInclusive<usize>) -> (Vec<Piece>, u64) {
        let (mut total, mut left_out) = (0, 0);
        let mut fits = |candidates: u64| {
            let fits = candidates <= self.most_candidates - total;
            let sum = if fits { &mut total } else { &mut left_out };
            *sum = sum.saturating_add(candidates);
            fits
        };
        let mut pieces: Vec<Piece> = Vec::new();
        if matches!(self.strategy, Strategy::Rules | Strategy::Adaptive) {
            pieces.extend(
                Rule::all().filter_map(|rule| self.rule(rule, lengths)).filter(|piece| fits(piece.1)),
            );
        }
        for length in lengths.clone() {
            let masks = self.space.of_length(length);
            if masks.is_empty() {
                fits(u64::MAX);
            }
            let masks = masks.into_iter().enumerate().filter(|(_, mask)| fits(mask.size()));
            pieces.extend(masks.flat_map(|(place, mask)| self.split(length, place, mask)));
        }
        if self.strategy == Strategy::Adaptive {
            self.learned.sort(lengths, &mut pieces);
        }
        (pieces, left_out)
    }

    /// The candidates that a rule makes of the words, if there are words of a length that it needs.
    fn rule(&self, rule: Rule, lengths: &RangeInclusive<usize>) -> Option<Piece> {
        let (shortest, longest) = rule.words_for(*lengths.start(), *lengths.end())?;
        let words = self.words.of_length(shortest, longest).len() as u64;
        let candidates = Candidates::Words { rule, shortest, longest };
        (words > 0).then(|| (Part::Rule(rule), words * u64::from(rule.forms()), candidates))
    }

    /// A mask as the parts of the statistics: by the first byte, if each of these is worth a separate search.
    fn split(&self, length: usize, place: usize, mask: Mask) -> Vec<Piece> {
        /// With this many candidates, the time to set up a search is negligible.
        const WORTH: u64 = 10_000;
        let piece =
            |first, mask: Mask| (Part::Mask { length, place, first }, mask.size(), Candidates::Mask(mask));
        let firsts = &mask.charsets()[0];
        if self.strategy != Strategy::Adaptive || mask.size() / (firsts.len() as u64) < WORTH {
            return vec![piece(None, mask)];
        }
        let beginning_with = |&first: &u8| {
            let rest = mask.charsets()[1..].iter().cloned();
            let mask = Mask::new([vec![first]].into_iter().chain(rest));
            piece(Some(first), mask.expect("it is a part of a mask"))
        };
        firsts.iter().map(beginning_with).collect()
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let Counts { asked, found, nowhere, by_rule } = &self.counts;
        registry.register("recover_asked", "Passwords requested, by length", asked.clone());
        registry.register("recover_found", "Passwords found, by way and length", found.clone());
        registry.register(
            "recover_nowhere",
            "Searches that ended without a password, by length",
            nowhere.clone(),
        );
        registry.register("recover_found_by_rule", "Passwords that rules made of words", by_rule.clone());
    }

    /// The report of the table, if there is one.
    pub(super) fn table_report(&self) -> Option<TableReport> {
        self.table.as_ref().map(|table| table.report(self.learned.ns_of(Kind::Masks)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            table.stop();
        }
    }
}
