//! What is to be tried next: another block while intervals are too wide, again what was disturbed, or nothing more.

use std::path::PathBuf;
use std::time::Duration;

use kendall_archive::read_json;
use kendall_record::RecordError;

use crate::disturbance::Usual;
use crate::lab::Lab;
use crate::precision::{Reached, reached};
use crate::schedule::Trial;
use crate::trial_result::{ANSWER, TrialResult};

/// A trial is tried again no more often than this.
const MOST_ATTEMPTS: u32 = 2;
/// Nor are there more further attempts than this share of all trials, but for one.
const AGAIN_AT_MOST: f64 = 0.5;

/// What is to be tried next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Another block, because so many points are not as precise as asked.
    Block {
        /// How many.
        wide: usize,
    },
    /// These again, because they were disturbed.
    Again(Vec<Trial>),
    /// Nothing.
    Nothing,
}

/// Which of the attempts at one trial counts: the first that was not disturbed, else the least disturbed. `attempts` must
/// not be empty.
pub(crate) fn counted(attempts: &[&TrialResult], usual: &Usual) -> usize {
    let quiet = |result: &&TrialResult| !is_disturbed(result, usual);
    attempts.iter().position(quiet).unwrap_or_else(|| {
        let share = |index: &usize| attempts[*index].disturbance.map_or(0.0, |seen| seen.share());
        (0..attempts.len()).min_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0)
    })
}

fn is_disturbed(result: &TrialResult, usual: &Usual) -> bool {
    result.disturbance.is_some_and(|seen| usual.is_beyond(&seen))
}

impl Lab {
    /// Every attempt at every planned trial of which there is a record, if only of its beginning.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (PathBuf, Trial)> {
        let attempts = |trial: &Trial| {
            let trial = *trial;
            (0..=MOST_ATTEMPTS).map(move |attempt| Trial { attempt, ..trial })
        };
        let folders = self.trials().iter().flat_map(attempts).map(|trial| (self.trial_folder(&trial), trial));
        folders.filter(|(folder, _)| folder.exists())
    }

    /// Every attempt that is done.
    fn done(&self) -> Result<Vec<(Trial, TrialResult)>, RecordError> {
        let done = self.begun().filter(|(folder, _)| folder.join(ANSWER).exists());
        done.map(|(folder, trial)| Ok((trial, read_json(&folder.join(ANSWER))?))).collect()
    }

    /// What disturbance is usual, by the first attempts that are done.
    ///
    /// # Errors
    /// Fails where an answer cannot be read.
    pub(crate) fn usual(&self) -> Result<Usual, RecordError> {
        Ok(self.usual_of(&self.done()?))
    }

    fn usual_of(&self, done: &[(Trial, TrialResult)]) -> Usual {
        let first = done.iter().filter(|(trial, _)| trial.attempt == 0);
        let shares: Vec<f64> = first.filter_map(|(_, result)| Some(result.disturbance?.share())).collect();
        Usual::of(&shares, self.experiment().disturbed_over)
    }

    /// What is to be tried once all planned trials are done, so long after the run was begun.
    ///
    /// # Errors
    /// Fails where an answer cannot be read.
    pub(crate) fn next(&self, elapsed: Duration) -> Result<Next, RecordError> {
        let done = self.done()?;
        let usual = self.usual_of(&done);
        let wide = self.wide(&done, &usual);
        let blocks = self.trials().len() / self.combinations().len();
        if let (Some(precision), true) = (&self.experiment().precision, wide > 0) {
            let in_time = precision.time_at_most.is_none_or(|most| elapsed < most);
            if in_time && blocks < precision.repeats_at_most as usize {
                return Ok(Next::Block { wide });
            }
        }
        let again = self.again(&done, &usual);
        Ok(if again.is_empty() { Next::Nothing } else { Next::Again(again) })
    }

    /// How many points are not as precise as asked, by the trials that were not disturbed.
    fn wide(&self, done: &[(Trial, TrialResult)], usual: &Usual) -> usize {
        let Some(precision) = &self.experiment().precision else { return 0 };
        let is_wide = |combination: &usize| {
            let quiet = done
                .iter()
                .map(|(_, result)| result)
                .filter(|result| result.combination == *combination && !is_disturbed(result, usual));
            matches!(reached(quiet, precision), Reached::More(_))
        };
        (0..self.combinations().len()).filter(is_wide).count()
    }

    /// The next attempts at what was disturbed, within what is allowed of them.
    fn again(&self, done: &[(Trial, TrialResult)], usual: &Usual) -> Vec<Trial> {
        let spent = done.iter().filter(|(trial, _)| trial.attempt > 0).count();
        let allowed = ((self.trials().len() as f64 * AGAIN_AT_MOST) as usize).max(1).saturating_sub(spent);
        let next = |trial: &Trial| {
            let attempts: Vec<&(Trial, TrialResult)> =
                done.iter().filter(|(attempt, _)| attempt.number == trial.number).collect();
            let disturbed = attempts.iter().all(|(_, result)| is_disturbed(result, usual));
            let last = attempts.iter().map(|(attempt, _)| attempt.attempt).max()?;
            (disturbed && last < MOST_ATTEMPTS).then_some(Trial { attempt: last + 1, ..*trial })
        };
        self.trials().iter().filter_map(next).take(allowed).collect()
    }
}
