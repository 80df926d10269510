//! Statistics of one kind of time of the requests of a section.

use kendall_stats::histogram::{Grid, Histogram};

/// Times below this are reported as zero, in seconds.
const LEAST_S: f64 = 1e-7;

/// One kind of time: of requests that were seen to their end, and the least that the others took.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) known: Sums,
    /// The times of requests that were given up: their true times are longer.
    bounds: Option<Box<Sums>>,
}

#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) sum_s: f64,
    pub(super) squares_s2: f64,
    pub(super) longest_s: f64,
    pub(super) histogram: Histogram,
}

impl Sums {
    fn new() -> Self {
        let histogram = Histogram::new(Grid::Fine, LEAST_S);
        Self { count: 0, sum_s: 0.0, squares_s2: 0.0, longest_s: 0.0, histogram }
    }

    fn add(&mut self, time_s: f64) {
        self.count += 1;
        self.sum_s += time_s;
        self.squares_s2 += time_s * time_s;
        self.longest_s = self.longest_s.max(time_s);
        self.histogram.add(time_s);
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.squares_s2 += other.squares_s2;
        self.longest_s = self.longest_s.max(other.longest_s);
        self.histogram.absorb(&other.histogram);
    }
}

impl Times {
    pub(super) fn new() -> Self {
        Self { known: Sums::new(), bounds: None }
    }

    /// A request whose time is known.
    pub(super) fn add(&mut self, time_s: f64) {
        self.known.add(time_s.max(0.0));
    }

    /// A request that took longer than this.
    pub(super) fn add_bound(&mut self, least_s: f64) {
        self.bounds.get_or_insert_with(|| Box::new(Sums::new())).add(least_s.max(0.0));
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.known.absorb(&other.known);
        if let Some(theirs) = &other.bounds {
            match &mut self.bounds {
                Some(mine) => mine.absorb(theirs),
                None => self.bounds = Some(theirs.clone()),
            }
        }
    }

    pub(super) fn censored(&self) -> u64 {
        self.bounds.as_ref().map_or(0, |bounds| bounds.count)
    }

    pub(super) fn count(&self) -> u64 {
        self.known.count + self.censored()
    }

    /// The time with this rank, no time counted as longer than it was for certain.
    pub(super) fn bound_s(&self, rank: u64) -> Option<f64> {
        let mut least = self.known.histogram.clone();
        self.bounds.iter().for_each(|bounds| least.absorb(&bounds.histogram));
        least.at_rank_s(rank)
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        let sum_s = self.known.sum_s + self.bounds.as_ref().map_or(0.0, |bounds| bounds.sum_s);
        (self.count() > 0).then(|| sum_s / self.count() as f64)
    }

    /// The shares of the requests whose time is known to be no longer than each of these, which ascend.
    pub(super) fn shares_to(&self, times_s: &[f64]) -> Option<Vec<f64>> {
        let n = self.count() as f64;
        let shares = self.known.histogram.counts_to(times_s).into_iter().map(|count| count as f64 / n);
        (n > 0.0).then(|| shares.collect())
    }
}
