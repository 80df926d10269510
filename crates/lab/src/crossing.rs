//! Runs a trial over the link of its combination, or without one.

use std::fs;
use std::sync::atomic::AtomicBool;

use kendall_analysis::TrialResult;
use kendall_load::Progress;
use kendall_record::RecordError;
use kendall_stats::random::{Purpose, derive};

use crate::trial::{Bench, Task};
use crate::trial_error::TrialError;

impl Bench<'_> {
    /// Runs one trial over its link, or over a loopback where it has none, and writes its record, except for `answer.json`.
    pub(crate) fn trial(
        &self,
        task: &Task<'_>,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<TrialResult, TrialError> {
        let (Some(bed), Some(asked)) = (self.bed, task.link) else {
            return self.off_link(|| self.trial_as_it_is(task, None, progress, cancel));
        };
        fs::create_dir_all(task.folder)
            .map_err(|source| RecordError::Write { path: task.folder.into(), source })?;
        // The link draws from its own seed, not from that of the requests.
        let seed = derive(task.trial.seed, Purpose::Trial, 0);
        let measures = task.combination.link.word("measure") != Some("off");
        let measured = measures.then(|| bed.measured(asked, !seed)).transpose()?;
        let transport = (self.system.transport)(&task.combination.workload);
        let mut crossing = bed.cross(asked, transport, seed, task.folder)?;
        let mut result = self.trial_as_it_is(task, Some(&mut crossing), progress, cancel)?;
        result.link = Some(crossing.finish(measured, result.run.start_ns)?);
        Ok(result)
    }

    /// Calls a function where client and server meet without a link.
    pub(crate) fn off_link<T>(&self, what: impl FnOnce() -> Result<T, TrialError>) -> Result<T, TrialError> {
        match self.bed {
            Some(bed) => bed.at_server(what)?,
            None => what(),
        }
    }
}
