//! Expectations of a system, such as "p99<50ms" or "errors<1%", and whether the measurement meets them.
//!
//! An expectation is judged by the interval of the estimate and not by the estimate itself: it is met where the whole
//! interval lies on the right side of the limit, failed where the whole lies on the wrong one, and undecided between.
//!
//! ```
//! use kendall_evidence::expect::{Expectation, Figure, ExpectationVerdict};
//! use kendall_station::Estimate;
//!
//! let expected: Expectation = "p99<50ms".parse().unwrap();
//! let seen = Figure::Known(Estimate { value: 0.041, interval: Some((0.039, 0.044)) });
//! assert_eq!(expected.judge(seen).verdict, ExpectationVerdict::Met);
//! ```

use std::fmt;
use std::str::FromStr;

use kendall_station::{Estimate, Summary};
use serde::{Deserialize, Serialize};

use kendall_stats::number::{TimeUnit, significant, time_with_interval};
use kendall_stats::{minimum_samples, quantity};

/// A measure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The mean response time, in seconds.
    Mean,
    /// The quantile of the response time with this share, in seconds.
    Quantile(f64),
    /// Completed requests per second.
    Throughput,
    /// The share of requests without a right answer.
    Errors,
}

/// The side of its limit on which a measure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// At most the limit.
    Below,
    /// At least the limit.
    Above,
}

/// An expectation: a measure on one side of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// The measure.
    pub measure: Measure,
    /// On which side.
    pub side: Side,
    /// The limit, in the unit of the measure.
    pub limit: f64,
}

/// The reason why an expectation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid expectation; write mean, p50 to p99.99, throughput (or rate) or errors, then < or >, then a limit, such as \
     'p99<50ms', 'errors<1%' or 'throughput>990/s'"
)]
pub struct ExpectationError(String);

/// The measured value of a measure.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// An estimate; without its interval it decides nothing.
    Known(Estimate),
    /// The value is at least this: some requests were given up before they were answered.
    AtLeast(f64),
    /// No estimate.
    Unknown {
        /// The reason, in words.
        why: String,
        /// The least possible value, by the interval of a lower quantile.
        least: Option<f64>,
    },
}

/// Whether an expectation is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationVerdict {
    /// The whole interval is on the right side.
    Met,
    /// The whole interval is on the wrong side.
    Failed,
    /// The limit lies within the interval, or there is no interval.
    Undecided,
}

/// An expectation with its measurement and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The expectation.
    pub expected: Expectation,
    /// The verdict on the expectation.
    pub verdict: ExpectationVerdict,
    /// The measured value: times in seconds, rates per second, errors as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Estimate>,
    /// Whether the measured value is only a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The reason why the expectation cannot be decided, unless that is the width of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The values of all measures from the rows of trials: from an [`Answer`](kendall_station::Answer), a
/// [`ClientSide`](crate::ClientSide), or any other type that has them.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredValues<'a> {
    /// The response times.
    pub response: &'a Summary,
    /// Completed requests per second.
    pub throughput_per_s: Estimate,
    /// The share of requests without a right answer; [`share_interval`](kendall_stats::share_interval) has its interval
    /// for independent requests.
    pub errors: Estimate,
    /// The requests that were due and not rejected, over all trials.
    pub requests: u64,
}

impl MeasuredValues<'_> {
    /// The measured value of a measure. A quantile without enough answers is at least as long as the longest known one.
    pub fn figure(&self, measure: Measure) -> Figure {
        match measure {
            Measure::Mean => Figure::Known(self.response.mean_s),
            Measure::Throughput => Figure::Known(self.throughput_per_s),
            Measure::Errors => Figure::Known(self.errors),
            Measure::Quantile(p) => self.quantile(p),
        }
    }

    fn quantile(&self, p: f64) -> Figure {
        if let Some(known) = self.response.quantile(p) {
            return Figure::Known(known);
        }
        let needed = minimum_samples(p);
        if self.requests < needed {
            let why = format!("it needs {needed} requests, and the run had {}", self.requests);
            let lower = self.response.quantiles.iter().filter(|quantile| quantile.p < p);
            let least = lower.filter_map(|quantile| Some(quantile.value_s.interval?.0)).reduce(f64::max);
            return Figure::Unknown { why, least };
        }
        let shorter = self.response.quantiles.iter().rfind(|quantile| quantile.p < p);
        match shorter {
            // The quantiles between would be there if there were answers enough.
            Some(shorter) => Figure::AtLeast(shorter.value_s.value),
            None => Figure::Unknown { why: "too many requests had no answer".into(), least: None },
        }
    }
}

impl Expectation {
    /// Judges a measured value.
    pub fn judge(&self, figure: Figure) -> Judged {
        let judged = |verdict, seen, at_least, why| Judged { expected: *self, verdict, seen, at_least, why };
        match figure {
            Figure::Known(seen) => match seen.interval {
                Some(interval) => judged(self.by_interval(interval), Some(seen), false, None),
                None => {
                    let why = "there is no interval to judge by".to_owned();
                    judged(ExpectationVerdict::Undecided, Some(seen), false, Some(why))
                }
            },
            Figure::AtLeast(least) => {
                let seen = Estimate::exact(least);
                judged(self.by_interval((least, f64::INFINITY)), Some(seen), true, None)
            }
            // A handful of requests that all last too long refutes a high quantile.
            Figure::Unknown { least: Some(least), .. } if self.side == Side::Below && least > self.limit => {
                judged(ExpectationVerdict::Failed, Some(Estimate::exact(least)), true, None)
            }
            Figure::Unknown { why, .. } => judged(ExpectationVerdict::Undecided, None, false, Some(why)),
        }
    }

    fn by_interval(&self, (low, high): (f64, f64)) -> ExpectationVerdict {
        let (right, wrong) = match self.side {
            Side::Below => (high <= self.limit, low > self.limit),
            Side::Above => (low >= self.limit, high < self.limit),
        };
        match (right, wrong) {
            (true, _) => ExpectationVerdict::Met,
            (_, true) => ExpectationVerdict::Failed,
            _ => ExpectationVerdict::Undecided,
        }
    }

    /// The worst of several verdicts: failed before undecided before met. Met where nothing is expected.
    pub fn overall<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> ExpectationVerdict {
        judged.into_iter().fold(ExpectationVerdict::Met, |worst, one| match (worst, one.verdict) {
            (ExpectationVerdict::Failed, _) | (_, ExpectationVerdict::Failed) => ExpectationVerdict::Failed,
            (ExpectationVerdict::Undecided, _) | (_, ExpectationVerdict::Undecided) => {
                ExpectationVerdict::Undecided
            }
            _ => ExpectationVerdict::Met,
        })
    }
}

impl FromStr for Expectation {
    type Err = ExpectationError;

    fn from_str(text: &str) -> Result<Self, ExpectationError> {
        let read = || {
            let at = text.find(['<', '>'])?;
            let (measure, rest) = text.split_at(at);
            let side = if rest.starts_with('<') { Side::Below } else { Side::Above };
            let limit = rest[1..].strip_prefix('=').unwrap_or_else(|| &rest[1..]).trim();
            let measure: Measure = measure.trim().parse().ok()?;
            Some(Self { measure, side, limit: measure.limit(limit)? })
        };
        read().ok_or_else(|| ExpectationError(text.to_owned()))
    }
}

impl FromStr for Measure {
    type Err = ExpectationError;

    fn from_str(name: &str) -> Result<Self, ExpectationError> {
        let quantile = || crate::table::share(name.strip_prefix('p')?).map(Self::Quantile);
        match name {
            "mean" => Some(Self::Mean),
            "throughput" | "rate" => Some(Self::Throughput),
            "errors" => Some(Self::Errors),
            _ => quantile(),
        }
        .ok_or_else(|| ExpectationError(name.to_owned()))
    }
}

impl Measure {
    /// Reads a limit in one of the units that this can have.
    fn limit(self, text: &str) -> Option<f64> {
        let (units, least, most): (&[(&str, f64)], f64, f64) = match self {
            Self::Mean | Self::Quantile(_) => (
                &[
                    ("ms", 1e-3),
                    ("us", 1e-6),
                    ("µs", 1e-6),
                    ("ns", 1e-9),
                    ("s", 1.0),
                    ("min", 60.0),
                    ("h", 3600.0),
                    ("d", 86_400.0),
                ],
                // Response times are recorded in nanoseconds.
                1e-9,
                f64::MAX,
            ),
            Self::Throughput => return quantity::rate_per_s(text),
            Self::Errors => (&[("%", 1e-2), ("", 1.0)], 0.0, 1.0),
        };
        let (number, scale) =
            units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
        let limit = number.trim().parse::<f64>().ok()? * scale;
        (least..=most).contains(&limit).then_some(limit)
    }

    /// A value of it with its unit, and its interval where there is one.
    fn shown(self, value: f64, interval: Option<(f64, f64)>) -> String {
        let with = |one: &dyn Fn(f64) -> String, unit: &str| match interval {
            Some((low, high)) => format!("{}{unit} [{}, {}]", one(value), one(low), one(high)),
            None => format!("{}{unit}", one(value)),
        };
        match self {
            Self::Mean | Self::Quantile(_) => time_with_interval(value, interval),
            Self::Throughput => with(&|value| significant(value, 4), "/s"),
            Self::Errors => with(&|share| significant(share * 100.0, 2), " %"),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            // Rounded to six digits, so that 0.99 · 100 is written as 99.
            Self::Quantile(p) => write!(f, "p{}", (p * 1e8).round() / 1e6),
            Self::Throughput => f.write_str("throughput"),
            Self::Errors => f.write_str("errors"),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == Side::Below { '<' } else { '>' };
        write!(f, "{} {side} {}", self.measure, short(self.measure, self.limit))
    }
}

/// A limit as one writes it: without digits that say nothing.
fn short(measure: Measure, limit: f64) -> String {
    let plain = |value: f64| {
        let (exact, rounded) = (value.to_string(), format!("{value:.9}"));
        let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
        if rounded.len() < exact.len() { rounded.to_owned() } else { exact }
    };
    match measure {
        Measure::Mean | Measure::Quantile(_) => {
            let unit = TimeUnit::for_s(limit * (1.0 + 1e-9));
            format!("{} {}", plain(limit * unit.per_s()), unit.symbol())
        }
        Measure::Throughput => format!("{}/s", plain(limit)),
        Measure::Errors => format!("{} %", plain(limit * 100.0)),
    }
}

/// In words: "p99 < 50 ms: met, 41.0 ms [39.0, 44.0]".
impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            ExpectationVerdict::Met => "met",
            ExpectationVerdict::Failed => "failed",
            ExpectationVerdict::Undecided => "undecided",
        };
        write!(f, "{}: {verdict}", self.expected)?;
        if let Some(seen) = self.seen {
            let at_least = if self.at_least { "at least " } else { "" };
            write!(f, ", {at_least}{}", self.expected.measure.shown(seen.value, seen.interval))?;
        }
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

/// The form in which users write it: "p99 < 50 ms".
impl Serialize for Expectation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use kendall_station::Quantile;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Expectation {
        text.parse().unwrap()
    }

    #[test]
    fn every_measure_is_read_with_its_units() {
        let cases = [
            ("p99<50ms", Measure::Quantile(0.99), Side::Below, 0.05),
            ("p999<1s", Measure::Quantile(0.999), Side::Below, 1.0),
            ("p99.9 <= 1.5 s", Measure::Quantile(0.999), Side::Below, 1.5),
            ("mean<200us", Measure::Mean, Side::Below, 200e-6),
            ("mean > 3µs", Measure::Mean, Side::Above, 3e-6),
            ("throughput>990/s", Measure::Throughput, Side::Above, 990.0),
            ("rate>=990", Measure::Throughput, Side::Above, 990.0),
            ("rate>2k", Measure::Throughput, Side::Above, 2000.0),
            ("rate > 600/min", Measure::Throughput, Side::Above, 10.0),
            ("errors<1%", Measure::Errors, Side::Below, 0.01),
            ("errors<0.001", Measure::Errors, Side::Below, 0.001),
            ("errors<0%", Measure::Errors, Side::Below, 0.0),
        ];
        for (text, measure, side, limit) in cases {
            let found = read(text);
            assert_eq!((found.measure, found.side), (measure, side), "{text}");
            assert!((found.limit - limit).abs() <= 1e-12 * limit, "{text}: {}", found.limit);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_an_example() {
        for text in [
            "",
            "p99",
            "p99=50ms",
            "p99<",
            "p99<50",
            "p99<-1ms",
            "p100<1s",
            "p101<1s",
            "p200<1s",
            "pfoo<1s",
            "mean<0ms",
            "errors<1ms",
            "rate>x",
        ] {
            let error = text.parse::<Expectation>().unwrap_err().to_string();
            assert!(error.contains("'p99<50ms'"), "{text}: {error}");
        }
    }

    proptest! {
        /// What is printed reads back as the same.
        #[test]
        fn it_reads_back_as_it_is_shown(limit in 1u32..1_000_000, kind in 0usize..4, above: bool) {
            let measure =
                [Measure::Mean, Measure::Quantile(0.999), Measure::Throughput, Measure::Errors][kind];
            let side = if above { Side::Above } else { Side::Below };
            let one = Expectation { measure, side, limit: f64::from(limit) * 1e-6 };
            let back = read(&one.to_string());
            prop_assert_eq!((back.measure, back.side), (measure, side));
            prop_assert!((back.limit / one.limit - 1.0).abs() < 1e-3, "{} {}", one, back.limit);
        }

        /// Never both met and failed by the opposite; and a point inside the interval is undecided.
        #[test]
        fn the_opposite_of_what_is_met_fails(low in 0.0f64..2.0, width in 0.0f64..2.0, limit in 0.001f64..4.0) {
            let figure = || Figure::Known(Estimate { value: low + width / 2.0, interval: Some((low, low + width)) });
            let judge = |side| Expectation { measure: Measure::Mean, side, limit }.judge(figure()).verdict;
            let opposite = match judge(Side::Below) {
                ExpectationVerdict::Met => ExpectationVerdict::Failed,
                ExpectationVerdict::Failed => ExpectationVerdict::Met,
                ExpectationVerdict::Undecided => ExpectationVerdict::Undecided,
            };
            prop_assert!(judge(Side::Above) == opposite || low == limit || low + width == limit);
        }
    }

    #[test]
    fn the_interval_decides() {
        let expected = read("p99<50ms");
        let of = |low: f64, high: f64| {
            let seen = Estimate { value: f64::midpoint(low, high), interval: Some((low, high)) };
            expected.judge(Figure::Known(seen)).verdict
        };
        assert_eq!(of(0.03, 0.05), ExpectationVerdict::Met);
        assert_eq!(of(0.03, 0.06), ExpectationVerdict::Undecided);
        assert_eq!(of(0.0501, 0.06), ExpectationVerdict::Failed);
        assert_eq!(expected.judge(Figure::AtLeast(0.06)).verdict, ExpectationVerdict::Failed);
        assert_eq!(expected.judge(Figure::AtLeast(0.04)).verdict, ExpectationVerdict::Undecided);
        assert_eq!(
            expected.judge(Figure::Known(Estimate::exact(0.01))).verdict,
            ExpectationVerdict::Undecided
        );
    }

    #[test]
    fn a_quantile_that_is_left_out_says_why() {
        let quantile = |p, value| Quantile { p, value_s: Estimate::within(value, 0.01 * value) };
        let response = Summary {
            mean_s: Estimate::within(0.01, 0.001),
            variance_s2: None,
            quantiles: vec![quantile(0.5, 0.01), quantile(0.9, 0.07)],
        };
        let seen = |requests| MeasuredValues {
            response: &response,
            throughput_per_s: Estimate::within(100.0, 1.0),
            errors: Estimate { value: 0.0, interval: Some((0.0, 0.004)) },
            requests,
        };
        let judged = |text: &str, requests| {
            let expected = read(text);
            expected.judge(seen(requests).figure(expected.measure))
        };
        assert_eq!(
            judged("p99<80ms", 100).to_string(),
            "p99 < 80 ms: undecided: it needs 299 requests, and the run had 100"
        );
        assert_eq!(
            judged("p99>50ms", 100).to_string(),
            "p99 > 50 ms: undecided: it needs 299 requests, and the run had 100"
        );
        // The p90 is longer already.
        assert_eq!(judged("p99<50ms", 100).to_string(), "p99 < 50 ms: failed, at least 69.3 ms");
        // Enough requests, and still no p99: those with the longest times had no answer.
        assert_eq!(judged("p99<50ms", 1000).to_string(), "p99 < 50 ms: failed, at least 70.0 ms");
        assert_eq!(judged("mean<50ms", 1000).to_string(), "mean < 50 ms: met, 10.0 ms [9.00, 11.0]");
        assert_eq!(judged("errors<1%", 1000).to_string(), "errors < 1 %: met, 0 % [0, 0.40]");
        assert_eq!(
            judged("rate>100/s", 9).to_string(),
            "throughput > 100/s: undecided, 100.0/s [99.00, 101.0]"
        );
    }

    #[test]
    fn the_worst_verdict_is_that_of_all() {
        let one =
            |verdict| Judged { expected: read("mean<1s"), verdict, seen: None, at_least: false, why: None };
        let (met, failed, undecided) = (
            one(ExpectationVerdict::Met),
            one(ExpectationVerdict::Failed),
            one(ExpectationVerdict::Undecided),
        );
        assert_eq!(Expectation::overall([]), ExpectationVerdict::Met);
        assert_eq!(Expectation::overall([&met, &undecided]), ExpectationVerdict::Undecided);
        assert_eq!(Expectation::overall([&failed, &undecided, &met]), ExpectationVerdict::Failed);
        let text = serde_json::to_string(&met).unwrap();
        assert_eq!(serde_json::from_str::<Judged>(&text).unwrap(), met);
    }
}
