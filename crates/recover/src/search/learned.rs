//! Statistics of the passwords that were found: the parts of the candidates that contained them, and the time per
//! candidate. They determine the order of parts that takes the shortest time on average.
//!
//! Disjoint parts, of which one holds the password with a probability p and takes a time c to try, are best tried in
//! descending order of p/c: exchanging two neighbours that are not in this order shortens the expected time. That is
//! Smith's rule (W. E. Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3,
//! 1956), with probabilities for weights. Some passwords are in more than one part; the model neglects that.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard};

use super::query::PasswordSource;
use crate::words::rules::Rule;

/// A part of the candidates for some lengths, the unit of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// The candidates that a rule makes of the list of words.
    Rule(Rule),
    /// The passwords of a mask, all or those that begin with one byte.
    Mask {
        /// The number of characters in the parts.
        length: usize,
        /// The index among the masks of that length.
        place: usize,
        /// The byte, if it is one.
        first: Option<u8>,
    },
}

impl Part {
    fn kind(self) -> Kind {
        match self {
            Self::Rule(_) => Kind::Rules,
            Self::Mask { .. } => Kind::Masks,
        }
    }
}

/// A class of candidates that each take the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rules,
    Masks,
}

/// The weight of the prior, in passwords found.
const PRIOR_WEIGHT: f64 = 10.0;
/// The prior for rules: of the passwords that are not words of the list, rules make this share from such words.
const PRIOR_RULES: f64 = 0.3;
/// The assumed time of a candidate before it was measured, in ns.
const PRIOR_NS: [f64; 2] = [60.0, 6.0];
/// The weight of a new measurement in the estimated time of a candidate.
const NEW: f64 = 0.1;
/// The most ranges of lengths with statistics.
const MOST_LENGTHS: usize = 256;

/// The statistics of a finder.
#[derive(Debug, Default)]
pub(super) struct Learned {
    tallies: Mutex<HashMap<RangeInclusive<usize>, Tally>>,
    ns: Mutex<Option<[f64; 2]>>,
}

/// The parts that contained passwords.
#[derive(Clone, Debug, Default)]
struct Tally {
    found: f64,
    by_part: HashMap<Part, f64>,
}

impl Tally {
    /// The probability that the password is in a part that has this share of the candidates of its kind.
    fn probability(&self, part: Part, share: f64) -> f64 {
        let prior = match part.kind() {
            Kind::Rules => PRIOR_RULES / Rule::all().count() as f64,
            Kind::Masks => (1.0 - PRIOR_RULES) * share,
        };
        let hits = self.by_part.get(&part).copied().unwrap_or(0.0);
        self.posterior(hits, prior)
    }

    /// The probability that rules make the password from a word.
    fn by_rules(&self) -> f64 {
        self.posterior(self.hits(|part| matches!(part, Part::Rule(_))), PRIOR_RULES)
    }

    /// The probability that it is in a mask. A password found in one part counts once for the whole mask; one that was in
    /// several parts counts once in each.
    fn by_masks(&self) -> f64 {
        let hits = self.hits(|part| matches!(part, Part::Mask { first: None, .. }));
        self.posterior(hits, 1.0 - PRIOR_RULES).min(1.0)
    }

    fn hits(&self, of: impl Fn(Part) -> bool) -> f64 {
        self.by_part.iter().filter(|(part, _)| of(**part)).map(|(_, hits)| hits).sum()
    }

    fn posterior(&self, hits: f64, prior: f64) -> f64 {
        (hits + PRIOR_WEIGHT * prior) / (self.found + PRIOR_WEIGHT)
    }
}

/// The estimated share of passwords of some lengths that one source holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SourceEstimate {
    /// The lengths: 4, or 1-5.
    pub(super) length: String,
    /// The source that finds them.
    pub(super) way: PasswordSource,
    /// The source's probability, among passwords that are not known at once. A password in two sources counts in both.
    pub(super) probability: f64,
}

impl Learned {
    /// The estimated shares, by lengths for which a password was found.
    pub(super) fn estimates(&self) -> Vec<SourceEstimate> {
        let tallies = lock(&self.tallies);
        let mut tallies: Vec<_> = tallies.iter().collect();
        tallies.sort_by_key(|(lengths, _)| (*lengths.start(), *lengths.end()));
        let estimates = |(lengths, tally): (&RangeInclusive<usize>, &Tally)| {
            let (start, end) = (lengths.start(), lengths.end());
            let length = if start == end { end.to_string() } else { format!("{start}-{end}") };
            [(PasswordSource::Rules, tally.by_rules()), (PasswordSource::BruteForce, tally.by_masks())]
                .map(|(way, probability)| SourceEstimate { length: length.clone(), way, probability })
        };
        tallies.into_iter().flat_map(estimates).collect()
    }

    /// Sorts parts, each with its number of candidates, into the order that takes the shortest time on average.
    pub(super) fn sort<T>(&self, lengths: &RangeInclusive<usize>, parts: &mut [(Part, u64, T)]) {
        let tally = lock(&self.tallies).get(lengths).cloned().unwrap_or_default();
        let masks = parts.iter().filter(|(part, ..)| part.kind() == Kind::Masks);
        let all: f64 = masks.map(|(_, candidates, _)| *candidates as f64).sum();
        let index = |(part, candidates, _): &(Part, u64, T)| {
            let candidates = *candidates as f64;
            tally.probability(*part, candidates / all) / (candidates * self.ns_of(part.kind()))
        };
        parts.sort_by(|a, b| index(b).total_cmp(&index(a)));
    }

    /// Records a password that was found in these parts.
    pub(super) fn note(&self, lengths: &RangeInclusive<usize>, parts: impl Iterator<Item = Part>) {
        let mut tallies = lock(&self.tallies);
        if tallies.len() == MOST_LENGTHS && !tallies.contains_key(lengths) {
            return;
        }
        let tally = tallies.entry(lengths.clone()).or_default();
        tally.found += 1.0;
        for part in parts {
            *tally.by_part.entry(part).or_default() += 1.0;
        }
    }

    /// Records the time that candidates took.
    pub(super) fn note_time(&self, kind: Kind, candidates: u64, ns: f64) {
        let mut all = lock(&self.ns);
        let all = all.get_or_insert(PRIOR_NS);
        all[kind as usize] += NEW * (ns / candidates as f64 - all[kind as usize]);
    }

    /// The time per candidate.
    pub(super) fn ns_of(&self, kind: Kind) -> f64 {
        lock(&self.ns).unwrap_or(PRIOR_NS)[kind as usize]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LENGTHS: RangeInclusive<usize> = 4..=4;

    fn mask(first: u8) -> Part {
        Part::Mask { length: 4, place: 0, first: Some(first) }
    }

    #[test]
    fn before_learning_short_rules_come_first_and_equal_parts_keep_their_order() {
        let rule = Rule::all().next().unwrap();
        let mut parts: Vec<_> = (b'a'..=b'z').map(|first| (mask(first), 17_576, ())).collect();
        parts.push((Part::Rule(rule), 100, ()));
        Learned::default().sort(&LENGTHS, &mut parts);
        assert_eq!(parts[0].0, Part::Rule(rule));
        assert!(parts[1..].iter().map(|(part, ..)| *part).eq((b'a'..=b'z').map(mask)));
    }

    #[test]
    fn parts_with_hits_come_first_for_the_lengths_that_had_them() {
        let learned = Learned::default();
        for _ in 0..5 {
            learned.note(&LENGTHS, [mask(b'q')].into_iter());
        }
        learned.note(&LENGTHS, [mask(b'k')].into_iter());
        let order = |lengths| {
            let mut parts: Vec<_> = (b'a'..=b'z').map(|first| (mask(first), 17_576, ())).collect();
            learned.sort(&lengths, &mut parts);
            parts.into_iter().map(|(part, ..)| part).collect::<Vec<_>>()
        };
        assert_eq!(order(LENGTHS)[..3], [mask(b'q'), mask(b'k'), mask(b'a')]);
        assert_eq!(order(3..=4)[..2], [mask(b'a'), mask(b'b')]);
    }

    proptest! {
        /// No order of the same parts takes less time on average.
        #[test]
        fn the_order_is_the_best(hits in prop::collection::vec((0u8..20, 1u64..1000), 5)) {
            let learned = Learned::default();
            let mut parts: Vec<_> = Vec::new();
            for (first, (hits, candidates)) in (0..).zip(hits) {
                (0..hits).for_each(|_| learned.note(&LENGTHS, [mask(first)].into_iter()));
                parts.push((mask(first), candidates, ()));
            }
            let tally = lock(&learned.tallies).get(&LENGTHS).cloned().unwrap_or_default();
            let all: f64 = parts.iter().map(|(_, candidates, ())| *candidates as f64).sum();
            let expected = |order: &[(Part, u64, ())]| {
                let mut before = 0.0;
                order.iter().map(|(part, candidates, ())| {
                    let cost = *candidates as f64;
                    before += cost;
                    tally.probability(*part, cost / all) * (before - cost / 2.0)
                }).sum::<f64>()
            };
            learned.sort(&LENGTHS, &mut parts);
            let best = expected(&parts);
            for i in 0..5 {
                for j in 0..5 {
                    let mut other = parts.clone();
                    other.swap(i, j);
                    prop_assert!(best <= expected(&other) * (1.0 + 1e-12));
                }
            }
        }
    }
}
