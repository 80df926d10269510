//! The shift of Hodges and Lehmann (1963): medians over all pairs of values.
//!
//! A list of all pairs of 10,000 values has 10⁸ numbers. So each median is found by halving the range of floating-point numbers and
//! counting the pairs up to the middle, which takes one pass over the sorted values. The result is exactly the median of the list.

/// The median of all differences of a value of `second` and one of `first`; NaN if a side is empty.
pub fn median_of_differences(first: &[f64], second: &[f64]) -> f64 {
    let (first, second) = (sorted(first), sorted(second));
    let ends = |values: &[f64]| Some((*values.first()?, *values.last()?));
    let (Some(of_first), Some(of_second)) = (ends(&first), ends(&second)) else { return f64::NAN };
    let up_to = |most: f64| {
        let (mut count, mut from) = (0, 0);
        for b in &second {
            from += first[from..].iter().take_while(|a| b - *a > most).count();
            count += (first.len() - from) as u64;
        }
        count
    };
    let pairs = first.len() as u64 * second.len() as u64;
    median_by_counts(pairs, (of_second.0 - of_first.1, of_second.1 - of_first.0), up_to)
}

/// The median of the Walsh averages, which are the means of all pairs of values, each value with itself included; NaN without values.
pub fn median_of_walsh_averages(values: &[f64]) -> f64 {
    let values = sorted(values);
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return f64::NAN };
    let up_to = |most: f64| {
        let (mut count, mut to) = (0, values.len());
        for (from, a) in values.iter().enumerate() {
            let beyond = values[..to].iter().rev().take_while(|b| f64::midpoint(*a, **b) > most);
            to -= beyond.count();
            count += to.saturating_sub(from) as u64;
        }
        count
    };
    let n = values.len() as u64;
    median_by_counts(n * (n + 1) / 2, (low, high), up_to)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of `n` values between two, of which `up_to` counts those up to a number.
fn median_by_counts(n: u64, range: (f64, f64), up_to: impl Fn(f64) -> u64) -> f64 {
    let at_rank = |rank: u64| {
        let (mut low, mut high) = (place(range.0), place(range.1));
        while low < high {
            let middle = low + (high - low) / 2;
            if up_to(number(middle)) >= rank { high = middle } else { low = middle + 1 }
        }
        // No negative zero.
        number(low) + 0.0
    };
    let upper = at_rank(n / 2 + 1);
    if n % 2 == 1 { upper } else { f64::midpoint(at_rank(n / 2), upper) }
}

/// The place of a number among all floating-point numbers in ascending order.
fn place(number: f64) -> u64 {
    let bits = number.to_bits();
    if number.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

fn number(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Law;
    use crate::median;
    use crate::random::{Purpose, stream};

    #[test]
    fn the_medians_are_those_of_the_lists_of_all_pairs() {
        let mut rng = stream(4, Purpose::Trial, 0);
        for run in 0..60 {
            // Every other sample has few different values, so that there are ties.
            let mut value = || {
                let value = Law::Uniform { low_s: -4.0, high_s: 9.0 }.sample(&mut rng);
                if run % 2 == 0 { value } else { value.round() }
            };
            let first: Vec<f64> = (0..1 + run % 7).map(|_| value()).collect();
            let second: Vec<f64> = (0..1 + run % 9).map(|_| value() + 1.0).collect();
            let differences: Vec<f64> =
                second.iter().flat_map(|b| first.iter().map(move |a| b - a)).collect();
            assert_eq!(median_of_differences(&first, &second), median(&differences), "{first:?} {second:?}");
            let averages: Vec<f64> = (0..second.len())
                .flat_map(|i| second[i..].iter().map(move |b| (i, b)))
                .map(|(i, b)| f64::midpoint(second[i], *b))
                .collect();
            assert_eq!(median_of_walsh_averages(&second), median(&averages), "{second:?}");
        }
        assert!(median_of_differences(&[], &[1.0]).is_nan() && median_of_walsh_averages(&[]).is_nan());
    }

    /// A list of these pairs would need 80 GB.
    #[test]
    fn a_hundred_thousand_runs_need_no_list_of_pairs() {
        let first: Vec<f64> = (0..100_000).map(f64::from).collect();
        let second: Vec<f64> = first.iter().map(|value| value + 0.5).collect();
        assert_eq!(median_of_differences(&first, &second), 0.5);
        assert_eq!(median_of_walsh_averages(&first), 49_999.5);
    }
}
