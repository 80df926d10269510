//! The what-if view: response times of a run or of a bare station under other conditions, computed by the code of `kendall predict` and
//! `kendall solve`.
//!
//! A question is the query of an address, so an address can be shared. While a control moves, the page requests previews, which do less
//! of the same work; once the controls rest, it requests the full answer, which has the numbers of the command below it.
//!
//! Runs are fitted once and kept; this is the only state.

mod curve;
pub(crate) mod question;
mod run;
mod shown;
mod station;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kendall_system::System;

use crate::id::RunId;
use crate::run::changed;

use question::ServiceLaw;
pub(crate) use question::{Detail, Question};
pub(crate) use run::FittedRun;
pub(crate) use shown::WhatIf;
use station::BareStation;

/// The number of fitted runs that are kept. Each has up to about 50 MB of drawn service times.
const MOST_KEPT: usize = 3;

/// Answers a question; one about a run needs the fitted run.
///
/// # Errors
/// Fails where the values describe no station.
pub(crate) fn answer(
    question: &Question,
    run: Option<&FittedRun>,
    detail: Detail,
    with_curve: bool,
) -> Result<WhatIf, String> {
    match (question.law, run) {
        (ServiceLaw::Measured, Some(run)) => Ok(run.answer(question, detail, with_curve)),
        (ServiceLaw::Measured, None) => {
            Err("only a run has a measured law; name one, or choose a law".into())
        }
        (ServiceLaw::Of(kind), None) => BareStation::of(question, kind).answer(question, detail, with_curve),
        (ServiceLaw::Of(kind), Some(run)) => {
            let filled = run.filled(question);
            let shown = BareStation::of(&filled, kind).answer(&filled, detail, with_curve)?;
            Ok(run.beside(shown))
        }
    }
}

/// The number of finished trials of a run, and the time of the last one: a fit is of these.
type AsOf = (usize, Option<SystemTime>);

fn as_of(folder: &Path) -> AsOf {
    let trials = std::fs::read_dir(folder.join("trials")).into_iter().flatten().flatten();
    let folders = trials.map(|trial| trial.path()).chain([folder.to_owned()]);
    let answers = folders.filter_map(|folder| changed(&folder.join("answer.json")));
    answers.fold((0, None), |(count, newest), at| (count + 1, newest.max(Some(at))))
}

/// A fitted run that is kept.
struct KeptRun {
    id: RunId,
    as_of: AsOf,
    fitted: Arc<FittedRun>,
}

/// Fitted runs, the most recently used one last. A run with new trials is fitted again.
pub(crate) struct FittedRuns {
    systems: &'static [System],
    kept: Mutex<Vec<KeptRun>>,
}

impl FittedRuns {
    pub(crate) fn new(systems: &'static [System]) -> Self {
        Self { systems, kept: Mutex::default() }
    }

    /// The fitted run of a question, if it is kept and no trial has been added since.
    pub(crate) fn kept(&self, id: &RunId, group: Option<&str>, folder: &Path) -> Option<Arc<FittedRun>> {
        let now = as_of(folder);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &KeptRun| kept.id == *id && kept.as_of == now && kept.fitted.is_of(group);
        let at = kept.iter().position(is_it)?;
        let used = kept.remove(at);
        let fitted = Arc::clone(&used.fitted);
        kept.push(used);
        Some(fitted)
    }

    /// Fits a run, unless another request has done so meanwhile. Takes about a second.
    ///
    /// # Errors
    /// As [`FittedRun::read`].
    pub(crate) fn fitted(
        &self,
        id: &RunId,
        group: Option<&str>,
        folder: &Path,
    ) -> Result<Arc<FittedRun>, String> {
        if let Some(fitted) = self.kept(id, group, folder) {
            return Ok(fitted);
        }
        let as_of = as_of(folder);
        let fitted = Arc::new(FittedRun::read(folder, group, self.systems)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.id != *id || !kept.fitted.is_of(group));
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        kept.push(KeptRun { id: id.clone(), as_of, fitted: Arc::clone(&fitted) });
        Ok(fitted)
    }
}

impl fmt::Debug for FittedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FittedRuns").finish_non_exhaustive()
    }
}
