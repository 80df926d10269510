//! Amounts over time in a bounded number of bins: when the bins are full, pairs are merged.

use serde::{Deserialize, Serialize};

/// The most bins.
pub const MOST_BINS: usize = 128;
const FIRST_NS: i64 = 100_000_000;

/// Amounts over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bins {
    width_ns: i64,
    /// The instant of the last amount.
    last_ns: Option<i64>,
    amounts: Vec<f64>,
}

impl Default for Bins {
    fn default() -> Self {
        Self { width_ns: FIRST_NS, last_ns: None, amounts: Vec::new() }
    }
}

impl Bins {
    /// Adds the amount since the last call evenly over that time: readings slightly before or after the end of a bin would
    /// otherwise put two readings into one bin and none into the next.
    pub(crate) fn add(&mut self, at_ns: i64, amount: f64) {
        self.reach(at_ns);
        let since_ns = self.last_ns.replace(at_ns).unwrap_or(at_ns).max(0);
        let (first, last) = (since_ns / self.width_ns, at_ns.max(0) / self.width_ns);
        if last as usize >= self.amounts.len() {
            self.amounts.resize(last as usize + 1, 0.0);
        }
        let length_ns = (at_ns - since_ns) as f64;
        for bin in first..=last {
            let within = (at_ns.min((bin + 1) * self.width_ns) - since_ns.max(bin * self.width_ns)) as f64;
            self.amounts[bin as usize] += if first == last { amount } else { amount * within / length_ns };
        }
    }

    /// The amounts in bins of the width for this total length, which comes first.
    pub(crate) fn over(mut self, end_ns: i64) -> (f64, Vec<f64>) {
        self.reach(end_ns);
        let bins = (end_ns.max(0) / self.width_ns) as usize + 1;
        self.amounts.resize(bins, 0.0);
        (self.width_ns as f64 / 1e9, self.amounts)
    }

    /// Widens the bins until they cover an instant.
    fn reach(&mut self, at_ns: i64) {
        while at_ns / self.width_ns >= MOST_BINS as i64 {
            self.width_ns *= 2;
            self.amounts = self.amounts.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_spread_over_the_time_since_the_last() {
        let mut bins = Bins::default();
        for at_ms in [0, 150, 300, 310, 400] {
            bins.add(at_ms * 1_000_000, 0.75);
        }
        let (_, amounts) = bins.over(400_000_000);
        let expected = [0.75 + 0.5, 0.25 + 0.25, 0.5, 0.75 + 0.75, 0.0];
        assert!(
            amounts.iter().zip(expected).all(|(amount, expected)| (amount - expected).abs() < 1e-12),
            "{amounts:?}"
        );
    }

    #[test]
    fn nothing_is_lost_when_bins_become_one_and_all_end_together() {
        let (mut early, mut late) = (Bins::default(), Bins::default());
        for at_s in 0..1000 {
            early.add(at_s * 1_000_000_000 / 100, 1.0);
            late.add(at_s * 1_000_000_000, 2.0);
        }
        let end_ns = 999_000_000_000;
        let ((early_s, early), (late_s, late)) = (early.over(end_ns), late.over(end_ns));
        assert_eq!((early_s, early.len()), (late_s, late.len()));
        assert!(early.len() <= MOST_BINS && early_s * early.len() as f64 >= 999.0);
        let sums = (early.iter().sum::<f64>(), late.iter().sum::<f64>());
        assert!((sums.0 - 1000.0).abs() < 1e-6 && (sums.1 - 2000.0).abs() < 1e-6, "{sums:?}");
    }
}
