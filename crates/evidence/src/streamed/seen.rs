//! The statistics of one kind of time over the sections of a run.

use kendall_station::{Estimate, Quantile, Summary};
use kendall_stats::{BatchMeans, batch_means, minimum_samples, quantile_rank, quantile_ranks};
use serde::{Deserialize, Serialize};

use super::QUANTILES;
use super::section::Section;
use super::times::Times;

/// The statistics of one kind of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimesSeen {
    /// The requests that have such a time.
    pub requests: u64,
    /// The requests, among these, that were given up before their time was known. They count as no shorter than when they were given
    /// up.
    pub censored: u64,
    /// The mean, in seconds: a lower bound where some are censored.
    pub mean_s: Estimate,
    /// Whether the mean's interval is too narrow, because its batches are still correlated.
    pub correlated: bool,
    /// The variance of the known times, in square seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_s2: Option<f64>,
    /// The longest that is known, in seconds.
    pub longest_s: f64,
    /// Every requested quantile, including those that have too few requests.
    pub quantiles: Vec<QuantileSeen>,
    /// Shares and the times that they stay below, in seconds, for a drawing: finer and finer towards 1.
    pub curve: Vec<(f64, f64)>,
}

/// One quantile, or the number of requests that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileSeen {
    /// The share.
    pub p: f64,
    /// The time that this share of the requests stays below or at, in seconds. `None` for too few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_s: Option<f64>,
    /// The quantile's 95 % interval, in seconds. `None` for too few requests, and where it has no upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<(f64, f64)>,
    /// The value is only the lower end of the interval, because so large a share of the requests is censored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// How many requests the value, or its interval, needs if there are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

impl TimesSeen {
    /// `None` where no request has such a time. `sections` are in the order of their requests, and the last may be shorter.
    pub(super) fn of(sections: &[&Section], times: fn(&Section) -> &Times) -> Option<Self> {
        let mut all = Times::new();
        sections.iter().for_each(|section| all.absorb(times(section)));
        let value = all.mean_s()?;
        let whole: Vec<&Times> = whole(sections).map(times).collect();
        let means: Vec<f64> = whole.iter().filter_map(|times| times.mean_s()).collect();
        let found = batch_means(&means);
        let known = &all.known;
        let variance_s2 = (known.count > 1).then(|| {
            let mean = known.sum_s / known.count as f64;
            ((known.squares_s2 / known.count as f64 - mean * mean) * known.count as f64
                / (known.count as f64 - 1.0))
                .max(0.0)
        });
        Some(Self {
            requests: all.count(),
            censored: all.censored(),
            mean_s: Estimate { value, interval: found.map(|found| around(value, &found)) },
            correlated: found.is_some_and(|found| found.correlated),
            variance_s2,
            longest_s: known.longest_s,
            quantiles: quantiles(&all, &whole, &QUANTILES),
            curve: curve(&all),
        })
    }

    /// One quantile of a kind of time.
    pub(super) fn one(sections: &[&Section], times: fn(&Section) -> &Times, p: f64) -> (u64, QuantileSeen) {
        let mut all = Times::new();
        sections.iter().for_each(|section| all.absorb(times(section)));
        let whole: Vec<&Times> = whole(sections).map(times).collect();
        (all.count(), quantiles(&all, &whole, &[p]).remove(0))
    }

    /// The mean alone, and the number of requests behind it.
    pub(super) fn mean_alone(
        sections: &[&Section],
        times: fn(&Section) -> &Times,
    ) -> Option<(u64, Estimate)> {
        let weighted = |section: &&Section| {
            let times = times(section);
            Some((times.mean_s()? * times.count() as f64, times.count()))
        };
        let (sum_s, count) =
            sections.iter().filter_map(weighted).fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let means: Vec<f64> = whole(sections).filter_map(|section| times(section).mean_s()).collect();
        let value = sum_s / count as f64;
        let interval = batch_means(&means).map(|found| around(value, &found));
        (count > 0).then_some((count, Estimate { value, interval }))
    }

    /// The times without intervals of quantiles: a run that does not settle has none.
    pub(super) fn without_intervals(mut self) -> Self {
        for quantile in &mut self.quantiles {
            (quantile.interval_s, quantile.needs) =
                (None, quantile.needs.filter(|_| quantile.value_s.is_none()));
        }
        self.mean_s.interval = None;
        self
    }

    /// The quantile with this share, if it was requested.
    pub fn quantile(&self, p: f64) -> Option<&QuantileSeen> {
        self.quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-12)
    }

    /// Whether the mean is a lower bound only.
    pub fn mean_is_bound(&self) -> bool {
        self.censored > 0
    }

    /// The summary of the time in the form of every method: quantiles that are lower bounds are left out.
    pub fn summary(&self) -> Summary {
        let known = |quantile: &&QuantileSeen| !quantile.at_least;
        let told = |quantile: &QuantileSeen| {
            let value_s = Estimate { value: quantile.value_s?, interval: quantile.interval_s };
            Some(Quantile { p: quantile.p, value_s })
        };
        Summary {
            mean_s: self.mean_s,
            variance_s2: self.variance_s2,
            quantiles: self.quantiles.iter().filter(known).filter_map(told).collect(),
        }
    }
}

/// The sections without the last, if that is not full and there are others enough.
fn whole<'a>(sections: &'a [&'a Section]) -> impl Iterator<Item = &'a Section> {
    let fullest = sections.iter().map(|section| section.rows()).max().unwrap_or(0);
    let partial = sections.last().is_some_and(|last| 10 * last.rows() < 9 * fullest);
    let count = sections.len() - usize::from(partial && sections.len() > 10);
    sections[..count].iter().copied()
}

/// The interval of batch means, moved to the mean over all.
fn around(value: f64, found: &BatchMeans) -> (f64, f64) {
    // No time is negative.
    ((value + found.interval.0 - found.mean).max(0.0), value + found.interval.1 - found.mean)
}

/// Quantiles with their intervals, each the wider of two: that of order statistics, which is exact for independent requests (David and
/// Nagaraja 2003, section 7.1), and that of the share of requests below the quantile, whose batch means over the sections allow for
/// dependence (indirect estimation, Heidelberger and Lewis 1984): its ends are read off the distribution. So where requests are
/// correlated, as they are in a queue, the interval is wider by what that costs.
///
/// `wanted` ascends.
fn quantiles(all: &Times, sections: &[&Times], wanted: &[f64]) -> Vec<QuantileSeen> {
    let n = all.count();
    let at = |p: f64| all.known.histogram.at_rank_s(quantile_rank(n, p));
    // Those that are known come first.
    let known_s: Vec<f64> = wanted.iter().map_while(|&p| at(p)).collect();
    let shares: Vec<Vec<f64>> = sections.iter().filter_map(|section| section.shares_to(&known_s)).collect();
    let quantile = |(i, &p): (usize, &f64)| {
        let nothing = QuantileSeen { p, value_s: None, interval_s: None, at_least: false, needs: None };
        match (quantile_ranks(n, p), known_s.get(i)) {
            (None, _) => QuantileSeen { needs: Some(minimum_samples(p)), ..nothing },
            // It lies among the requests that were given up, so of its interval only the lower end is known.
            (Some((low, _)), None) => {
                let bound_s = all.bound_s(quantile_rank(n, p));
                let share = |section: &&Times| section.shares_to(&[bound_s?]).map(|shares| shares[0]);
                let (_, above) = share_error(&sections.iter().filter_map(share).collect::<Vec<f64>>());
                QuantileSeen { value_s: all.bound_s(lower_rank(n, p, low, above)), at_least: true, ..nothing }
            }
            (Some(ranks), Some(&value_s)) => {
                let of_sections: Vec<f64> = shares.iter().map(|shares| shares[i]).collect();
                let (interval_s, needs) = interval(all, p, ranks, &of_sections);
                QuantileSeen { value_s: Some(value_s), interval_s, needs, ..nothing }
            }
        }
    };
    ascending(wanted.iter().enumerate().map(quantile).collect())
}

/// A higher quantile is no shorter than a lower one, so neither end of its interval lies below that of the lower one's. Where slow
/// requests came together, in one stall, the shares of sections below p90 differ more than those below p99.9; then the upper end of p90
/// is not known, and that of p99.9 cannot be.
fn ascending(mut quantiles: Vec<QuantileSeen>) -> Vec<QuantileSeen> {
    let (mut ends_s, mut open, mut needs) = ((0.0_f64, 0.0_f64), false, None);
    for quantile in quantiles.iter_mut().filter(|quantile| quantile.value_s.is_some() && !quantile.at_least) {
        match quantile.interval_s.filter(|_| !open) {
            Some((low_s, high_s)) => {
                ends_s = (ends_s.0.max(low_s), ends_s.1.max(high_s));
                quantile.interval_s = Some(ends_s);
            }
            None => {
                open = true;
                needs = needs.max(quantile.needs);
                (quantile.interval_s, quantile.needs) = (None, needs);
            }
        }
    }
    quantiles
}

/// A quantile has no interval where the share of requests above it is uncertain by more than this many times itself.
const MOST_TIMES: f64 = 2.5;

/// The interval of a quantile, or how many requests it needs: by the ranks of independent requests, and by the shares below
/// it of the sections. Where the share above is uncertain by nearly itself, the uncertainty counts as a ratio, and doubly because such shares
/// are skewed. The upper end then stays among the measured times, where a difference would lie beyond them.
fn interval(
    all: &Times,
    p: f64,
    (low, high): (u64, u64),
    shares: &[f64],
) -> (Option<(f64, f64)>, Option<u64>) {
    let n = all.count();
    let (below, above) = share_error(shares);
    let low = lower_rank(n, p, low, above);
    let times = below / (1.0 - p);
    let over = (1.0 - p) * n as f64 * (1.0 - times).max(libm::exp(-2.0 * times));
    if times > MOST_TIMES || over < 1.0 {
        let more = (times / MOST_TIMES).powi(2).max(1.0 / over);
        return (None, Some((1.05 * more * n as f64).ceil() as u64));
    }
    let high = high.max(n - over.floor() as u64);
    let end = |rank: u64| all.known.histogram.at_rank_s(rank);
    (end(low).zip(end(high)), None)
}

/// How far the interval of a share reaches below and above it, by batch means of the shares of sections.
fn share_error(shares: &[f64]) -> (f64, f64) {
    batch_means(shares)
        .map_or((0.0, 0.0), |found| (found.mean - found.interval.0, found.interval.1 - found.mean))
}

/// The rank of the lower end of a quantile's interval, from the rank `low` for independent requests and the error of the share below it.
fn lower_rank(n: u64, p: f64, low: u64, above: f64) -> u64 {
    low.min(((p - above) * n as f64).floor().max(1.0) as u64)
}

/// The times at shares that go to 1 in eight steps for each tenth, as far as there are requests and they are known.
fn curve(all: &Times) -> Vec<(f64, f64)> {
    const STEPS: i32 = 8;
    let n = all.count();
    let shares = (0..).map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(STEPS)));
    let shares = shares.take_while(|p| (1.0 - p) * n as f64 >= 1.0);
    let point = |p: f64| Some((p, all.known.histogram.at_rank_s(quantile_rank(n, p))?));
    shares.map_while(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_quantile_has_an_upper_end_where_a_lower_one_has_none() {
        let seen = |p, value_s, interval_s, needs| QuantileSeen {
            p,
            value_s: Some(value_s),
            interval_s,
            at_least: false,
            needs,
        };
        // As behind one stall of a second in eight: the shares below p90 differ between sections, those below p99.9 do not.
        let found = ascending(vec![
            seen(0.5, 1.0, Some((0.9, 1.2)), None),
            seen(0.75, 1.1, Some((0.8, 1.1)), None),
            seen(0.9, 260.0, None, Some(90_000)),
            seen(0.99, 960.0, None, Some(40_000)),
            seen(0.999, 1030.0, Some((1020.0, 1030.0)), None),
            QuantileSeen { value_s: None, ..seen(0.9999, 0.0, None, Some(29_956)) },
        ]);
        let intervals: Vec<_> = found.iter().map(|quantile| quantile.interval_s).collect();
        assert_eq!(intervals, [Some((0.9, 1.2)), Some((0.9, 1.2)), None, None, None, None]);
        let needs: Vec<_> = found.iter().map(|quantile| quantile.needs).collect();
        assert_eq!(needs, [None, None, Some(90_000), Some(90_000), Some(90_000), Some(29_956)]);
    }
}
