//! Ratios of measured numbers, and what can be told from them.

use kendall_station::Estimate;

use crate::number::{NONE, significant};

/// Two numbers this near to each other are called alike.
const ALIKE: f64 = 0.05;

/// One number relative to another, the two being independent. The interval is that of the difference of their
/// logarithms (delta method); without an interval of either there is none.
pub(crate) fn ratio(of: Estimate, to: Estimate) -> Estimate {
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

/// A ratio with its interval: "0.76 [0.70, 0.83]".
pub(crate) fn ratio_cell(ratio: Option<Estimate>) -> String {
    let two = |value: f64| significant(value, if (0.1..10.0).contains(&value) { 3 } else { 2 });
    match ratio {
        Some(Estimate { value, interval: Some((low, high)) }) => {
            format!("{} [{}, {}]", two(value), two(low), two(high))
        }
        Some(Estimate { value, interval: None }) => two(value),
        None => NONE.to_owned(),
    }
}

/// Whether two things stand to each other as somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// They do.
    Same,
    /// They do not.
    Other,
    /// The interval is too wide to tell.
    CannotTell,
}

/// Compares a claimed ratio with a measured one as to which is larger. What is claimed to differ by less than 5 % is
/// claimed to be alike.
pub(crate) fn order(claimed: f64, measured: Estimate) -> Order {
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
        for (claimed, measured, told) in cases {
            assert_eq!(order(claimed, measured), told, "{claimed} {measured:?}");
        }
    }
}
