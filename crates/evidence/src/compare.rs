//! Is one side faster than the other? Runs against runs.
//!
//! The unit of replication is the run, not the request: requests of one run share their warm-up, their placement in memory
//! and whatever else the machine did meanwhile, so a thousand of them are one observation of the server. Each metric of a run
//! is one number; sides are compared by the ratio of their medians with a bootstrap interval over runs, by a permutation
//! test, adjusted by Holm over all that is compared at once, and by a margin below which a difference does not matter. Runs
//! of one block are paired where there are enough of them.
//!
//! It does no I/O; who reads the runs is the laboratory.

mod metric;
mod run;
mod shift;
pub mod table;
mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

pub use metric::{Better, Metric, Scale, Unit};
pub use shift::{SHIFTED, Shift};
pub use verdict::ComparisonVerdict;

use kendall_stats::{
    Bootstrapped, Permuted, holm, median, median_difference, median_interval, median_of_differences,
    median_of_walsh_averages, rank_sum, signed_rank, smallest_rank_sum, smallest_signed_rank,
};

/// The fewest runs of a side for which the range from the least to the largest holds the true median with 95 %.
pub const FEWEST_RUNS: usize = 6;
/// The significance level.
const LEVEL: f64 = 0.05;

/// One run of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The block that it was run in, where it was one of several that were run together.
    pub block: Option<u64>,
    /// The measured values, in the order of the metrics; `None` where the run has no value.
    pub values: Vec<Option<f64>>,
    /// Quantiles of its response times, those of [`SHIFTED`] that it supports, in seconds.
    pub quantiles_s: Vec<(f64, f64)>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The side's name.
    pub name: String,
    /// The runs of the side.
    pub runs: Vec<Run>,
}

/// Sides under the same conditions, for example at one rate. Each later side is compared with the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideGroup {
    /// The conditions in words; empty where there is only one group.
    pub name: String,
    /// The sides, two at least.
    pub sides: Vec<Side>,
}

/// By what differences are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// A relative difference up to this does not matter; 0.02 is 2 %.
    pub margin: f64,
    /// The margin for shares, such as errors, as a difference; 0.001 is a tenth of a percentage point.
    pub share_margin: f64,
    /// The seed of the random resampling.
    pub seed: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { margin: 0.02, share_margin: 0.001, seed: 1 }
    }
}

/// Everything compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Each other side against the first, place by place.
    pub against: Vec<Against>,
    /// How many tests Holm's adjustment is over.
    pub tests: usize,
    /// The margin of ratios.
    pub margin: f64,
    /// The margin of shares.
    pub share_margin: f64,
}

/// The comparison of one side with the first side of its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The place.
    pub place: String,
    /// The name of the side that this one is compared with.
    pub base: String,
    /// The side.
    pub side: String,
    /// Each metric.
    pub metrics: Vec<Compared>,
    /// By how much each quantile of the response times is shifted.
    pub shift: Vec<Shift>,
}

/// The comparison of one metric with the first side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The metric.
    pub metric: Metric,
    /// Medians over the runs of the first side and of this one, where runs have values.
    pub medians: (Option<f64>, Option<f64>),
    /// How many runs of each side have a value.
    pub runs: (usize, usize),
    /// Whether runs of one block were compared with each other, so that `runs` are pairs.
    pub paired: bool,
    /// The scale on which the metric is compared.
    pub scale: Scale,
    /// The ratio of this side to the first, or their difference, depending on the scale. For pairs the median of theirs.
    pub effect: Option<Effect>,
    /// The permutation test; `None` without an interval.
    pub test: Option<Test>,
    /// The verdict of the comparison.
    pub verdict: ComparisonVerdict,
}

/// A ratio, or a difference of shares, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The value.
    pub value: f64,
    /// The interval.
    pub interval: (f64, f64),
    /// The shift of Hodges and Lehmann (1963), as a ratio or difference: the median of all differences between two runs.
    pub hodges_lehmann: f64,
}

/// The test of whether the sides differ significantly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The probability of runs that differ as much or more where the sides are the same.
    pub p_value: f64,
    /// The p-value, adjusted over all tests.
    pub p_holm: f64,
    /// How many permutations were drawn; `None` where all were counted.
    pub drawn: Option<u32>,
}

/// The comparison of one metric before p-values are adjusted for the number of tests.
struct UnadjustedComparison {
    compared: Compared,
    /// On the scale on which differences add up.
    interval: Option<Bootstrapped>,
    /// The smallest p-value that this number of runs can reach.
    smallest_p: f64,
}

/// Compares each side with the first of its group.
pub fn compare(metrics: &[Metric], places: &[SideGroup], terms: &Terms) -> Comparison {
    let pairs = || places.iter().flat_map(|place| place.sides.iter().skip(1).map(move |side| (place, side)));
    let family = pairs().count() * metrics.len();
    let mut found: Vec<Vec<UnadjustedComparison>> = pairs()
        .map(|(place, side)| {
            let of_metric = |(index, metric)| found(metric, index, &place.sides[0], side, family, terms);
            metrics.iter().enumerate().map(of_metric).collect()
        })
        .collect();
    adjust(&mut found);
    let tests = found.iter().flatten().filter(|found| found.compared.test.is_some()).count();
    let against = pairs().zip(found).map(|((place, side), found)| Against {
        place: place.name.clone(),
        base: place.sides[0].name.clone(),
        side: side.name.clone(),
        metrics: found.into_iter().map(|found| found.judged(tests, terms)).collect(),
        shift: shift::shifts(&place.sides[0], side, terms.seed),
    });
    Comparison { against: against.collect(), tests, margin: terms.margin, share_margin: terms.share_margin }
}

/// Fills in the p-values that Holm adjusts over all tests.
fn adjust(found: &mut [Vec<UnadjustedComparison>]) {
    let tests = || found.iter().flatten().filter_map(|found| Some(found.compared.test?.p_value));
    let mut adjusted = holm(&tests().collect::<Vec<f64>>()).into_iter();
    for found in found.iter_mut().flatten() {
        if let Some(test) = &mut found.compared.test {
            test.p_holm = adjusted.next().expect("there is one for each test");
        }
    }
}

fn found(
    metric: &Metric,
    index: usize,
    base: &Side,
    side: &Side,
    family: usize,
    terms: &Terms,
) -> UnadjustedComparison {
    let tell = |side: &Side| -> Vec<(Option<u64>, f64)> {
        let value = |run: &Run| Some((run.block, run.values.get(index).copied().flatten()?));
        side.runs.iter().filter_map(value).collect()
    };
    let (of_base, of_side) = (tell(base), tell(side));
    let plain = |values: &[(Option<u64>, f64)]| values.iter().map(|value| value.1).collect::<Vec<f64>>();
    let (a, b) = (plain(&of_base), plain(&of_side));
    let scale = metric.scale(&a, &b);
    let differences = differences(&of_base, &of_side, scale, family);
    let runs = differences.as_ref().map_or((a.len(), b.len()), |pairs| (pairs.len(), pairs.len()));
    let known = |values: &[f64]| (!values.is_empty()).then(|| median(values));
    let mut compared = Compared {
        metric: metric.clone(),
        scale,
        medians: (known(&a), known(&b)),
        runs,
        paired: differences.is_some(),
        effect: None,
        test: None,
        verdict: ComparisonVerdict::NotMeasured,
    };
    if runs.0.min(runs.1) < FEWEST_RUNS {
        return UnadjustedComparison { compared, interval: None, smallest_p: 1.0 };
    }
    // Each metric draws its own numbers.
    let seed = terms.seed.wrapping_add(index as u64);
    let (added_a, added_b) = (scale.added(&a), scale.added(&b));
    let (interval, Permuted { p_value, drawn }, hodges_lehmann, smallest_p) = match &differences {
        Some(pairs) => (
            median_interval(pairs, seed),
            signed_rank(pairs, seed),
            median_of_walsh_averages(pairs),
            smallest_signed_rank(pairs.len()),
        ),
        None => (
            median_difference(&added_a, &added_b, seed),
            rank_sum(&added_a, &added_b, seed).expect("both sides have runs"),
            median_of_differences(&added_a, &added_b),
            smallest_rank_sum(a.len(), b.len()),
        ),
    };
    compared.effect = interval.map(|found| Effect {
        value: scale.shown(found.value),
        interval: (scale.shown(found.interval.0), scale.shown(found.interval.1)),
        hodges_lehmann: scale.shown(hodges_lehmann),
    });
    compared.test = Some(Test { p_value, p_holm: p_value, drawn });
    UnadjustedComparison { compared, interval, smallest_p }
}

/// The differences within blocks, if there are enough blocks for their test, adjusted over the family, to reach significance. Otherwise
/// runs count as independent, which is conservative: what a block has in common widens the interval.
fn differences(
    base: &[(Option<u64>, f64)],
    side: &[(Option<u64>, f64)],
    scale: Scale,
    family: usize,
) -> Option<Vec<f64>> {
    let by_block = |values: &[(Option<u64>, f64)]| -> Option<BTreeMap<u64, f64>> {
        let blocks: BTreeMap<u64, f64> =
            values.iter().map(|&(block, value)| Some((block?, value))).collect::<Option<_>>()?;
        // Two runs of one block on one side are not a pair.
        (blocks.len() == values.len()).then_some(blocks)
    };
    let (base, side) = (by_block(base)?, by_block(side)?);
    let pair =
        |(block, value): (&u64, &f64)| Some(scale.added(&[*side.get(block)?])[0] - scale.added(&[*value])[0]);
    let pairs: Vec<f64> = base.iter().filter_map(pair).collect();
    let enough = smallest_signed_rank(pairs.len()) * family as f64 <= LEVEL;
    (pairs.len() >= FEWEST_RUNS && enough).then_some(pairs)
}

impl UnadjustedComparison {
    fn judged(self, tests: usize, terms: &Terms) -> Compared {
        let Self { mut compared, interval, smallest_p } = self;
        let fewer = compared.runs.0.min(compared.runs.1);
        compared.verdict = match (interval, compared.test) {
            (Some(interval), Some(test)) => {
                let judged = verdict::Judged {
                    interval,
                    p_holm: test.p_holm,
                    runs: fewer,
                    can_tell: smallest_p * tests as f64 <= LEVEL,
                };
                judged.verdict(&compared, terms)
            }
            _ if fewer == 0 => ComparisonVerdict::NotMeasured,
            _ => ComparisonVerdict::TooFewRuns { runs: fewer },
        };
        compared
    }
}

#[cfg(test)]
mod tests;
