//! Counts of times on a grid of constant relative width, whose buckets come from the bits of the number: the record of
//! times in the simulator and in streamed answers.
//!
//! The exponent of a double and the first bits of its fraction together are its position on a grid that divides each
//! doubling into equal parts. So a count costs a shift, a subtraction and an increment, and no logarithm.

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
    /// Grows, by whole doublings, to the largest time. A bucket is full at 2³² − 1: by then, quantiles near it do not
    /// improve any more.
    counts: Vec<u32>,
}

impl Histogram {
    /// A histogram whose smallest distinguished time is `least_s` > 0.
    pub fn new(grid: Grid, least_s: f64) -> Self {
        let shift = FRACTION - grid.parts_log2();
        Self { shift, least: least_s.max(f64::MIN_POSITIVE).to_bits() >> shift, counts: Vec::new() }
    }

    /// The bucket of a time, which is not negative.
    #[inline]
    fn place(&self, time_s: f64) -> usize {
        ((time_s.to_bits() >> self.shift) + 1).saturating_sub(self.least) as usize
    }

    #[inline]
    /// Counts a time.
    pub fn add(&mut self, time_s: f64) {
        let place = self.place(time_s);
        if place >= self.counts.len() {
            self.grow(place);
        }
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    /// Counts all of these times, none of which exceeds `largest_s`.
    pub fn add_all(&mut self, times_s: &[f64], largest_s: f64) {
        let last = self.place(largest_s);
        if last >= self.counts.len() {
            self.grow(last);
        }
        let (shift, least, counts) = (self.shift, self.least, self.counts.as_mut_slice());
        for time_s in times_s {
            let count = &mut counts[((time_s.to_bits() >> shift) + 1).saturating_sub(least) as usize];
            *count = count.saturating_add(1);
        }
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        let doubling = 1 << (FRACTION - self.shift);
        // Zeroed memory from the system costs nothing where nothing is ever counted.
        let mut counts = vec![0; (place + 1).next_multiple_of(doubling)];
        counts[..self.counts.len()].copy_from_slice(&self.counts);
        self.counts = counts;
    }

    /// Adds the counts of another histogram of the same grid.
    pub fn absorb(&mut self, other: &Self) {
        debug_assert_eq!((self.shift, self.least), (other.shift, other.least), "grids must be the same");
        if self.counts.len() < other.counts.len() {
            self.grow(other.counts.len() - 1);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
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
                return Some(self.middle_s(place));
            }
            left -= count;
        }
        None
    }

    /// The number of times that are at most each of these (ascending), or in its bucket.
    pub fn counts_to(&self, times_s: &[f64]) -> Vec<u64> {
        let (mut counted, mut next) = (0, 0);
        let mut to = |&time_s: &f64| {
            let end = self.place(time_s).saturating_add(1).clamp(next, self.counts.len().max(next));
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
                prop_assert_eq!(&one.counts, &all.counts);
                times_s.sort_by(f64::total_cmp);
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
    fn a_time_below_the_resolution_is_zero() {
        let mut histogram = Histogram::new(Grid::Fine, 1e-6);
        [0.0, 0.0, 1e-9, f64::MIN_POSITIVE].iter().for_each(|&time_s| histogram.add(time_s));
        assert_eq!(histogram.quantile_s(0.99), 0.0);
        histogram.add(f64::MAX);
        assert_eq!(histogram.count(), 5);
        assert!(histogram.quantile_s(0.999) > 1e308);
    }
}
