//! One section of a simulation: counts, sums, integrals over time and histograms of the customers that left in it.

use kendall_station::{Estimate, QUANTILES, Quantile, Summary};

use kendall_stats as statistics;
use kendall_stats::histogram::{Grid, Histogram};

/// Batches per section, for the test of the warm-up.
pub(super) const FINE: usize = 16;

/// The times of some customers: their number, and the statistics of response and waiting time.
#[derive(Clone)]
pub(super) struct Ledger {
    pub(super) count: u64,
    pub(super) response: Times,
    pub(super) waiting: Times,
}

/// One kind of time: its sum, its sum of squares, and its distribution.
#[derive(Clone)]
pub(super) struct Times {
    pub(super) sum_s: f64,
    squares_s2: f64,
    histogram: Histogram,
}

/// The statistics of several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Total {
    pub(super) sum_s: f64,
    squares_s2: f64,
    largest_s: f64,
    /// The number of times that are not zero.
    pub(super) positive: u64,
}

impl Total {
    /// Adds in parallel lanes, which is faster and, over many numbers, more exact than one after the other.
    pub(super) fn of(times_s: &[f64]) -> Self {
        const SIDES: usize = 8;
        let (mut sum, mut squares, mut largest) = ([0.0; SIDES], [0.0; SIDES], [0.0f64; SIDES]);
        let mut positive = [0u64; SIDES];
        let mut add = |side: usize, time_s: f64| {
            sum[side] += time_s;
            squares[side] += time_s * time_s;
            largest[side] = if time_s > largest[side] { time_s } else { largest[side] };
            positive[side] += u64::from(time_s > 0.0);
        };
        let rows = times_s.chunks_exact(SIDES);
        rows.remainder().iter().enumerate().for_each(|(side, &time_s)| add(side, time_s));
        for row in rows {
            (0..SIDES).for_each(|side| add(side, row[side]));
        }
        Self {
            sum_s: sum.iter().sum(),
            squares_s2: squares.iter().sum(),
            largest_s: largest.into_iter().fold(0.0, f64::max),
            positive: positive.iter().sum(),
        }
    }
}

impl Times {
    fn new(grid: Grid, least_s: f64) -> Self {
        Self { sum_s: 0.0, squares_s2: 0.0, histogram: Histogram::new(grid, least_s) }
    }

    #[inline]
    fn add(&mut self, time_s: f64) {
        self.sum_s += time_s;
        self.squares_s2 += time_s * time_s;
        self.histogram.add(time_s);
    }

    fn add_all(&mut self, times_s: &[f64], total: &Total) {
        self.sum_s += total.sum_s;
        self.squares_s2 += total.squares_s2;
        self.histogram.add_all(times_s, total.largest_s);
    }

    fn absorb(&mut self, other: &Self) {
        self.sum_s += other.sum_s;
        self.squares_s2 += other.squares_s2;
        self.histogram.absorb(&other.histogram);
    }
}

impl Ledger {
    fn new(grid: Grid, least_s: f64) -> Self {
        Self { count: 0, response: Times::new(grid, least_s), waiting: Times::new(grid, least_s) }
    }

    #[inline]
    fn add(&mut self, response_s: f64, waiting_s: f64) {
        self.count += 1;
        self.response.add(response_s);
        self.waiting.add(waiting_s);
    }

    /// Adds customers with these response and waiting times, and the statistics of those.
    fn add_all(&mut self, responses: (&[f64], &Total), waits: (&[f64], &Total)) {
        self.count += responses.0.len() as u64;
        self.response.add_all(responses.0, responses.1);
        self.waiting.add_all(waits.0, waits.1);
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.response.absorb(&other.response);
        self.waiting.absorb(&other.waiting);
    }

    /// One quantile of the response time, if there are enough samples for it.
    pub(super) fn response_quantile(sections: &[&Section], p: f64) -> Option<Estimate> {
        let histograms: Vec<&Histogram> = sections.iter().map(|s| &s.all.response.histogram).collect();
        quantiles(&histograms, &[p]).first().map(|quantile| quantile.value_s)
    }

    /// Mean, variance and quantiles of one kind of time over all sections. Without a customer the mean is zero.
    pub(super) fn summary(
        sections: &[&Section],
        ledger: impl Fn(&Section) -> &Self,
        times: impl Fn(&Self) -> &Times,
    ) -> Summary {
        let count: u64 = sections.iter().map(|section| ledger(section).count).sum();
        if count == 0 {
            return Summary { mean_s: Estimate::exact(0.0), variance_s2: None, quantiles: Vec::new() };
        }
        let mean_s = estimate(sections, |s| times(ledger(s)).sum_s, |s| ledger(s).count as f64);
        let second = sections.iter().map(|s| times(ledger(s)).squares_s2).sum::<f64>() / count as f64;
        let histograms: Vec<&Histogram> = sections.iter().map(|s| &times(ledger(s)).histogram).collect();
        Summary {
            mean_s,
            variance_s2: Some((second - mean_s.value * mean_s.value).max(0.0)),
            quantiles: quantiles(&histograms, &QUANTILES),
        }
    }
}

/// Quantiles by sectioning (Asmussen and Glynn 2007, section III.5a): the sections are grouped so that each group has 50
/// samples beyond the quantile; a quantile with fewer than ten such groups is left out. The resolution of the histogram
/// is 0.1 %, and 0.8 % by class.
fn quantiles(histograms: &[&Histogram], wanted: &[f64]) -> Vec<Quantile> {
    // Each coarser grouping is built from the finer one.
    let fine = grouped(histograms, 20);
    let coarse = grouped(&fine.iter().collect::<Vec<_>>(), 10);
    let all = grouped(&coarse.iter().collect::<Vec<_>>(), 1).remove(0);
    let count = all.count();
    let quantile = |&p: &f64| {
        let needed = 50.0 / p.min(1.0 - p);
        let enough = |sections: &&Vec<Histogram>| {
            sections.len() >= 10 && count as f64 / sections.len() as f64 >= needed
        };
        let sections = [&fine, &coarse].into_iter().find(enough)?;
        let centre_s = all.quantile_s(p);
        let squares: f64 = sections.iter().map(|section| (section.quantile_s(p) - centre_s).powi(2)).sum();
        let k = sections.len() as f64;
        let half_width = statistics::student_t(k - 1.0, 0.975) * (squares / (k * (k - 1.0))).sqrt();
        Some(Quantile { p, value_s: Estimate::within(centre_s, half_width) })
    };
    wanted.iter().filter_map(quantile).collect()
}

/// Merges neighbours into `groups` histograms, or fewer if there are not that many.
fn grouped(histograms: &[&Histogram], groups: usize) -> Vec<Histogram> {
    let groups = groups.min(histograms.len());
    let bound = |i: usize| i * histograms.len() / groups;
    let merged = |i| {
        let mut sum = histograms[bound(i)].clone();
        histograms[bound(i) + 1..bound(i + 1)].iter().for_each(|other| sum.absorb(other));
        sum
    };
    (0..groups).map(merged).collect()
}

#[derive(Clone)]
pub(super) struct Section {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) all: Ledger,
    pub(super) classes: Vec<Ledger>,
    pub(super) delayed: u64,
    pub(super) lost: u64,
    /// Sum over the customers of weight × response time.
    pub(super) weighted_s: f64,
    /// Integrals over time of the number present and of the number of busy servers.
    pub(super) present_s: f64,
    pub(super) busy_s: f64,
    /// Sum and number of the response times of each closed batch, and of the open one.
    batches: Vec<(f64, u64)>,
    batch: (f64, u64),
}

impl Section {
    /// An empty section, in which times below `least_s` count as zero.
    pub(super) fn new(classes: usize, least_s: f64, start_s: f64) -> Self {
        Self {
            start_s,
            end_s: start_s,
            all: Ledger::new(Grid::Fine, least_s),
            classes: (0..classes).map(|_| Ledger::new(Grid::Coarse, least_s)).collect(),
            delayed: 0,
            lost: 0,
            weighted_s: 0.0,
            present_s: 0.0,
            busy_s: 0.0,
            batches: Vec::with_capacity(FINE),
            batch: (0.0, 0),
        }
    }

    /// Customers that left, served or not.
    pub(super) fn customers(&self) -> u64 {
        self.all.count + self.lost
    }

    pub(super) fn span_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// Adds customers that left served, with their classes where there are any, and the statistics of their times.
    pub(super) fn add_all(
        &mut self,
        response_s: &[f64],
        waiting_s: &[f64],
        class: &[u32],
        weights: &[f64],
    ) -> (Total, Total) {
        let (responses, waits) = (Total::of(response_s), Total::of(waiting_s));
        self.all.add_all((response_s, &responses), (waiting_s, &waits));
        if class.is_empty() {
            self.weighted_s += weights[0] * responses.sum_s;
        }
        for ((&class, &response_s), &waiting_s) in class.iter().zip(response_s).zip(waiting_s) {
            self.weighted_s += weights[class as usize] * response_s;
            self.classes[class as usize].add(response_s, waiting_s);
        }
        self.add_to_batch(responses.sum_s, response_s.len() as u64);
        (responses, waits)
    }

    fn add_to_batch(&mut self, response_s: f64, customers: u64) {
        self.batch.0 += response_s;
        self.batch.1 += customers;
    }

    pub(super) fn close_batch(&mut self) {
        self.batches.push(std::mem::take(&mut self.batch));
    }

    /// The mean response time of each batch that had a departure.
    pub(super) fn batch_means(&self) -> impl Iterator<Item = f64> {
        self.batches.iter().filter(|batch| batch.1 > 0).map(|(sum_s, count)| sum_s / *count as f64)
    }

    /// Combines this section with the next one, with half as many batches.
    pub(super) fn merged(mut self, next: Self) -> Self {
        self.end_s = next.end_s;
        self.all.absorb(&next.all);
        self.classes.iter_mut().zip(&next.classes).for_each(|(mine, other)| mine.absorb(other));
        self.delayed += next.delayed;
        self.lost += next.lost;
        self.weighted_s += next.weighted_s;
        self.present_s += next.present_s;
        self.busy_s += next.busy_s;
        self.batches.extend(next.batches);
        let pair = |pair: &[(f64, u64)]| pair.iter().fold((0.0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        self.batches = self.batches.chunks(2).map(pair).collect();
        self
    }
}

/// A ratio of totals, with the interval of the ratios of the sections.
pub(super) fn estimate(
    sections: &[&Section],
    of: impl Fn(&Section) -> f64,
    among: impl Fn(&Section) -> f64,
) -> Estimate {
    let total = |part: &dyn Fn(&Section) -> f64| sections.iter().map(|s| part(s)).sum::<f64>();
    let value = total(&of) / total(&among);
    let each: Vec<f64> = sections.iter().map(|s| of(s) / among(s)).filter(|x| x.is_finite()).collect();
    match statistics::batch_means(&each) {
        Some(found) => {
            let (low, high) = found.interval;
            Estimate { value, interval: Some((value + low - found.mean, value + high - found.mean)) }
        }
        None => Estimate::exact(value),
    }
}
