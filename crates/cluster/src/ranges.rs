//! Sets of candidates as ranges: what is tested, what is missing.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of candidates: disjoint ranges, none of which touches another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// The end of each range by its start.
    ends: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// The set of the candidates of one range.
    pub fn of(range: Range<u64>) -> Self {
        let mut set = Self::default();
        set.insert(range);
        set
    }

    /// Adds a range and returns the number of its candidates that were not in the set.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (mut start, mut end) = (range.start, range.end);
        let mut known = 0;
        // From the last range that begins at or before this one ends, down to the first that touches it.
        while let Some((&other_start, &other_end)) = self.ends.range(..=end).next_back()
            && other_end >= start
        {
            known += other_end.min(range.end).saturating_sub(other_start.max(range.start));
            self.ends.remove(&other_start);
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ends.insert(start, end);
        range.end - range.start - known
    }

    /// Removes the candidates of a range.
    pub fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
        {
            self.ends.remove(&start);
            if end > range.end {
                self.ends.insert(range.end, end);
            }
            if start < range.start {
                self.ends.insert(start, range.start);
                break;
            }
        }
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// The number of ranges.
    pub fn parts(&self) -> usize {
        self.ends.len()
    }

    /// The number of candidates.
    pub fn candidates(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether the set has no candidate.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The range of the set that contains this candidate.
    pub fn around(&self, candidate: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ends.range(..=candidate).next_back()?;
        (candidate < end).then_some(start..end)
    }

    /// The candidates of a range that are not in the set.
    pub fn missing_in(&self, range: Range<u64>) -> Self {
        let mut missing = Self::of(range.clone());
        let before = self.ends.range(..range.start).next_back().map(|(&start, &end)| start..end);
        let inside = self.ends.range(range.start..range.end.max(range.start));
        for known in before.into_iter().chain(inside.map(|(&start, &end)| start..end)) {
            missing.remove(&known);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_candidates(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..40),
            window in (0u64..60, 0u64..40),
        ) {
            let (mut set, mut candidates) = (RangeSet::default(), BTreeSet::new());
            for (adds, start, width) in steps {
                let range = start..start + width;
                if adds {
                    let new = range.clone().filter(|candidate| candidates.insert(*candidate)).count();
                    prop_assert_eq!(set.insert(range), new as u64);
                } else {
                    candidates.retain(|candidate| !range.contains(candidate));
                    set.remove(&range);
                }
                prop_assert!(set.iter().flatten().eq(candidates.iter().copied()));
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.iter().all(|range| !range.is_empty()));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            let window = window.0..window.0 + window.1;
            let missing = set.missing_in(window.clone());
            prop_assert!(missing.iter().flatten().eq(window.filter(|candidate| !candidates.contains(candidate))));
            prop_assert_eq!(set.candidates(), candidates.len() as u64);
            for candidate in 0..90 {
                let around = set.around(candidate);
                prop_assert_eq!(around.is_some(), candidates.contains(&candidate));
                prop_assert!(around.is_none_or(|range| range.contains(&candidate)));
            }
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_special_case() {
        let mut set = RangeSet::of(0..u64::MAX);
        assert_eq!(set.insert(5..u64::MAX), 0);
        set.remove(&(0..1));
        set.remove(&(u64::MAX - 1..u64::MAX));
        assert_eq!(set.candidates(), u64::MAX - 2);
        assert_eq!(set.missing_in(0..u64::MAX).candidates(), 2);
    }
}
