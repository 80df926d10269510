//! Decides what to run next: another block while intervals are too wide, disturbed trials again, or nothing.

use std::time::Duration;

use kendall_analysis::attempts::{done, is_disturbed, usual};
use kendall_analysis::precision::{Reached, reached};
use kendall_analysis::{TrialResult, Usual};
use kendall_experiment::{MOST_ATTEMPTS, RunFolder, Trial};
use kendall_record::RecordError;

/// The most repeated trials, as a share of all trials; at least one is allowed.
const AGAIN_AT_MOST: f64 = 0.5;

/// What to run next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Another block is needed, because this many points are less precise than requested.
    Block {
        /// The number of such points.
        wide: usize,
    },
    /// These trials must run again, because they were disturbed.
    Again(Vec<Trial>),
    /// No more trials.
    Nothing,
}

/// Decides what to run once all planned trials are done; `elapsed` counts from the start of the run.
///
/// # Errors
/// Fails where an answer cannot be read.
pub(crate) fn next(run: &RunFolder, elapsed: Duration) -> Result<Next, RecordError> {
    let done = done(run)?;
    let usual = usual(run, &done);
    let wide = wide(run, &done, &usual);
    let blocks = run.trials().len() / run.combinations().len();
    if let (Some(precision), true) = (&run.experiment().precision, wide > 0) {
        let in_time = precision.time_at_most.is_none_or(|most| elapsed < most);
        if in_time && blocks < precision.repeats_at_most as usize {
            return Ok(Next::Block { wide });
        }
    }
    let again = again(run, &done, &usual);
    Ok(if again.is_empty() { Next::Nothing } else { Next::Again(again) })
}

/// How many points are less precise than wanted, by the undisturbed trials.
fn wide(run: &RunFolder, done: &[(Trial, TrialResult)], usual: &Usual) -> usize {
    let Some(precision) = &run.experiment().precision else { return 0 };
    let is_wide = |combination: &usize| {
        let quiet = done
            .iter()
            .map(|(_, result)| result)
            .filter(|result| result.combination == *combination && !is_disturbed(result, usual));
        matches!(reached(quiet, precision), Reached::More(_))
    };
    (0..run.combinations().len()).filter(is_wide).count()
}

/// The next attempts at disturbed trials, within the allowed number.
fn again(run: &RunFolder, done: &[(Trial, TrialResult)], usual: &Usual) -> Vec<Trial> {
    let spent = done.iter().filter(|(trial, _)| trial.attempt > 0).count();
    let allowed = ((run.trials().len() as f64 * AGAIN_AT_MOST) as usize).max(1).saturating_sub(spent);
    let next = |trial: &Trial| {
        let attempts: Vec<&(Trial, TrialResult)> =
            done.iter().filter(|(attempt, _)| attempt.number == trial.number).collect();
        let disturbed = attempts.iter().all(|(_, result)| is_disturbed(result, usual));
        let last = attempts.iter().map(|(attempt, _)| attempt.attempt).max()?;
        (disturbed && last < MOST_ATTEMPTS).then_some(Trial { attempt: last + 1, ..*trial })
    };
    run.trials().iter().filter_map(next).take(allowed).collect()
}
