//! What each factor does, from the trials of every combination.

use kendall_evidence::effects::{Cell, effects};
use kendall_report::{EffectsSeen, Report, TrialLine};

/// The effects on the mean response and on that of 99 % of the requests, where several factors were varied and every
/// combination was measured.
pub(super) fn seen(report: &Report) -> Vec<EffectsSeen> {
    let mean = of(report, "mean response", |trial| trial.response_s);
    let p99 = of(report, "p99 response", |trial| trial.response_p99_s);
    mean.into_iter().chain(p99).collect()
}

fn of(report: &Report, name: &str, value: impl Fn(&TrialLine) -> Option<f64>) -> Option<EffectsSeen> {
    let levels: Vec<usize> = report.factors.iter().map(|factor| factor.values.len()).collect();
    let cell = |(place, point): (usize, &kendall_report::Point)| {
        let level = |factor: &kendall_report::Factor| {
            factor.values.iter().position(|value| value == point.setting(&factor.name))
        };
        let levels = report.factors.iter().map(level).collect::<Option<Vec<usize>>>()?;
        // A trial that does not tell must not count as one that does.
        let values = report.trials_of(place).map(&value).collect::<Option<Vec<f64>>>()?;
        Some(Cell { levels, values })
    };
    let cells = report.points.iter().enumerate().map(cell).collect::<Option<Vec<Cell>>>()?;
    let effects = effects(&levels, &cells).ok()?;
    Some(EffectsSeen { of: name.to_owned(), effects })
}
