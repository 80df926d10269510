//! The expectations of each combination with their measurements, and the intervals that stayed wider than
//! requested.

use kendall_evidence::expect::{Expectation, ExpectationVerdict, Judged, Measure};

use super::Sample;
use crate::axis::Axis;
use crate::precision::{Reached, reached};
use crate::report::expected::ExpectedAt;
use crate::report::factor;
use crate::rounds::by_trials;
use crate::warmup::TooShort;
use kendall_experiment::RunFolder;

/// What is expected of a combination, judged by its trials.
pub(super) fn judged(run: &RunFolder, index: usize, axis: &Axis, sample: &Sample) -> Vec<ExpectedAt> {
    let combination = &run.combinations()[index];
    let wanted = run.experiment().expected.iter().filter(|expected| expected.holds_for(combination));
    let (wanted, views): (Vec<Expectation>, _) =
        (wanted.map(|expected| expected.expectation).collect(), sample.views());
    let judged = by_trials(&wanted, &views).into_iter().map(|mut judged| {
        stopped(&mut judged, sample);
        ExpectedAt { settings: axis.settings(combination), judged }
    });
    judged.collect()
}

/// A trial that was stopped for an expectation decides it where the interval over the few trials does not.
fn stopped(judged: &mut Judged, sample: &Sample) {
    let out_of_reach = format!("{} could not be met", judged.expected);
    let of_trials = sample.trials.iter().filter_map(|trial| trial.result.hopeless.as_ref());
    let count = of_trials.filter(|why| why.contains(&out_of_reach)).count();
    if 2 * count > sample.trials.len() && judged.verdict == ExpectationVerdict::Undecided {
        judged.verdict = ExpectationVerdict::Failed;
        judged.why = Some(format!("{count} of {} trials were stopped for this reason", sample.trials.len()));
    }
}

/// That the interval of a combination is wider than asked, and how many more trials it needs.
pub(super) fn too_wide(run: &RunFolder, index: usize, axis: &Axis, sample: &Sample) -> Option<String> {
    let precision = run.experiment().precision.as_ref()?;
    let trials = sample.trials.iter().map(|trial| &trial.result);
    let Reached::More(more) = reached(trials, precision) else { return None };
    let place = place(run, index, axis);
    let what = if precision.of == Measure::Mean { "mean".to_owned() } else { precision.of.to_string() };
    let the = if place.is_empty() { "The".to_owned() } else { format!("At {place} the") };
    let trials = if more == 1 { "trial".to_owned() } else { "trials".to_owned() };
    Some(format!(
        "{the} interval of the {what} is wider than the requested ± {} after {} trials; about {more} more {trials} would make it \
         narrow enough.",
        kendall_stats::number::percent(precision.relative),
        sample.trials.len()
    ))
}

/// That more of the trials of a combination is warm-up than was left out.
pub(super) fn warming(run: &RunFolder, index: usize, axis: &Axis, sample: &Sample) -> Option<TooShort> {
    let trials: Vec<_> = sample.trials.iter().map(|trial| &trial.result).collect();
    TooShort::of(place(run, index, axis), &trials, run.load(index).warmup)
}

/// A combination in words: "20/s with workers 2".
fn place(run: &RunFolder, index: usize, axis: &Axis) -> String {
    factor::place(&axis.factors(run), &axis.settings(&run.combinations()[index]))
}
