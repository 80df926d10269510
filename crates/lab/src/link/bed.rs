//! The emulated link that the trials of a run cross.
//!
//! A run over a link lives at the client's end of it: the whole process moves there before it has a second thread,
//! because only then may an ordinary user. The system under test is started at the server's end. Trials that cross no
//! link run at the server's end as a whole, over its loopback.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kendall_link::calibrate::Calibration;
use kendall_link::{Asked, BackEnd, EmulatedLink, End, LinkError, Outcome, SERVER};
use kendall_linkmodel::Settings as Hop;
use kendall_load::Progress;
use kendall_record::RecordError;
use kendall_station::random::{Purpose, derive};
use serde::{Deserialize, Serialize};

use super::back_end;
use crate::system::Settings;
use crate::trial::{Bench, Task, TrialError, TrialResult};

/// What every flow did on the link, in a trial's folder.
const TABLE: &str = "link.parquet";

/// What a trial's `answer.json` says of the link that it crossed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// How the link was emulated.
    pub emulated: String,
    /// The hops from client to server, as asked for.
    pub up: Vec<String>,
    /// The hops from server to client, as asked for.
    pub down: Vec<String>,
    /// What was measured on it before the first trial that crossed it.
    pub measured: Option<Calibration>,
    /// What it did during the trial.
    pub outcome: Outcome,
}

/// The emulated link of a run.
pub(crate) struct Bed {
    link: Mutex<EmulatedLink>,
    server: End,
    /// What was measured so far, by what was asked for.
    measured: Mutex<Vec<(Asked, Calibration)>>,
}

impl fmt::Debug for Bed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bed")
    }
}

impl Bed {
    /// Lays the link and moves this process, which must have one thread only, to the client's end of it.
    pub(crate) fn lay(program: &Path, settings: &Settings) -> Result<Self, LinkError> {
        let wanted = settings.word("back-end").and_then(|name| back_end(name).ok());
        let back_ends = wanted.map_or_else(|| BackEnd::ALL.to_vec(), |one| vec![one]);
        let mut link = EmulatedLink::lay(program, &back_ends, settings.word("congestion"))?;
        link.join()?;
        link.client().enter()?;
        let server = link.server().share()?;
        Ok(Self { link: Mutex::new(link), server, measured: Mutex::default() })
    }

    /// How the link is emulated.
    pub(crate) fn described(&self) -> String {
        self.link().described()
    }

    /// Does something at the server's end.
    pub(crate) fn at_server<T>(&self, what: impl FnOnce() -> T) -> Result<T, LinkError> {
        self.server.visit(what)
    }

    /// Where the system under test is to listen.
    pub(crate) fn listen() -> SocketAddr {
        (SERVER, 0).into()
    }

    /// What was measured on a link like this; measured now, if it was not before.
    pub(crate) fn measured(&self, asked: &Asked, seed: u64) -> Result<Calibration, LinkError> {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = measured.iter().find(|(known, _)| known == asked) {
            return Ok(known.clone());
        }
        let found = self.link().measure(asked, seed)?;
        measured.push((asked.clone(), found.clone()));
        Ok(found)
    }

    /// Lets the packets of a trial pass, and logs what they do in its folder.
    pub(crate) fn cross(&self, asked: &Asked, seed: u64, folder: &Path) -> Result<Crossing<'_>, LinkError> {
        let table = folder.join(TABLE);
        self.link().start(asked, seed, Some(&table))?;
        Ok(Crossing { bed: self, asked: asked.clone(), open: true })
    }

    fn link(&self) -> MutexGuard<'_, EmulatedLink> {
        // Whoever failed with it in hand has left it as it was: each call on it is whole.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bench<'_> {
    /// Runs one trial over its link, or else over a loopback, and writes its record, but for `answer.json`.
    pub(crate) fn trial(
        &self,
        task: &Task<'_>,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<TrialResult, TrialError> {
        let (Some(bed), Some(asked)) = (self.bed, task.link) else {
            return self.off_link(|| self.trial_as_it_is(task, progress, cancel));
        };
        fs::create_dir_all(task.folder)
            .map_err(|source| RecordError::Write { path: task.folder.into(), source })?;
        // Chance on the link is none of the requests'.
        let seed = derive(task.trial.seed, Purpose::Trial, 0);
        let measures = task.combination.link.word("measure") != Some("off");
        let measured = measures.then(|| bed.measured(asked, !seed)).transpose()?;
        let crossing = bed.cross(asked, seed, task.folder)?;
        let mut result = self.trial_as_it_is(task, progress, cancel)?;
        result.link = Some(crossing.finish(measured, task.folder, result.run.start_ns)?);
        Ok(result)
    }

    /// Does something where client and server meet without a link.
    pub(crate) fn off_link<T>(&self, what: impl FnOnce() -> Result<T, TrialError>) -> Result<T, TrialError> {
        match self.bed {
            Some(bed) => bed.at_server(what)?,
            None => what(),
        }
    }
}

/// A trial that is crossing the link. Dropping it lets nothing pass any more.
#[derive(Debug)]
pub(crate) struct Crossing<'a> {
    bed: &'a Bed,
    asked: Asked,
    open: bool,
}

impl Crossing<'_> {
    /// Ends the crossing; what was logged becomes a table in the trial's folder, counted from its start.
    pub(crate) fn finish(
        mut self,
        measured: Option<Calibration>,
        folder: &Path,
        start_ns: i64,
    ) -> Result<LinkRecord, LinkError> {
        self.open = false;
        let outcome = self.bed.link().stop(Some((&folder.join(TABLE), start_ns)))?;
        let written = |way: &[Hop]| way.iter().map(ToString::to_string).collect();
        let (up, down) = (written(&self.asked.up), written(&self.asked.down));
        Ok(LinkRecord { emulated: self.bed.described(), up, down, measured, outcome })
    }
}

impl Drop for Crossing<'_> {
    fn drop(&mut self) {
        if self.open {
            // The trial has failed already, which is what there is to say.
            let _ = self.bed.link().stop(None);
        }
    }
}
