//! `.hgrm`: the text of a histogram by percentile that HdrHistogram's plotters read, in milliseconds.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::hlog::MOST_NS;

/// Steps from one halving of the remaining share to the next, as in HdrHistogram's own tools.
const STEPS_PER_HALF: u32 = 5;
/// Nanoseconds in the unit of the text.
const PER_MS: f64 = 1e6;
/// The number of slots in the first bucket of a histogram of three digits.
const SUB_BUCKETS: u64 = 2048;

/// The distribution of times in nanoseconds, to three digits, in the form of HdrHistogram's `outputPercentileDistribution`: a
/// line for each percentile with the number of times up to it, then mean, standard deviation and maximum as comments.
pub fn hgrm(times_ns: impl IntoIterator<Item = i64>) -> String {
    let mut histogram: Histogram<u64> = Histogram::new(3).expect("three digits are allowed");
    for time_ns in times_ns {
        histogram.record(time_ns.clamp(0, MOST_NS) as u64).expect("a histogram that grows takes every value");
    }
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        text.write_fmt(arguments).expect("writing to a string never fails");
        text.push('\n');
    };
    let mut count = 0;
    for step in histogram.iter_quantiles(STEPS_PER_HALF) {
        count += step.count_since_last_iteration();
        let (value_ms, share) = (step.value_iterated_to() as f64 / PER_MS, step.quantile_iterated_to());
        if share < 1.0 {
            line(format_args!("{value_ms:12.3} {share:2.12} {count:10} {:14.2}", 1.0 / (1.0 - share)));
        } else {
            line(format_args!("{value_ms:12.3} {share:2.12} {count:10}"));
        }
    }
    let (mean_ms, deviation_ms) = (histogram.mean() / PER_MS, histogram.stdev() / PER_MS);
    let buckets = 1 + (histogram.max() / SUB_BUCKETS).checked_ilog2().map_or(0, |doublings| doublings + 1);
    line(format_args!("#[Mean    = {mean_ms:12.3}, StdDeviation   = {deviation_ms:12.3}]"));
    line(format_args!(
        "#[Max     = {:12.3}, Total count    = {:12}]",
        histogram.max() as f64 / PER_MS,
        histogram.len()
    ));
    line(format_args!("#[Buckets = {buckets:12}, SubBuckets     = {SUB_BUCKETS:12}]"));
    text
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_line_tells_how_many_were_no_longer(times_ns in vec(0i64..1 << 40, 1..400)) {
            let text = hgrm(times_ns.iter().copied());
            let lines = text.lines().skip(2).take_while(|line| !line.starts_with('#'));
            let mut before = (0.0, 0);
            for line in lines {
                let cells: Vec<&str> = line.split_whitespace().collect();
                let (value_ms, share, count): (f64, f64, usize) =
                    (cells[0].parse().unwrap(), cells[1].parse().unwrap(), cells[2].parse().unwrap());
                // The value is the upper end of its slot; three digits of it are exact.
                let value_ns = value_ms * 1e6 + 500.0;
                prop_assert!(times_ns.iter().filter(|time_ns| **time_ns as f64 <= value_ns).count() >= count);
                prop_assert!(count as f64 >= share * times_ns.len() as f64 - 1e-6, "{}", line);
                prop_assert!(share >= before.0 && count >= before.1);
                prop_assert_eq!(cells.len() == 4, share < 1.0);
                before = (share, count);
            }
            prop_assert_eq!(before, (1.0, times_ns.len()));
        }
    }

    #[test]
    fn nothing_at_all_is_a_text_too() {
        assert!(hgrm([]).contains("Total count    =            0"));
    }
}
