//! One section of a simulation: counts, sums, integrals over time and histograms of the customers that left in it.

use hdrhistogram::Histogram;
use kendall_station::{Estimate, QUANTILES, Quantile, Summary};

use super::observer::{Departure, estimate};
use crate::statistics;

/// Batches per section on which the warm-up is judged.
pub(super) const FINE: usize = 16;

/// The times of some customers: their number, and what is needed of response and waiting time.
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
    histogram: Histogram<u32>,
}

impl Times {
    fn new(digits: u8) -> Self {
        let mut histogram = Histogram::new(digits).expect("the number of digits is between 0 and 5");
        histogram.auto(true);
        Self { sum_s: 0.0, squares_s2: 0.0, histogram }
    }

    #[inline]
    fn add(&mut self, time_s: f64, units_per_s: f64) {
        self.sum_s += time_s;
        self.squares_s2 += time_s * time_s;
        // The largest time is cut off where a histogram ends, 2⁶² units; nothing that is simulated lasts so long.
        let units = ((time_s * units_per_s) as u64).min(1 << 62);
        self.histogram.record(units).expect("a histogram that resizes holds every time");
    }

    fn absorb(&mut self, other: &Self) {
        self.sum_s += other.sum_s;
        self.squares_s2 += other.squares_s2;
        self.histogram.add(&other.histogram).expect("a histogram that resizes holds any other");
    }
}

impl Ledger {
    fn new(digits: u8) -> Self {
        Self { count: 0, response: Times::new(digits), waiting: Times::new(digits) }
    }

    #[inline]
    pub(super) fn add(&mut self, customer: &Departure, units_per_s: f64) {
        self.count += 1;
        self.response.add(customer.response_s, units_per_s);
        self.waiting.add(customer.waiting_s, units_per_s);
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.response.absorb(&other.response);
        self.waiting.absorb(&other.waiting);
    }

    /// Mean, variance and quantiles of one kind of time over all sections. Without a customer the mean is zero.
    pub(super) fn summary(
        sections: &[Section],
        units_per_s: f64,
        ledger: impl Fn(&Section) -> &Self,
        times: impl Fn(&Self) -> &Times,
    ) -> Summary {
        let count: u64 = sections.iter().map(|section| ledger(section).count).sum();
        if count == 0 {
            return Summary { mean_s: Estimate::exact(0.0), variance_s2: None, quantiles: Vec::new() };
        }
        let mean_s = estimate(sections, |s| times(ledger(s)).sum_s, |s| ledger(s).count as f64);
        let second = sections.iter().map(|s| times(ledger(s)).squares_s2).sum::<f64>() / count as f64;
        let histograms: Vec<&Histogram<u32>> = sections.iter().map(|s| &times(ledger(s)).histogram).collect();
        Summary {
            mean_s,
            variance_s2: Some((second - mean_s.value * mean_s.value).max(0.0)),
            quantiles: quantiles(&histograms, count, units_per_s),
        }
    }
}

/// Quantiles by sectioning (Asmussen and Glynn 2007, section III.5a): the sections are grouped so that each group has 50
/// samples beyond the quantile; a quantile for which that leaves fewer than ten groups is left out. The resolution
/// of the histogram is 0.1 %, and 1 % by class.
fn quantiles(histograms: &[&Histogram<u32>], count: u64, units_per_s: f64) -> Vec<Quantile> {
    let value_s = |histogram: &Histogram<u32>, p| {
        let units = histogram.value_at_quantile(p);
        if units == 0 { 0.0 } else { (histogram.median_equivalent(units) as f64 + 0.5) / units_per_s }
    };
    // Each coarser grouping is made of the finer one.
    let fine = grouped(histograms, 20);
    let coarse = grouped(&fine.iter().collect::<Vec<_>>(), 10);
    let all = grouped(&coarse.iter().collect::<Vec<_>>(), 1).remove(0);
    let quantile = |&p: &f64| {
        let needed = 50.0 / p.min(1.0 - p);
        let enough = |sections: &&Vec<Histogram<u32>>| {
            sections.len() >= 10 && count as f64 / sections.len() as f64 >= needed
        };
        let sections = [&fine, &coarse].into_iter().find(enough)?;
        let centre = value_s(&all, p);
        let squares: f64 = sections.iter().map(|section| (value_s(section, p) - centre).powi(2)).sum();
        let k = sections.len() as f64;
        let half_width = statistics::student_t(k - 1.0, 0.975) * (squares / (k * (k - 1.0))).sqrt();
        Some(Quantile { p, value_s: Estimate::within(centre, half_width) })
    };
    QUANTILES.iter().filter_map(quantile).collect()
}

/// Merges neighbours into `groups` histograms, or as many as there are if those are fewer.
fn grouped(histograms: &[&Histogram<u32>], groups: usize) -> Vec<Histogram<u32>> {
    let groups = groups.min(histograms.len());
    let bound = |i: usize| i * histograms.len() / groups;
    let merged = |i| {
        let mut sum = histograms[bound(i)].clone();
        for other in &histograms[bound(i) + 1..bound(i + 1)] {
            sum.add(*other).expect("a histogram that resizes holds any other");
        }
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
    pub(super) fn new(classes: usize, start_s: f64) -> Self {
        Self {
            start_s,
            end_s: start_s,
            all: Ledger::new(3),
            classes: (0..classes).map(|_| Ledger::new(2)).collect(),
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

    #[inline]
    pub(super) fn add_to_batch(&mut self, response_s: f64) {
        self.batch.0 += response_s;
        self.batch.1 += 1;
    }

    pub(super) fn close_batch(&mut self) {
        self.batches.push(std::mem::take(&mut self.batch));
    }

    /// The mean response time of each batch that had a departure.
    pub(super) fn batch_means(&self) -> impl Iterator<Item = f64> {
        self.batches.iter().filter(|batch| batch.1 > 0).map(|(sum_s, count)| sum_s / *count as f64)
    }

    /// This section and the one after it as one, with half as many batches.
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
