//! Counts of times on a grid of constant relative width, whose buckets come from the bits of the number: the record of
//! times in the simulator and in streamed answers.
//!
//! The exponent of a double and the first bits of its fraction together are its position on a grid that divides each
//! doubling into equal parts. So a count costs a shift, two subtractions and an increment, and no logarithm.

use std::ops::Range;

/// The bits of a double after its sign and exponent.
const FRACTION: u32 = 52;

/// The resolution of a grid.
#[derive(Clone, Copy, Debug)]
pub enum Grid {
    /// 512 parts of each doubling: the middle of a bucket is within 0.1 % of all its values.
    Fine,
    /// 64 parts: within 0.8 %.
    Coarse,
}

impl Grid {
    const fn parts_log2(self) -> u32 {
        match self {
            Self::Fine => 9,
            Self::Coarse => 6,
        }
    }
}

/// Counts of times on a [`Grid`], in memory that depends on the range of the times and not on their number.
#[derive(Clone, Debug)]
pub struct Histogram {
    shift: u32,
    /// The bucket of the smallest time that is distinguished from zero. The bucket before it holds zero, and what is below.
    least: u64,
    /// The first bucket that has a counter.
    from: usize,
    /// Counters from the smallest time to the largest, by whole doublings. A bucket is full at 2³² − 1: by then, quantiles near it do not
    /// improve any more.
    counts: Vec<u32>,
}

impl Histogram {
    /// A histogram whose smallest distinguished time is `least_s` > 0.
    pub fn new(grid: Grid, least_s: f64) -> Self {
        let shift = FRACTION - grid.parts_log2();
        Self { shift, least: least_s.max(f64::MIN_POSITIVE).to_bits() >> shift, from: 0, counts: Vec::new() }
    }

    /// The bucket of a time, which is not negative.
    #[inline]
    fn place(&self, time_s: f64) -> usize {
        ((time_s.to_bits() >> self.shift) + 1).saturating_sub(self.least) as usize
    }

    /// Counts a time.
    #[inline]
    pub fn add(&mut self, time_s: f64) {
        let place = self.place(time_s);
        // The difference wraps for a bucket before the first.
        if place.wrapping_sub(self.from) >= self.counts.len() {
            self.cover(place..place + 1);
        }
        let count = &mut self.counts[place - self.from];
        *count = count.saturating_add(1);
    }

    /// Counts all of these times, none of which exceeds `largest_s`.
    pub fn add_all(&mut self, times_s: &[f64], largest_s: f64) {
        let last = self.place(largest_s);
        if self.from > 0 || last >= self.counts.len() {
            self.cover(0..last + 1);
        }
        let (shift, least, counts) = (self.shift, self.least, self.counts.as_mut_slice());
        for time_s in times_s {
            let count = &mut counts[((time_s.to_bits() >> shift) + 1).saturating_sub(least) as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Makes counters for these buckets.
    #[cold]
    fn cover(&mut self, places: Range<usize>) {
        let doubling = 1 << (FRACTION - self.shift);
        let mut from = places.start / doubling * doubling;
        let mut end = places.end.next_multiple_of(doubling);
        if !self.counts.is_empty() {
            from = from.min(self.from);
            end = end.max(self.from + self.counts.len());
        }
        // Zeroed memory from the system costs nothing where nothing is ever counted.
        let mut counts = vec![0; end - from];
        let at = self.from.saturating_sub(from);
        counts[at..at + self.counts.len()].copy_from_slice(&self.counts);
        (self.from, self.counts) = (from, counts);
    }

    /// Adds the counts of another histogram of the same grid.
    pub fn absorb(&mut self, other: &Self) {
        debug_assert_eq!((self.shift, self.least), (other.shift, other.least), "grids must be the same");
        if other.counts.is_empty() {
            return;
        }
        let theirs = other.from..other.from + other.counts.len();
        if theirs.start < self.from || theirs.end > self.from + self.counts.len() {
            self.cover(theirs);
        }
        for (mine, theirs) in self.counts[other.from - self.from..].iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The number of counted times.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// The time that a share `p` stays below or at: the middle of its bucket; 0 of an empty histogram.
    pub fn quantile_s(&self, p: f64) -> f64 {
        self.at_rank_s(crate::quantile_rank(self.count().max(1), p)).unwrap_or(0.0)
    }

    /// The time with this rank, counted from 1: the middle of its bucket. `None` beyond the last.
    pub fn at_rank_s(&self, rank: u64) -> Option<f64> {
        let mut left = rank.max(1);
        for (place, &count) in self.counts.iter().enumerate() {
            let count = u64::from(count);
            if count >= left {
                return Some(self.middle_s(self.from + place));
            }
            left -= count;
        }
        None
    }

    /// The number of times that are at most each of these (ascending), or in its bucket.
    pub fn counts_to(&self, times_s: &[f64]) -> Vec<u64> {
        let (mut counted, mut next) = (0, 0);
        let mut to = |&time_s: &f64| {
            let end = (self.place(time_s) + 1).saturating_sub(self.from).clamp(next, self.counts.len());
            counted += self.counts[next..end].iter().map(|&count| u64::from(count)).sum::<u64>();
            next = end;
            counted
        };
        times_s.iter().map(&mut to).collect()
    }

    fn middle_s(&self, place: usize) -> f64 {
        if place == 0 {
            return 0.0;
        }
        let low = (place as u64 - 1 + self.least) << self.shift;
        f64::from_bits(low | 1 << (self.shift - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_as_near_as_the_grid_says(
            mut times_s in prop::collection::vec(1e-6f64..1e6, 1..200),
            p in 0.001f64..0.999,
        ) {
            let largest_s = times_s.iter().copied().fold(0.0, f64::max);
            for (grid, error) in [(Grid::Fine, 0.001), (Grid::Coarse, 0.008)] {
                let (mut one, mut all) = (Histogram::new(grid, 1e-7), Histogram::new(grid, 1e-7));
                times_s.iter().for_each(|&time_s| one.add(time_s));
                all.add_all(&times_s, largest_s);
                times_s.sort_by(f64::total_cmp);
                prop_assert_eq!(one.counts_to(&times_s), all.counts_to(&times_s));
                let rank = crate::quantile_rank(times_s.len() as u64, p);
                let exact_s = times_s[rank as usize - 1];
                prop_assert!((one.quantile_s(p) / exact_s - 1.0).abs() <= error, "{} {}", one.quantile_s(p), exact_s);
            }
        }

        #[test]
        fn absorbing_is_counting_both(
            a in prop::collection::vec(0.0f64..1e3, 0..50),
            b in prop::collection::vec(0.0f64..1e9, 0..50),
        ) {
            let of = |times_s: &[f64]| {
                let mut histogram = Histogram::new(Grid::Fine, 1e-6);
                times_s.iter().for_each(|&time_s| histogram.add(time_s));
                histogram
            };
            let mut both = of(&a);
            both.absorb(&of(&b));
            let together = of(&[a, b].concat());
            prop_assert_eq!((both.from, &both.counts), (together.from, &together.counts));
            prop_assert_eq!(both.count(), together.count());
            prop_assert_eq!(both.at_rank_s(both.count() + 1), None);
            if let Some(at) = both.at_rank_s(both.count() / 2) {
                prop_assert!(both.counts_to(&[at])[0] >= both.count() / 2);
                prop_assert_eq!(both.counts_to(&[0.0, at, 1e9])[2], both.count());
            }
            for p in [0.1, 0.5, 0.9] {
                prop_assert_eq!(both.quantile_s(p), together.quantile_s(p));
            }
        }
    }

    #[test]
    fn times_far_apart_take_memory_and_times_nearby_take_little() {
        let mut histogram = Histogram::new(Grid::Fine, 1e-7);
        [0.001, 0.0011, 0.0019].iter().for_each(|&time_s| histogram.add(time_s));
        assert!(histogram.counts.len() <= 2 * 512, "{}", histogram.counts.len());
        // An earlier bucket, then a later one.
        [1e-6, 1.0].iter().for_each(|&time_s| histogram.add(time_s));
        assert!((20 * 512..=22 * 512).contains(&histogram.counts.len()), "{}", histogram.counts.len());
        assert_eq!(histogram.counts_to(&[0.0, 1e-6, 0.0015, 2.0]), [0, 1, 3, 5]);
    }

    #[test]
    fn a_time_below_the_resolution_is_zero() {
        let mut histogram = Histogram::new(Grid::Fine, 1e-6);
        [0.0, 0.0, 1e-9, f64::MIN_POSITIVE].iter().for_each(|&time_s| histogram.add(time_s));
        assert_eq!(histogram.quantile_s(0.99), 0.0);
        histogram.add(f64::MAX);
        assert_eq!(histogram.count(), 5);
        assert!(histogram.quantile_s(0.999) > 1e308);
    }
}
