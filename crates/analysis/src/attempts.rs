//! The attempts at the trials of a run: which are done, what disturbance is usual among them, and which of several counts.

use kendall_experiment::{ANSWER, RunFolder, Trial};
use kendall_record::RecordError;

use crate::disturbance::Usual;
use crate::trial_result::TrialResult;

/// Which of the attempts at one trial counts: the first that was not disturbed, otherwise the least disturbed. `attempts` must
/// not be empty.
pub fn counted(attempts: &[&TrialResult], usual: &Usual) -> usize {
    let quiet = |result: &&TrialResult| !is_disturbed(result, usual);
    attempts.iter().position(quiet).unwrap_or_else(|| {
        let share = |index: &usize| attempts[*index].disturbance.map_or(0.0, |seen| seen.share());
        (0..attempts.len()).min_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0)
    })
}

/// Whether a trial was disturbed beyond what is usual in its run.
pub fn is_disturbed(result: &TrialResult, usual: &Usual) -> bool {
    result.disturbance.is_some_and(|seen| usual.is_beyond(&seen))
}

/// Every attempt that is done, with its answer.
///
/// # Errors
/// Fails where an answer cannot be read.
pub fn done(run: &RunFolder) -> Result<Vec<(Trial, TrialResult)>, RecordError> {
    let done = run.begun().filter(|(folder, _)| folder.join(ANSWER).exists());
    done.filter_map(|(folder, trial)| {
        Some(TrialResult::read(&folder).transpose()?.map(|result| (trial, result)))
    })
    .collect()
}

/// The usual disturbance of a run, by the first attempts that are done.
pub fn usual(run: &RunFolder, done: &[(Trial, TrialResult)]) -> Usual {
    let first = done.iter().filter(|(trial, _)| trial.attempt == 0);
    let shares: Vec<f64> = first.filter_map(|(_, result)| Some(result.disturbance?.share())).collect();
    Usual::of(&shares, run.experiment().disturbed_over)
}
