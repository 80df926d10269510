//! Compares the settings of a link with its measurement.

use kendall_linkmodel::{Law, Loss, Rate, Settings};
use serde::{Deserialize, Serialize};

use crate::lateness::Lateness;
use crate::lateness::LatenessSummary;

/// A direction across a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

/// A property of a link that is set and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The delay of a packet in s, without the time to send its bits. It is the median, which is not moved by a moment in which
    /// the machine was busy; or the mean, where the law of the jitter is skewed.
    Delay,
    /// The standard deviation of the delay, in s.
    Jitter,
    /// The rate, in bits/s.
    Rate,
    /// The share of packets that do not arrive whole: lost, or with a wrong bit, which the receiver's kernel drops.
    Loss,
}

/// A measured value, with an interval that covers the truth in 95 of 100 measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The estimate.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// One property of one direction, as set and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The direction.
    pub side: Side,
    /// The property, which determines the unit of the numbers.
    pub quantity: Quantity,
    /// The set value; `None` where the property is not set, as for an unlimited rate.
    pub asked: Option<f64>,
    /// The measured value; `None` where it could not be measured, see `note`.
    pub measured: Option<Measured>,
    /// A remark on the measurement, if there is one.
    pub note: Option<Note>,
}

/// A remark on a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The rate changes over time, so a short measurement cannot determine it.
    Changes,
    /// No packet came back.
    NothingArrived,
    /// The ends could not send faster, so the rate is at least this.
    AtLeast,
}

/// The settings and the measurement of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The results for each property of each direction.
    pub rows: Vec<Judged>,
    /// How much longer single pings took than set, for both directions together: the delay that emulator and measurement add.
    /// `None` where no ping came back.
    pub excess: Option<LatenessSummary>,
    /// How long the measurement took, in ns.
    pub took_ns: i64,
}

impl Judged {
    /// Whether the measurement agrees with the setting: the setting lies in the interval, or close enough to it. Close enough is
    /// 1 % of a rate; for a delay it is 1 % or 200 µs, the time that a machine takes to pass a packet between programs twice.
    /// `None` where there is nothing to compare.
    pub fn holds(&self) -> Option<bool> {
        let (asked, measured) = (self.asked?, self.measured?);
        if self.note == Some(Note::AtLeast) {
            return Some(true);
        }
        let near = match self.quantity {
            Quantity::Delay => (0.01 * asked).max(200e-6),
            Quantity::Jitter => (0.05 * asked).max(200e-6),
            Quantity::Rate => 0.01 * asked,
            Quantity::Loss => 0.0,
        };
        Some((measured.low..=measured.high).contains(&asked) || (measured.value - asked).abs() <= near)
    }
}

impl Calibration {
    /// Whether every measured property agrees with its setting.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds() != Some(false))
    }
}

/// The expected properties of a direction: its hops in a row as if they were one.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) delay_s: f64,
    pub(crate) jitter_s: f64,
    /// Whether the median of the delays differs from their mean.
    pub(crate) lopsided: bool,
    /// The mean rate of the slowest hop, and whether it is constant.
    pub(crate) rate_bits_per_s: Option<f64>,
    pub(crate) steady: bool,
    pub(crate) loss: f64,
    /// The variance of a share of lost packets, divided by that of independent losses.
    pub(crate) clumping: f64,
    /// The time to send each byte over all hops, in s.
    pub(crate) byte_s: f64,
    overhead_s: f64,
}

impl Target {
    pub(crate) fn of(hops: &[Settings]) -> Self {
        let rates = || hops.iter().filter_map(|hop| hop.rate.mean_bits_per_s());
        let variance = hops.iter().map(|hop| hop.jitter.deviation_ns().powi(2)).sum::<f64>();
        let kept = hops.iter().map(|hop| (1.0 - hop.loss.share()) * (1.0 - hop.corruption)).product::<f64>();
        let overheads = hops.iter().filter_map(|hop| {
            hop.rate.mean_bits_per_s().map(|rate| f64::from(hop.overhead_bytes) * 8.0 / rate)
        });
        Self {
            delay_s: hops.iter().map(|hop| hop.delay_ns as f64).sum::<f64>() / 1e9,
            jitter_s: variance.sqrt() / 1e9,
            lopsided: hops.iter().any(|hop| hop.jitter.law == Law::ParetoNormal),
            rate_bits_per_s: rates().min_by(f64::total_cmp),
            steady: !hops.iter().any(|hop| matches!(hop.rate, Rate::Trace(_))),
            loss: 1.0 - kept,
            clumping: hops.iter().map(|hop| Loss::clumping(&hop.loss)).fold(1.0, f64::max),
            byte_s: rates().map(|rate| 8.0 / rate).sum(),
            overhead_s: overheads.sum(),
        }
    }

    /// The time to send the bits of one packet over all hops, in s.
    pub(crate) fn sending_s(&self, link_bytes: f64) -> f64 {
        link_bytes * self.byte_s + self.overhead_s
    }

    /// The rate that datagrams of this size get from the slowest hop after its overhead, in bits/s.
    pub(crate) fn payable(&self, hops: &[Settings], link_bytes: f64) -> Option<f64> {
        hops.iter()
            .filter_map(|hop| {
                let rate = hop.rate.mean_bits_per_s()?;
                Some(rate * link_bytes / (link_bytes + f64::from(hop.overhead_bytes)))
            })
            .min_by(f64::total_cmp)
    }
}

/// The mean and the standard deviation of independent values, with their intervals.
pub(crate) fn moments(values: &[f64]) -> Option<(Measured, Measured)> {
    let count = values.len() as f64;
    if values.len() < 3 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    let variance = squares.iter().sum::<f64>() / (count - 1.0);
    let deviation = variance.sqrt();
    // Normal quantiles are accurate enough for the 50 pings of a measurement. The error of the deviation follows from the fourth
    // moment.
    let fourth = squares.iter().map(|square| square * square).sum::<f64>() / count;
    let error = 1.96 * deviation / count.sqrt();
    let of_variance = 1.96 * ((fourth - variance * variance).max(0.0) / count).sqrt();
    let around = |value: f64, low: f64, high: f64| Measured { value, low, high };
    Some((
        around(mean, mean - error, mean + error),
        around(deviation, (variance - of_variance).max(0.0).sqrt(), (variance + of_variance).sqrt()),
    ))
}

/// The median, with the interval between the order statistics that leave 2.5 % on either side; their ranks are binomial.
pub(crate) fn median(values: &[f64]) -> Option<Measured> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let low = (0.5 * (count - 1.0) - 0.98 * count.sqrt()).floor().max(0.0) as usize;
    let high = sorted.len().checked_sub(1 + low)?;
    Some(Measured { value: *sorted.get(sorted.len() / 2)?, low: sorted[low], high: sorted[high] })
}

/// A share of this many, with Wilson's interval (1927), widened by the ratio of its variance to that of independent draws.
pub(crate) fn share(met: u32, of: u32, clumping: f64) -> Option<Measured> {
    if of == 0 {
        return None;
    }
    let value = f64::from(met) / f64::from(of);
    let (count, z2) = (f64::from(of) / clumping, 1.96 * 1.96);
    let centre = (value + z2 / (2.0 * count)) / (1.0 + z2 / count);
    let half =
        (z2 * (value * (1.0 - value) / count + z2 / (4.0 * count * count))).sqrt() / (1.0 + z2 / count);
    Some(Measured { value, low: (centre - half).max(0.0), high: (centre + half).min(1.0) })
}

/// The delay of each packet beyond the set one, as a histogram.
pub(crate) fn excess<'a>(ways: impl Iterator<Item = (&'a [f64], f64)>) -> Option<LatenessSummary> {
    let mut excess = Lateness::default();
    for (times_s, asked_s) in ways {
        times_s.iter().for_each(|time_s| excess.record(0, ((time_s - asked_s) * 1e9) as i64, 1));
    }
    excess.summary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lies_in_its_interval_and_a_clumped_one_in_a_wider() {
        let none = share(0, 1000, 1.0).unwrap();
        assert!(none.low == 0.0 && (0.003..0.004).contains(&none.high), "{none:?}");
        let (plain, clumped) = (share(10, 1000, 1.0).unwrap(), share(10, 1000, 9.0).unwrap());
        assert!(
            clumped.low < plain.low && plain.low < 0.01 && 0.01 < plain.high && plain.high < clumped.high
        );
    }

    #[test]
    fn a_median_lies_between_values_of_its_own() {
        let values: Vec<f64> = (1..=49).map(f64::from).collect();
        // The 18th to the 32nd value cover the median of 49 with 95.6 %, by the binomial law.
        assert_eq!(median(&values), Some(Measured { value: 25.0, low: 18.0, high: 32.0 }));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[2.0]), Some(Measured { value: 2.0, low: 2.0, high: 2.0 }));
    }

    #[test]
    fn what_is_near_enough_holds_and_what_is_not_does_not() {
        let row = |quantity, asked, value: f64, half: f64| Judged {
            side: Side::Up,
            quantity,
            asked: Some(asked),
            measured: Some(Measured { value, low: value - half, high: value + half }),
            note: None,
        };
        assert_eq!(row(Quantity::Delay, 0.02, 0.0201, 1e-6).holds(), Some(true));
        assert_eq!(row(Quantity::Delay, 0.02, 0.021, 1e-6).holds(), Some(false));
        assert_eq!(row(Quantity::Rate, 1e7, 9.8e6, 1e3).holds(), Some(false));
        assert_eq!(row(Quantity::Loss, 0.01, 0.02, 0.015).holds(), Some(true));
        assert_eq!(row(Quantity::Loss, 0.01, 0.04, 0.015).holds(), Some(false));
    }

    #[test]
    fn hops_in_a_row_are_asked_for_as_one() {
        let hops =
            ["delay=5ms jitter=3ms normal rate=10mbit loss=10%", "delay=7ms jitter=4ms normal loss=10%"]
                .map(|hop| hop.parse().unwrap());
        let target = Target::of(&hops);
        assert!((target.delay_s - 0.012).abs() < 1e-12 && (target.jitter_s - 0.005).abs() < 1e-12);
        assert!((target.loss - 0.19).abs() < 1e-12 && target.rate_bits_per_s == Some(1e7));
    }

    #[test]
    fn damaged_packets_count_as_lost() {
        let target = Target::of(&["corrupt=10% loss=10%".parse().unwrap()]);
        assert!((target.loss - 0.19).abs() < 1e-12, "{}", target.loss);
    }
}
