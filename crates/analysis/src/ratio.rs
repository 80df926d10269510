//! Ratios of measured numbers, and their order.

use kendall_experiment::Measure;
use kendall_station::Estimate;
use kendall_stats::student_t;

use crate::report::Report;
use crate::report::point::Point;
use kendall_stats::number::{NONE, significant};

/// Two numbers this near to each other are called alike.
pub const ALIKE: f64 = 0.05;

/// The ratio of two independent numbers. Its interval is that of the difference of their logarithms (delta method), and absent
/// unless both numbers have an interval.
pub fn ratio(of: Estimate, to: Estimate) -> Estimate {
    let value = of.value / to.value;
    let relative = |estimate: Estimate| {
        Some(estimate.half_width() / estimate.value).filter(|_| estimate.interval.is_some())
    };
    let interval = relative(of).zip(relative(to)).map(|(of, to)| {
        let width = of.hypot(to).exp();
        (value / width, value * width)
    });
    Estimate { value, interval }
}

/// The ratio of the measurements at two points: of pairs of trials with the same requests, where all trials have a pair;
/// otherwise of independent numbers.
pub fn measured_ratio(report: &Report, measure: &Measure, of: &Point, to: &Point) -> Option<Estimate> {
    let value = |point: &Point| point.measured_of(measure);
    paired(&pairs(report, measure, of, to)).or_else(|| Some(ratio(value(of)?, value(to)?)))
}

/// The values of the trials of two points that were asked the same; none where some trial has no partner.
fn pairs(report: &Report, measure: &Measure, of: &Point, to: &Point) -> Vec<(f64, f64)> {
    let trials = |wanted: &Point| {
        let at = report.points.iter().position(|point| std::ptr::eq(point, wanted));
        let own = at.into_iter().flat_map(|at| report.trials_of(at));
        own.map(|trial| (trial.seed, trial.measured_of(measure))).collect::<Vec<_>>()
    };
    let (of, to) = (trials(of), trials(to));
    let partner = |&(seed, value): &(u64, Option<f64>)| {
        let (_, other) = to.iter().find(|(other, _)| *other == seed)?;
        value.zip(*other)
    };
    let pairs = of.iter().map(partner).collect::<Option<Vec<_>>>().unwrap_or_default();
    if pairs.len() == to.len() { pairs } else { Vec::new() }
}

/// The ratio of the means of paired values, its interval by Student's t over the pairs (Cochran 1977, chapter 6). What
/// both of a pair have in common, such as hard requests, does not widen it.
fn paired(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let n = pairs.len() as f64;
    if pairs.len() < 2 {
        return None;
    }
    let of: f64 = pairs.iter().map(|pair| pair.0).sum();
    let to: f64 = pairs.iter().map(|pair| pair.1).sum();
    let value = of / to;
    let squares: f64 = pairs.iter().map(|pair| (pair.0 - value * pair.1).powi(2)).sum();
    let half_width = student_t(n - 1.0, 0.975) * (squares / (n * (n - 1.0))).sqrt() / (to / n);
    let width = (half_width / value).exp();
    Some(Estimate { value, interval: Some((value / width, value * width)) })
}

/// A ratio with its interval: "0.76 [0.70, 0.83]".
pub fn ratio_cell(ratio: Option<Estimate>) -> String {
    let two = |value: f64| significant(value, if (0.1..10.0).contains(&value) { 3 } else { 2 });
    match ratio {
        Some(Estimate { value, interval: Some((low, high)) }) => {
            format!("{} [{}, {}]", two(value), two(low), two(high))
        }
        Some(Estimate { value, interval: None }) => two(value),
        None => NONE.to_owned(),
    }
}

/// Whether a measured ratio has the claimed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The measured ratio has the claimed order.
    Same,
    /// The measured ratio does not have the claimed order.
    Other,
    /// The interval is too wide to decide.
    CannotTell,
}

/// Compares a claimed ratio with a measured one as to which is larger. What is claimed to differ by less than 5 % is
/// claimed to be alike.
pub fn order(claimed: f64, measured: Estimate) -> Order {
    let Some((low, high)) = measured.interval else { return Order::CannotTell };
    let alike = low >= 1.0 - 2.0 * ALIKE && high <= 1.0 + 2.0 * ALIKE;
    let (less, more) = (high < 1.0, low > 1.0);
    if (claimed - 1.0).abs() <= ALIKE {
        let apart = high < 1.0 - ALIKE || low > 1.0 + ALIKE;
        return if apart {
            Order::Other
        } else if alike {
            Order::Same
        } else {
            Order::CannotTell
        };
    }
    if (claimed < 1.0 && less) || (claimed > 1.0 && more) {
        Order::Same
    } else if less || more || alike {
        Order::Other
    } else {
        Order::CannotTell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(low: f64, high: f64) -> Estimate {
        Estimate { value: (low + high) / 2.0, interval: Some((low, high)) }
    }

    #[test]
    fn a_ratio_is_as_uncertain_as_both_of_its_parts() {
        let found = ratio(Estimate::within(30.0, 0.9), Estimate::within(10.0, 0.4));
        let (low, high) = found.interval.unwrap();
        // 3 % and 4 % make 5 %.
        assert!((found.value - 3.0).abs() < 1e-12);
        assert!((low - 3.0 * (-0.05f64).exp()).abs() < 1e-12 && (high - 3.0 * 0.05f64.exp()).abs() < 1e-12);
        assert_eq!(ratio(Estimate::exact(1.0), Estimate::within(2.0, 0.1)).interval, None);
        assert_eq!(ratio_cell(Some(found)), "3.00 [2.85, 3.15]");
    }

    #[test]
    fn what_pairs_have_in_common_does_not_widen_their_ratio() {
        let hard_and_easy = [(20.0, 10.0), (60.0, 30.0), (200.0, 100.0)];
        let found = paired(&hard_and_easy).unwrap();
        assert!((found.value - 2.0).abs() < 1e-12 && found.half_width() < 1e-9);
        // Residuals 1 and −1 about a mean of 10, t(1; 0.975) = 12.706: ±1.2706 of 2, which is 63.5 %.
        let (low, high) = paired(&[(21.0, 10.0), (19.0, 10.0)]).unwrap().interval.unwrap();
        assert!((high - 2.0 * 0.6353f64.exp()).abs() < 1e-3 && (low * high - 4.0).abs() < 1e-9);
        assert_eq!(paired(&[(1.0, 2.0)]), None);
    }

    #[test]
    fn an_order_is_told_where_the_interval_tells_it() {
        let cases = [
            (0.5, measured(0.4, 0.9), Order::Same),
            (0.5, measured(0.4, 1.1), Order::CannotTell),
            (0.5, measured(1.2, 1.4), Order::Other),
            (1.4, measured(1.2, 1.4), Order::Same),
            // It is claimed that one is less, and here they are alike.
            (0.5, measured(0.98, 1.03), Order::Other),
            (1.01, measured(0.98, 1.03), Order::Same),
            (1.01, measured(0.5, 1.5), Order::CannotTell),
            (1.01, measured(1.2, 1.5), Order::Other),
            (0.5, Estimate::exact(0.5), Order::CannotTell),
        ];
        for (claimed, measured, expected) in cases {
            assert_eq!(order(claimed, measured), expected, "{claimed} {measured:?}");
        }
    }
}
