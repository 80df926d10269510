//! The regularity of the sends: statistics that the law of the gaps between them is judged by, in constant
//! memory.

use std::collections::VecDeque;

use kendall_stats::random::{Purpose, Rng, stream, unit};
use serde::{Deserialize, Serialize};

/// The number of gaps that are kept: enough for a test of their law, and more would make it reject negligible
/// deviations.
const SAMPLE: usize = 4096;

/// The widths of the windows in which sends are counted, in nanoseconds.
const WINDOWS_NS: [i64; 3] = [1_000_000, 10_000_000, 100_000_000];

/// The sends of a run, when they were passed to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sends {
    /// The number of requests that were passed to the kernel.
    pub count: u64,
    /// The rate of the sends, from the first to the last.
    pub per_s: f64,
    /// The rate at which they were due, from the first to the last: the target, without the randomness in the
    /// number of requests of a random schedule.
    pub due_per_s: f64,
    /// The coefficient of variation of the gaps between them: 0 for a constant rate, 1 for Poisson arrivals.
    pub gap_cv: f64,
    /// The burstiness, in windows of 1, 10 and 100 ms.
    pub dispersion: Vec<Dispersion>,
    /// A sample of the gaps between sends in nanoseconds, at most 4,096 of them, each with the same probability
    /// (Vitter, 1985, algorithm R). Not part of a record, which has every request.
    #[serde(skip)]
    pub gaps_ns: Vec<u64>,
}

/// The variance of the number of sends in a window over its mean: 0 for a constant rate, 1 for Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// The width of the windows, in seconds.
    pub window_s: f64,
    /// How many windows.
    pub windows: u64,
    /// The index of dispersion.
    pub index: f64,
}

/// The counters of the sends.
#[derive(Debug)]
pub(crate) struct Meter {
    count: u64,
    first_ns: i64,
    last_ns: i64,
    /// Sums of the gaps and of their squares, in ns.
    gaps: f64,
    squares: f64,
    windows: [Window; 3],
    due: Option<(i64, i64)>,
    due_count: u64,
    sample: Vec<u64>,
    rng: Rng,
}

impl Meter {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            count: 0,
            first_ns: 0,
            last_ns: 0,
            gaps: 0.0,
            squares: 0.0,
            windows: WINDOWS_NS.map(Window::new),
            due: None,
            due_count: 0,
            sample: Vec::with_capacity(SAMPLE),
            rng: stream(seed, Purpose::Sample, 0),
        }
    }

    /// Records a request that is due at this instant.
    pub(crate) fn due(&mut self, at_ns: i64) {
        let first = self.due.map_or(at_ns, |(first, _)| first);
        self.due = Some((first, at_ns));
        self.due_count += 1;
    }

    /// Adds the due times of another thread's requests. Sends are merged in their order, by a [`SendMerger`].
    pub(crate) fn add_due(&mut self, other: &Self) {
        self.due = match (self.due, other.due) {
            (Some((first, last)), Some(others)) => Some((first.min(others.0), last.max(others.1))),
            (own, others) => own.or(others),
        };
        self.due_count += other.due_count;
    }

    /// Records a request that is passed to the kernel at this instant, not before the previous one.
    pub(crate) fn sent(&mut self, at_ns: i64) {
        if self.count == 0 {
            self.first_ns = at_ns;
        } else {
            self.gap((at_ns - self.last_ns).max(0) as u64);
        }
        self.last_ns = at_ns;
        self.count += 1;
        for window in &mut self.windows {
            window.add(at_ns - self.first_ns);
        }
    }

    fn gap(&mut self, gap_ns: u64) {
        self.gaps += gap_ns as f64;
        self.squares += (gap_ns as f64).powi(2);
        if self.sample.len() < SAMPLE {
            self.sample.push(gap_ns);
            return;
        }
        let place = (unit(&mut self.rng) * self.count as f64) as usize;
        if let Some(kept) = self.sample.get_mut(place) {
            *kept = gap_ns;
        }
    }

    pub(crate) fn summary(self) -> Sends {
        let gaps = self.count.saturating_sub(1) as f64;
        let mean = self.gaps / gaps;
        let variance = self.squares / gaps - mean * mean;
        let rate = |count: f64, ns: i64| if ns > 0 { count / (ns as f64 / 1e9) } else { 0.0 };
        let (first_due, last_due) = self.due.unwrap_or_default();
        Sends {
            count: self.count,
            per_s: rate(gaps, self.last_ns - self.first_ns),
            due_per_s: rate(self.due_count.saturating_sub(1) as f64, last_due - first_due),
            gap_cv: if self.gaps > 0.0 { variance.max(0.0).sqrt() / mean } else { 0.0 },
            dispersion: self.windows.iter().filter_map(Window::summary).collect(),
            gaps_ns: self.sample,
        }
    }
}

/// The sends of the requests of a run whose rows come from elsewhere, in any order. Those of the first requests are enough.
#[derive(Debug, Default)]
pub(crate) struct SendLog {
    due_ns: Vec<i64>,
    sent_ns: Vec<i64>,
}

impl SendLog {
    /// At most this many requests are counted, at 16 bytes each.
    const REQUESTS: u64 = 8_000_000;

    pub(crate) fn add(&mut self, index: u64, due_ns: i64, sent_ns: Option<i64>) {
        if index < Self::REQUESTS && self.due_ns.len() < Self::REQUESTS as usize {
            self.due_ns.push(due_ns);
            self.sent_ns.extend(sent_ns);
        }
    }

    pub(crate) fn summary(mut self) -> Sends {
        self.due_ns.sort_unstable();
        self.sent_ns.sort_unstable();
        let mut meter = Meter::new(0);
        self.due_ns.into_iter().for_each(|at_ns| meter.due(at_ns));
        self.sent_ns.into_iter().for_each(|at_ns| meter.sent(at_ns));
        meter.summary()
    }
}

/// Merges the sends of several threads in the order in which they were made.
///
/// A thread reports its sends every 20 ms, with the instant before which it makes no further ones. The merger keeps the
/// sends since the earliest of these instants: a few thousand, unless a thread is stalled.
#[derive(Debug, Default)]
pub(crate) struct SendMerger {
    threads: Vec<ThreadSends>,
    /// The sends in order; they are counted once it is known when requests were due.
    merged: Option<Meter>,
}

#[derive(Debug)]
struct ThreadSends {
    sent_ns: VecDeque<i64>,
    until_ns: i64,
}

impl SendMerger {
    pub(crate) fn new(threads: usize) -> Self {
        let none = || ThreadSends { sent_ns: VecDeque::new(), until_ns: i64::MIN };
        Self { threads: std::iter::repeat_with(none).take(threads).collect(), merged: None }
    }

    pub(crate) fn take(&mut self, thread: usize, sent_ns: Vec<i64>, until_ns: i64) {
        let one = &mut self.threads[thread];
        one.sent_ns.extend(sent_ns);
        one.until_ns = until_ns;
        let known_ns = self.threads.iter().map(|one| one.until_ns).min().unwrap_or(i64::MAX);
        let merged = self.merged.get_or_insert_with(|| Meter::new(0));
        let first = |threads: &[ThreadSends]| {
            let heads = threads.iter().enumerate().filter_map(|(i, one)| Some((*one.sent_ns.front()?, i)));
            heads.min().filter(|&(at_ns, _)| at_ns < known_ns)
        };
        while let Some((at_ns, thread)) = first(&self.threads) {
            self.threads[thread].sent_ns.pop_front();
            merged.sent(at_ns);
        }
    }

    /// The statistics of the merged sends, whose requests were due as another meter counted.
    pub(crate) fn summary(self, dues: Meter) -> Sends {
        let mut meter = self.merged.unwrap_or_else(|| Meter::new(0));
        meter.add_due(&dues);
        meter.summary()
    }
}

/// Counts in windows of one width, one after the other.
#[derive(Debug)]
struct Window {
    width_ns: i64,
    /// The window that is being filled, and what is in it.
    number: i64,
    filling: u64,
    /// Sums of the counts of those that are full, and of their squares.
    sum: f64,
    squares: f64,
}

impl Window {
    fn new(width_ns: i64) -> Self {
        Self { width_ns, number: 0, filling: 0, sum: 0.0, squares: 0.0 }
    }

    fn add(&mut self, since_first_ns: i64) {
        let number = since_first_ns / self.width_ns;
        if number > self.number {
            // Windows that were skipped add nothing to either sum.
            self.sum += self.filling as f64;
            self.squares += (self.filling as f64).powi(2);
            (self.number, self.filling) = (number, 0);
        }
        self.filling += 1;
    }

    /// `None` with fewer than two full windows.
    fn summary(&self) -> Option<Dispersion> {
        let windows = u64::try_from(self.number).ok().filter(|&windows| windows > 1)?;
        let n = windows as f64;
        let mean = self.sum / n;
        let variance = (self.squares - n * mean * mean) / (n - 1.0);
        Some(Dispersion { window_s: self.width_ns as f64 / 1e9, windows, index: variance.max(0.0) / mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Arrivals;

    fn sends(arrivals: &Arrivals, count: usize) -> Sends {
        let mut meter = Meter::new(1);
        for at_s in arrivals.instants(5).unwrap().take(count) {
            let at_ns = (at_s * 1e9) as i64;
            meter.due(at_ns);
            meter.sent(at_ns + 1000);
        }
        meter.summary()
    }

    /// Limits of five standard errors, which each figure exceeds once in 1.7 million: of the coefficient of
    /// variation √(2/n) at most, of the index of dispersion √(2/windows).
    #[test]
    fn poisson_sends_have_unit_dispersion_and_constant_ones_none() {
        let poisson = sends(&Arrivals::poisson(5000.0), 100_000);
        assert!((poisson.gap_cv - 1.0).abs() < 5.0 * (2e-5f64).sqrt(), "{}", poisson.gap_cv);
        assert_eq!(poisson.dispersion.len(), 3);
        for Dispersion { windows, index, .. } in &poisson.dispersion {
            assert!((index - 1.0).abs() < 5.0 * (2.0 / *windows as f64).sqrt(), "{index} in {windows}");
        }
        let mean = poisson.gaps_ns.iter().sum::<u64>() as f64 / SAMPLE as f64;
        assert_eq!(poisson.gaps_ns.len(), SAMPLE);
        assert!((mean / 200_000.0 - 1.0).abs() < 5.0 / (SAMPLE as f64).sqrt(), "{mean}");

        let constant = sends(&Arrivals::constant(5000.0), 100_000);
        assert!(constant.gap_cv < 1e-4 && constant.dispersion.iter().all(|one| one.index < 0.1));
        assert!((constant.per_s / 5000.0 - 1.0).abs() < 1e-6);
        assert!((constant.per_s / constant.due_per_s - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_sample_is_drawn_evenly_from_all_gaps() {
        let mut meter = Meter::new(3);
        let mut at_ns = 0;
        // Gap number i is i ns long, so the sample's mean shows where it was drawn from.
        let gaps = 50_000;
        for gap in 0..=gaps {
            at_ns += gap;
            meter.sent(at_ns);
        }
        let sample = meter.summary().gaps_ns;
        let mean = sample.iter().sum::<u64>() as f64 / sample.len() as f64;
        // Five standard errors of the mean of 4,096 uniform draws: a false alarm in 1.7 million.
        let error = gaps as f64 / 12f64.sqrt() / (SAMPLE as f64).sqrt();
        assert!((mean - gaps as f64 / 2.0).abs() < 5.0 * error, "{mean}");
    }

    /// Threads that report at different times, the last of them only at the end.
    #[test]
    fn merged_sends_are_those_of_one_thread() {
        for (arrivals, threads) in [(Arrivals::poisson(5000.0), 2), (Arrivals::constant(5000.0), 8)] {
            let all: Vec<i64> =
                arrivals.instants(5).unwrap().take(20_000).map(|at_s| (at_s * 1e9) as i64).collect();
            let mut one = Meter::new(0);
            let mut merger = SendMerger::new(threads);
            let mut dues: Vec<Meter> = (0..threads).map(|_| Meter::new(0)).collect();
            let mut kept = vec![Vec::new(); threads];
            for (index, &at_ns) in all.iter().enumerate() {
                let thread = index % threads;
                one.due(at_ns);
                one.sent(at_ns + 1000);
                dues[thread].due(at_ns);
                kept[thread].push(at_ns + 1000);
                if thread > 0 && index % (100 + thread) == 0 {
                    merger.take(thread, std::mem::take(&mut kept[thread]), at_ns + 1000);
                }
            }
            for (thread, sent_ns) in kept.into_iter().enumerate() {
                merger.take(thread, sent_ns, i64::MAX);
            }
            let mut merged_dues = Meter::new(0);
            dues.iter().for_each(|due| merged_dues.add_due(due));
            assert_eq!(merger.summary(merged_dues), one.summary());
        }
    }

    #[test]
    fn few_sends_make_no_nonsense() {
        for count in 0..3 {
            let few = sends(&Arrivals::constant(10.0), count);
            assert!(few.gap_cv.is_finite() && few.per_s.is_finite() && few.due_per_s.is_finite(), "{few:?}");
            assert!(few.dispersion.iter().all(|one| one.index.is_finite()), "{few:?}");
            assert_eq!((few.count, few.gaps_ns.len()), (count as u64, count.saturating_sub(1)));
        }
    }
}
