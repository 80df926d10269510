//! A set of stream positions as ranges that neither overlap nor touch.

/// Disjoint ranges in ascending order. Few at any time, so a sorted vector serves; it allocates only as it grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The position after the last range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.last().map(|(_, stop)| *stop)
    }

    /// Whether all of `[start, stop)` is in the set.
    pub(crate) fn contains(&self, start: u64, stop: u64) -> bool {
        let index = self.ranges.partition_point(|(_, end)| *end < stop);
        self.ranges.get(index).is_some_and(|range| range.0 <= start && stop <= range.1)
    }

    /// The end of the range that holds a position.
    pub(crate) fn end_of_range_at(&self, position: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|(_, stop)| *stop <= position);
        self.ranges.get(index).filter(|(start, _)| *start <= position).map(|(_, stop)| *stop)
    }

    /// Adds `[start, stop)`.
    pub(crate) fn insert(&mut self, start: u64, stop: u64) {
        if start >= stop {
            return;
        }
        // Those from `from` to before `to` overlap or touch the new range.
        let from = self.ranges.partition_point(|(_, end)| *end < start);
        let to = from + self.ranges[from..].partition_point(|(begin, _)| *begin <= stop);
        if from == to {
            self.ranges.insert(from, (start, stop));
            return;
        }
        self.ranges[from] = (start.min(self.ranges[from].0), stop.max(self.ranges[to - 1].1));
        self.ranges.drain(from + 1..to);
    }

    /// Removes everything before a position.
    pub(crate) fn remove_below(&mut self, position: u64) {
        let below = self.ranges.partition_point(|(_, stop)| *stop <= position);
        self.ranges.drain(..below);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(position);
        }
    }

    /// Removes the range that begins at a position, or before it, and returns its end.
    pub(crate) fn take_at(&mut self, position: u64) -> Option<u64> {
        let (start, stop) = *self.ranges.first()?;
        if start > position {
            return None;
        }
        self.ranges.remove(0);
        Some(stop)
    }

    pub(crate) fn clear(&mut self) {
        self.ranges = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The set holds what a table of booleans holds, in ranges that do not touch.
        #[test]
        fn a_set_of_ranges_is_a_set_of_positions(steps in prop::collection::vec((0_u64..200, 0_u64..40, any::<bool>()), 1..60)) {
            let mut ranges = Ranges::default();
            let mut table = [false; 256];
            for (start, length, remove) in steps {
                if remove {
                    ranges.remove_below(start / 4);
                    table[..start as usize / 4].fill(false);
                } else {
                    ranges.insert(start, start + length);
                    table[start as usize..(start + length) as usize].fill(true);
                }
                let expected: Vec<_> = (0..256_u64).filter(|at| table[*at as usize]).collect();
                prop_assert_eq!(ranges.iter().flat_map(|(a, b)| a..b).collect::<Vec<_>>(), expected);
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                prop_assert_eq!(ranges.contains(start, start + 3), table[start as usize..start as usize + 3].iter().all(|at| *at));
            }
        }
    }
}
