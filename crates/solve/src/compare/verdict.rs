//! What a comparison comes to, in words.

use serde::Serialize;

use super::{Better, Effect, FEWEST_RUNS, LEVEL, Metric, Scale, Terms};
use crate::number::significant;
use crate::statistics::Bootstrapped;

/// More runs than this are not asked for: so near to its margin a difference is not to be told.
const MOST_RUNS: f64 = 1_000.0;

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by more than the margin.
    Better,
    /// Worse by more than the margin.
    Worse,
    /// The whole interval lies within the margin (two one-sided tests, Schuirmann 1987).
    Equivalent,
    /// The interval reaches over the margin.
    Undecided {
        /// About so many more runs of each side decide it; `None` where it lies so near the margin that a thousand do not.
        more_runs: Option<u64>,
    },
    /// There are too few runs for a statement at 95 %.
    TooFewRuns {
        /// So many there are of the side that has fewer.
        runs: usize,
    },
    /// No run tells, or only those of one side.
    NotMeasured,
}

/// What a verdict is made of.
pub(super) struct Judged {
    /// On the scale on which differences add up.
    pub(super) interval: Bootstrapped,
    pub(super) p_holm: f64,
    /// Of the side that has fewer.
    pub(super) runs: usize,
    /// Whether so many runs can show any difference at all among so many tests.
    pub(super) can_tell: bool,
}

impl Judged {
    pub(super) fn verdict(&self, metric: &Metric, terms: &Terms) -> Verdict {
        let margin = match metric.scale {
            Scale::Ratio => libm::log1p(terms.margin),
            Scale::Difference => terms.share_margin,
        };
        let (low, high) = self.interval.interval;
        let beyond = if low > margin { 1 } else { -i32::from(high < -margin) };
        match (beyond, metric.better) {
            (1, Better::Lower) | (-1, Better::Higher) if self.p_holm <= LEVEL => Verdict::Worse,
            (1 | -1, _) if self.p_holm <= LEVEL => Verdict::Better,
            _ if low >= -margin && high <= margin => Verdict::Equivalent,
            _ => Verdict::Undecided { more_runs: self.more_runs(margin, beyond != 0) },
        }
    }

    /// The width of an interval falls with the root of the number of runs.
    fn more_runs(&self, margin: f64, is_beyond: bool) -> Option<u64> {
        let (low, high) = self.interval.interval;
        let (value, runs) = (self.interval.value.abs(), self.runs as f64);
        let needed = if is_beyond {
            // Only the test is missing; each run halves its smallest chance, or better.
            if self.can_tell { runs * 1.5 } else { runs + 3.0 }
        } else {
            let half_width = (high - low) / 2.0;
            runs * (half_width / (value - margin).abs()).powi(2)
        };
        (needed - runs <= MOST_RUNS).then(|| (needed - runs).ceil().max(1.0) as u64)
    }
}

impl Verdict {
    /// The verdict as a clause: "faster by 12 % (9–15)", "equivalent within 2 %", "undecided: about 14 more runs".
    pub fn words(&self, metric: &Metric, effect: Option<&Effect>, terms: &Terms) -> String {
        let by = effect.map_or_else(String::new, |effect| by(metric, effect));
        match *self {
            Self::Better => format!("{} {by}", better(metric)),
            Self::Worse => format!("{} {by}", worse(metric)),
            Self::Equivalent => format!("equivalent within {}", within(metric, terms)),
            Self::Undecided { more_runs } => {
                let seen = effect.map_or_else(String::new, |effect| format!(" ({})", range(metric, effect)));
                match more_runs {
                    Some(1) => format!("undecided{seen}: about 1 more run"),
                    Some(more) => format!("undecided{seen}: about {more} more runs"),
                    None => format!("undecided{seen}: over a thousand more runs"),
                }
            }
            Self::TooFewRuns { runs } => too_few(runs),
            Self::NotMeasured => "not measured on both sides".to_owned(),
        }
    }
}

fn better(metric: &Metric) -> &'static str {
    match (metric.is_time(), metric.better) {
        (true, _) => "faster",
        (_, Better::Higher) => "more",
        (_, Better::Lower) => "less",
    }
}

fn worse(metric: &Metric) -> &'static str {
    match (metric.is_time(), metric.better) {
        (true, _) => "slower",
        (_, Better::Higher) => "less",
        (_, Better::Lower) => "more",
    }
}

fn within(metric: &Metric, terms: &Terms) -> String {
    match metric.scale {
        Scale::Ratio => format!("{} %", plain(terms.margin * 100.0)),
        Scale::Difference => difference(metric, terms.share_margin),
    }
}

/// "by 12 % (9–15)".
fn by(metric: &Metric, effect: &Effect) -> String {
    let Effect { value, interval: (low, high), .. } = *effect;
    match metric.scale {
        Scale::Ratio if value <= 2.0 => {
            let percent = |ratio: f64| (ratio - 1.0).abs() * 100.0;
            let ends = (percent(low).min(percent(high)), percent(low).max(percent(high)));
            let digits = if ends.1 < 10.0 { 2 } else { ends.1.log10() as i32 + 1 };
            let show = |value| significant(value, digits);
            format!("by {} % ({}–{})", show(percent(value)), show(ends.0), show(ends.1))
        }
        Scale::Ratio => {
            let show = |value| significant(value, 2);
            format!("{} times ({}–{})", show(value), show(low), show(high))
        }
        Scale::Difference => {
            let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
            format!(
                "by {} ({}–{})",
                difference(metric, value.abs()),
                number_of(metric, near),
                number_of(metric, far)
            )
        }
    }
}

/// "−3 % to +5 %".
fn range(metric: &Metric, effect: &Effect) -> String {
    let (low, high) = effect.interval;
    let signed = |value: f64, text: String| {
        let sign = if value < 0.0 { "−" } else { "+" };
        format!("{sign}{text}")
    };
    match metric.scale {
        Scale::Ratio => {
            let percent =
                |ratio: f64| signed(ratio - 1.0, format!("{} %", plain((ratio - 1.0).abs() * 100.0)));
            format!("{} to {}", percent(low), percent(high))
        }
        Scale::Difference => {
            let show = |value: f64| signed(value, difference(metric, value.abs()));
            format!("{} to {}", show(low), show(high))
        }
    }
}

/// A difference with its unit; of shares in percentage points.
fn difference(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "" => format!("{} pp", number_of(metric, value)),
        unit => format!("{} {unit}", number_of(metric, value)),
    }
}

fn number_of(metric: &Metric, value: f64) -> String {
    if metric.unit.is_empty() { plain(value * 100.0) } else { plain(value) }
}

/// Two significant digits, and no zeros that say nothing.
fn plain(value: f64) -> String {
    let text = significant(value, 2);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What so few runs allow: from the least to the largest of n they hold the median with 1 − 2¹⁻ⁿ.
fn too_few(runs: usize) -> String {
    let needed = FEWEST_RUNS - runs;
    let more = if needed == 1 { "1 more run".to_owned() } else { format!("{needed} more runs") };
    let allowed = match runs {
        1 => "1 run says nothing of chance".to_owned(),
        _ => {
            let held = 100.0 * (1.0 - libm::exp2(1.0 - runs as f64));
            format!(
                "{runs} runs allow {} %",
                significant(held, 3).trim_end_matches('0').trim_end_matches('.')
            )
        }
    };
    format!("{allowed}; {more} of each side for 95 %")
}
