//! The verdict of a comparison, in words.

use serde::Serialize;

use super::{Better, Compared, Effect, FEWEST_RUNS, LEVEL, Scale, Terms, Unit};
use kendall_stats::Bootstrapped;
use kendall_stats::number::{significant, time};

/// Never advise more runs than this: a difference this close to its margin cannot be decided.
const MOST_RUNS: f64 = 1_000.0;

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// Better by more than the margin.
    Better,
    /// Worse by more than the margin.
    Worse,
    /// The whole interval lies within the margin (two one-sided tests, Schuirmann 1987).
    Equivalent,
    /// The interval reaches over the margin.
    Undecided {
        /// About this many more runs of each side decide it; `None` if it is so near the margin that a thousand do not.
        more_runs: Option<u64>,
    },
    /// There are too few runs for a statement at 95 %.
    TooFewRuns {
        /// The number of runs of the side that has fewer.
        runs: usize,
    },
    /// No run has a value, or only runs of one side.
    NotMeasured,
}

/// The data that a verdict is computed from.
pub(super) struct Judged {
    /// On the scale on which differences add up.
    pub(super) interval: Bootstrapped,
    pub(super) p_holm: f64,
    /// The number of runs of the side that has fewer.
    pub(super) runs: usize,
    /// Whether `runs` can reach significance among this number of tests.
    pub(super) can_tell: bool,
}

impl Judged {
    pub(super) fn verdict(&self, compared: &Compared, terms: &Terms) -> ComparisonVerdict {
        let margin = match compared.scale {
            Scale::Ratio => libm::log1p(terms.margin),
            Scale::Difference => compared.margin(terms),
        };
        let (low, high) = self.interval.interval;
        let beyond = if low > margin { 1 } else { -i32::from(high < -margin) };
        match (beyond, compared.metric.better) {
            (1, Better::Lower) | (-1, Better::Higher) if self.p_holm <= LEVEL => ComparisonVerdict::Worse,
            (1 | -1, _) if self.p_holm <= LEVEL => ComparisonVerdict::Better,
            _ if low >= -margin && high <= margin => ComparisonVerdict::Equivalent,
            _ => ComparisonVerdict::Undecided { more_runs: self.more_runs(margin, beyond != 0) },
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

impl Compared {
    /// The difference that does not matter, where values are compared by their difference.
    fn margin(&self, terms: &Terms) -> f64 {
        match self.metric.unit {
            Unit::Share => terms.share_margin,
            _ => terms.margin * self.medians.0.unwrap_or(0.0).abs(),
        }
    }

    /// The verdict as a clause: "faster by 12 % (9–15)", "equivalent within 2 %", "undecided: about 14 more runs".
    pub fn words(&self, terms: &Terms) -> String {
        let by = self.effect.map_or_else(String::new, |effect| self.by(&effect));
        match self.verdict {
            ComparisonVerdict::Better => format!("{} {by}", self.better()),
            ComparisonVerdict::Worse => format!("{} {by}", self.worse()),
            ComparisonVerdict::Equivalent => format!("equivalent within {}", self.within(terms)),
            ComparisonVerdict::Undecided { more_runs } => {
                let seen =
                    self.effect.map_or_else(String::new, |effect| format!(" ({})", self.range(&effect)));
                match more_runs {
                    Some(1) => format!("undecided{seen}: about 1 more run"),
                    Some(more) => format!("undecided{seen}: about {more} more runs"),
                    None => format!("undecided{seen}: over a thousand more runs"),
                }
            }
            ComparisonVerdict::TooFewRuns { runs } => too_few(runs),
            ComparisonVerdict::NotMeasured => "not measured on both sides".to_owned(),
        }
    }

    fn better(&self) -> &'static str {
        match (self.metric.unit, self.metric.better) {
            (Unit::Seconds, _) => "faster",
            (_, Better::Higher) => "more",
            (_, Better::Lower) => "less",
        }
    }

    fn worse(&self) -> &'static str {
        match (self.metric.unit, self.metric.better) {
            (Unit::Seconds, _) => "slower",
            (_, Better::Higher) => "less",
            (_, Better::Lower) => "more",
        }
    }

    fn within(&self, terms: &Terms) -> String {
        match self.scale {
            Scale::Ratio => format!("{} %", plain(terms.margin * 100.0)),
            Scale::Difference => self.difference(self.margin(terms)),
        }
    }

    /// "by 12 % (9–15)"; above twice as much "3.0 times (2.9–3.1)".
    fn by(&self, effect: &Effect) -> String {
        let Effect { value, interval: (low, high), .. } = *effect;
        match self.scale {
            Scale::Ratio if value <= 2.0 => {
                let percent = |ratio: f64| (ratio - 1.0).abs() * 100.0;
                let ends = (percent(low).min(percent(high)), percent(low).max(percent(high)));
                let whole = ends.1 >= 10.0;
                let show = |value| if whole { format!("{value:.0}") } else { significant(value, 2) };
                format!("by {} % ({}–{})", show(percent(value)), show(ends.0), show(ends.1))
            }
            Scale::Ratio => {
                let show = |value| significant(value, 2);
                format!("{} times ({}–{})", show(value), show(low), show(high))
            }
            Scale::Difference => {
                let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
                let [value, near, far] = [value.abs(), near, far].map(|value| self.difference(value));
                format!("by {value} ({near}–{far})")
            }
        }
    }

    /// "−3 % to +5 %".
    fn range(&self, effect: &Effect) -> String {
        let show = |value: f64| match self.scale {
            Scale::Ratio => signed(value - 1.0, |size| format!("{} %", plain(size * 100.0))),
            Scale::Difference => signed(value, |size| self.difference(size)),
        };
        format!("{} to {}", show(effect.interval.0), show(effect.interval.1))
    }

    /// A difference with its unit; of shares in percentage points.
    fn difference(&self, size: f64) -> String {
        match self.metric.unit {
            Unit::Share => format!("{} pp", plain(size * 100.0)),
            Unit::Seconds | Unit::CpuSeconds => time(size),
            Unit::PerSecond => format!("{}/s", plain(size)),
            Unit::Plain => plain(size),
        }
    }
}

fn signed(value: f64, show: impl Fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", show(value.abs()))
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
        1 => "1 run cannot show significance".to_owned(),
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
