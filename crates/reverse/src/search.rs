//! One search, shared by all members that work on it: the parts of its range that are still to be tested.

use std::ops::Range;

use kendall_digest::sha256::Digest;

use crate::protocol::Request;

/// The most ranges of a search that rides along: each part of another search can cut one in two, and a search can wait for as long
/// as its client likes.
const MOST_RANGES: usize = 64;

/// The identity of a search: requests with the same key are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) digest: Digest,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Key {
    /// The key of a request, without its priority.
    pub fn of(request: &Request) -> Self {
        Self { digest: request.digest, start: request.start, end: request.end }
    }

    /// The key for the runtime.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&self.digest[..], &self.start.to_be_bytes(), &self.end.to_be_bytes()].concat()
    }
}

/// The progress of a search. Parts of its range are handed out, and come back tested or, if the member was
/// interrupted, with a remainder.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) key: Key,
    /// The ranges that no member has tested or is testing for this search: disjoint and ascending.
    rest: Vec<Range<u64>>,
    /// The parts that are handed out.
    out: Vec<Range<u64>>,
    tested: u64,
    found: Option<u64>,
}

impl Search {
    pub(crate) fn new(key: Key) -> Self {
        let whole = key.start..key.end;
        Self { key, rest: vec![whole], out: Vec::new(), tested: 0, found: None }
    }

    /// The end of the search, if it has ended: with the number, or without one.
    pub(crate) fn ended(&self) -> Option<Option<u64>> {
        match self.found {
            Some(value) => Some(Some(value)),
            None => (self.rest.is_empty() && self.out.is_empty()).then_some(None),
        }
    }

    /// The number of candidates tested up to now.
    pub(crate) fn tested(&self) -> u64 {
        self.tested
    }

    /// Whether a member is testing a part.
    pub(crate) fn is_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// The ranges that are neither tested nor handed out.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &Range<u64>> {
        self.rest.iter()
    }

    /// The ranges that are not tested: those that are handed out, and the rest.
    pub(crate) fn untested(&self) -> impl Iterator<Item = &Range<u64>> {
        self.rest.iter().chain(&self.out)
    }

    /// The number of candidates that are neither tested nor handed out.
    pub(crate) fn left(&self) -> u64 {
        self.rest.iter().map(|range| range.end - range.start).sum()
    }

    /// Hands out the lowest candidates, at most `most` of them, if there are any.
    pub(crate) fn hand_out(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.rest.first_mut()?;
        let part = first.start..first.end.min(first.start.saturating_add(most));
        first.start = part.end;
        if first.is_empty() {
            self.rest.remove(0);
        }
        self.out.push(part.clone());
        Some(part)
    }

    /// Takes back a part that was handed out, tested up to `tested_to` and no further.
    pub(crate) fn take_back(&mut self, part: Range<u64>, tested_to: u64) {
        self.out.retain(|out| *out != part);
        self.tested += tested_to - part.start;
        if tested_to < part.end {
            let at = self.rest.partition_point(|range| range.start < part.end);
            // A part is mostly a neighbour of the rest; joined, the rest stays one range.
            match self.rest.get_mut(at) {
                Some(next) if next.start == part.end => next.start = tested_to,
                _ => self.rest.insert(at, tested_to..part.end),
            }
        }
    }

    /// The lowest candidate that is neither tested nor handed out.
    pub(crate) fn next(&self) -> Option<u64> {
        self.rest.first().map(|range| range.start)
    }

    /// The end of the range from here on that is neither tested nor handed out for this search.
    pub(crate) fn lacks_up_to(&self, from: u64) -> Option<u64> {
        self.rest.iter().find(|range| range.contains(&from)).map(|range| range.end)
    }

    /// Whether the rest is in as many ranges as a search that rides along may have.
    pub(crate) fn is_fragmented(&self) -> bool {
        self.rest.len() >= MOST_RANGES
    }

    /// Records that a range was tested for this search without having been handed out for it.
    pub(crate) fn strike_out(&mut self, tested: &Range<u64>) {
        let mut rest = Vec::with_capacity(self.rest.len() + 1);
        for range in self.rest.drain(..) {
            let (from, to) = (range.start.max(tested.start), range.end.min(tested.end));
            if from >= to {
                rest.push(range);
                continue;
            }
            self.tested += to - from;
            rest.extend([range.start..from, to..range.end].into_iter().filter(|part| !part.is_empty()));
        }
        self.rest = rest;
    }

    /// Records the number behind the digest.
    pub(crate) fn find(&mut self, value: u64) {
        self.found = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn search(end: u64) -> Search {
        Search::new(Key { digest: [0; 32], start: 0, end })
    }

    proptest! {
        /// For any sequence of parts, interrupts and riders, each candidate is tested once, and the search ends
        /// exactly when all are.
        #[test]
        fn every_candidate_is_tested_once(
            end in 1u64..400,
            steps in prop::collection::vec((1u64..60, 0u64..60, any::<bool>(), 0u64..400, 0u64..50), 1..100),
        ) {
            let mut search = search(end);
            let mut tested = vec![0; end as usize];
            let mut hands = Vec::new();
            for (most, progress, keep, strike, width) in steps {
                hands.extend(search.hand_out(most));
                if !keep && let Some(part) = hands.pop() {
                    let to = part.end.min(part.start + progress);
                    (part.start..to).for_each(|i| tested[i as usize] += 1);
                    search.take_back(part, to);
                }
                if let Some(to) = search.lacks_up_to(strike) {
                    let struck = strike..to.min(strike + width);
                    struck.clone().for_each(|i| tested[i as usize] += 1);
                    search.strike_out(&struck);
                }
                prop_assert_eq!(search.tested(), tested.iter().sum::<u64>());
                prop_assert!(search.rest.is_sorted_by(|a, b| a.end <= b.start && !a.is_empty() && !b.is_empty()));
            }
            for part in hands {
                part.clone().for_each(|i| tested[i as usize] += 1);
                let to = part.end;
                search.take_back(part, to);
            }
            while let Some(part) = search.hand_out(7) {
                prop_assert_eq!(search.ended(), None);
                part.clone().for_each(|i| tested[i as usize] += 1);
                let to = part.end;
                search.take_back(part, to);
            }
            prop_assert_eq!(search.ended(), Some(None));
            prop_assert!(tested.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn a_find_ends_a_search_with_parts_still_handed_out() {
        let mut search = search(100);
        let part = search.hand_out(10).unwrap();
        search.find(7);
        assert_eq!(search.ended(), Some(Some(7)));
        search.take_back(part, 3);
        assert_eq!((search.ended(), search.left()), (Some(Some(7)), 97));
    }
}
