//! A run of an experiment: its folder, its trials in order, what is done and what is left.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};

use kendall_archive::{Manifest, folder_stamp, read_json, trial_folder, utc_now};
use kendall_link::{Asked, LinkError};
use kendall_record::RecordError;
use serde::{Deserialize, Serialize};

use crate::experiment::{Calibration, Combination, Experiment};
use crate::file::{ExperimentError, read};
use crate::load::Load;
use crate::schedule::{Trial, block, schedule};
use crate::trial_error::TrialError;
use crate::trial_result::ANSWER;
use crate::unstamped::Unstamped;
use kendall_system::{Kind, Parameter, System, Value};

/// Why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LabError {
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("trial {trial}: {source}\nWhat is done is kept; go on with: kendall run --resume {}", folder.display())]
    Trial { trial: String, folder: PathBuf, source: TrialError },
    #[error("{name}: {why}")]
    Load { name: &'static str, why: String },
    #[error("another kendall is running in {}; wait for it, or stop it", .0.display())]
    Busy(PathBuf),
    #[error("{} holds no run: it has no experiment.toml", .0.display())]
    NoRun(PathBuf),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every trial is done.
    Complete,
    /// It was stopped; what is done is kept.
    Interrupted,
}

/// The capacity that was found for one way of serving and asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Capacity {
    /// The settings of server and workload.
    pub(crate) settings: String,
    /// Requests per second.
    pub(crate) capacity_per_s: f64,
}

/// What was found out of a server that stamps nothing, for one way of serving and asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beforehand {
    /// The settings of server and workload.
    pub(crate) settings: String,
    pub(crate) found: Unstamped,
}

/// A run of an experiment in its folder.
#[derive(Debug)]
pub struct Lab {
    pub(crate) experiment: Experiment,
    pub(crate) folder: PathBuf,
    pub(crate) combinations: Vec<Combination>,
    /// For each combination the first one that is asked the same.
    pub(crate) asks: Vec<usize>,
    /// The load of each combination.
    pub(crate) loads: Vec<Load>,
    /// The link of each combination that has one.
    pub(crate) links: Vec<Option<Asked>>,
    pub(crate) trials: Vec<Trial>,
}

impl Lab {
    /// Begins a new run, in a folder of its own under `results`. A seed is drawn if the experiment names none,
    /// and the files that it reads are copied in, so that the folder is enough to run it again.
    ///
    /// # Errors
    /// Fails where the folder cannot be written.
    pub fn create(mut experiment: Experiment, results: &Path) -> Result<Self, LabError> {
        let seed = *experiment.seed.get_or_insert_with(drawn_seed);
        let folder = new_folder(&results.join(&experiment.name))?;
        copy_files(&mut experiment, &folder)?;
        let file = folder.join("experiment.toml");
        fs::write(&file, experiment.to_toml()).map_err(|source| RecordError::Write { path: file, source })?;
        Manifest::here(&experiment.name, seed).write(&folder)?;
        Self::of(experiment, folder)
    }

    /// Takes up a run that was interrupted, or looks at one that is done.
    ///
    /// # Errors
    /// Fails where the folder holds no run.
    pub fn resume(folder: &Path, systems: &'static [System]) -> Result<Self, LabError> {
        let file = folder.join("experiment.toml");
        if !file.exists() {
            return Err(LabError::NoRun(folder.into()));
        }
        Self::of(read(&file, systems)?, folder.into())
    }

    fn of(experiment: Experiment, folder: PathBuf) -> Result<Self, LabError> {
        let combinations = experiment.combinations();
        let load = |combination| experiment.load(combination);
        let loads = combinations.iter().map(load).collect::<Result<_, _>>();
        let loads = loads.map_err(|(name, why)| LabError::Load { name, why })?;
        let link = |combination| experiment.link(combination);
        let links = combinations.iter().map(link).collect::<Result<_, _>>();
        let links = links.map_err(|(name, why)| LabError::Load { name, why })?;
        let seed = experiment.seed.unwrap_or_default();
        let asks = asks(&combinations);
        let trials = schedule(&asks, experiment.repeats, seed);
        let mut lab = Self { experiment, folder, combinations, asks, loads, links, trials };
        // A run that was taken up again may have gone further than what it does in any case.
        while lab.experiment.precision.is_some()
            && lab.next_block().iter().any(|trial| lab.trial_folder(trial).exists())
        {
            lab.trials.extend(lab.next_block());
        }
        Ok(lab)
    }

    /// Where its results are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    pub(crate) fn combinations(&self) -> &[Combination] {
        &self.combinations
    }

    /// The first combination that is asked the same as this one.
    pub(crate) fn asks(&self, combination: usize) -> usize {
        self.asks[combination]
    }

    /// How many trials are planned.
    pub fn trials_planned(&self) -> usize {
        self.trials.len()
    }

    /// How many trials are done.
    pub fn trials_done(&self) -> usize {
        self.trials.iter().filter(|trial| self.is_done(trial)).count()
    }

    /// The trials that are planned, first attempts all.
    pub(crate) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The block after those that are planned.
    pub(crate) fn next_block(&self) -> Vec<Trial> {
        let blocks = self.trials.len() / self.combinations.len();
        block(&self.asks, blocks as u32, self.experiment.seed.unwrap_or_default())
    }

    pub(crate) fn is_done(&self, trial: &Trial) -> bool {
        self.trial_folder(trial).join(ANSWER).exists()
    }

    pub(crate) fn trial_folder(&self, trial: &Trial) -> PathBuf {
        let levels = &self.combinations[trial.combination].levels;
        let levels: Vec<(&str, String)> =
            levels.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let mut name = trial_folder(trial.number, &levels);
        if trial.attempt > 0 {
            name += &format!("+again-{}", trial.attempt);
        }
        self.folder.join("trials").join(name)
    }

    pub(crate) fn load(&self, combination: usize) -> &Load {
        &self.loads[combination]
    }

    /// Whether any of its trials crosses an emulated link.
    pub fn crosses_link(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    pub(crate) fn known_beforehand(&self) -> Result<Vec<Beforehand>, RecordError> {
        let file = self.folder.join("beforehand.json");
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    pub(crate) fn beforehand<'k>(
        &self,
        combination: &Combination,
        known: &'k [Beforehand],
    ) -> Option<&'k Unstamped> {
        let settings = settings(combination);
        known.iter().find(|known| known.settings == settings).map(|known| &known.found)
    }

    /// What was found out of the server of a combination, where it stamps nothing.
    pub(crate) fn unstamped(&self, combination: &Combination) -> Result<Option<Unstamped>, RecordError> {
        Ok(self.beforehand(combination, &self.known_beforehand()?).cloned())
    }

    /// The combination whose capacity is 100 % for another.
    pub(crate) fn calibrated<'a>(&'a self, combination: &'a Combination) -> &'a Combination {
        match self.experiment.calibration {
            Calibration::Each => combination,
            Calibration::Once => &self.combinations[0],
        }
    }

    /// The capacities found so far.
    pub(crate) fn capacities(&self) -> Result<Vec<Capacity>, RecordError> {
        let file = self.folder.join("calibration.json");
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    /// What 100 % is for a combination: as the experiment says, or as it was found.
    pub(crate) fn capacity_of(&self, combination: &Combination, capacities: &[Capacity]) -> Option<f64> {
        let found = || {
            let settings = settings(self.calibrated(combination));
            capacities.iter().find(|capacity| capacity.settings == settings).map(|found| found.capacity_per_s)
        };
        combination.load.number("capacity").or_else(found)
    }
}

/// For each combination the first one with the same workload and load.
fn asks(combinations: &[Combination]) -> Vec<usize> {
    let same = |a: &Combination, b: &Combination| a.workload == b.workload && a.load == b.load;
    let first = |this| combinations.iter().position(|other| same(this, other));
    combinations.iter().map(|this| first(this).expect("each is asked as itself")).collect()
}

/// A folder of its own for a run that begins now, even if another begins in the same second.
fn new_folder(parent: &Path) -> Result<PathBuf, RecordError> {
    let failed = |path: &Path, source| RecordError::Write { path: path.into(), source };
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let stamp = folder_stamp();
    let names = std::iter::once(stamp.clone()).chain((2..).map(|i| format!("{stamp}-{i}")));
    for folder in names.map(|name| parent.join(name)) {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(failed(&folder, source)),
        }
    }
    unreachable!("the names do not end")
}

/// A seed that nobody can foresee, within what TOML can write down.
pub fn drawn_seed() -> u64 {
    RandomState::new().hash_one(utc_now()) >> 1
}

/// The settings of server and workload, as text.
pub(crate) fn settings(combination: &Combination) -> String {
    let all = combination.server.iter().chain(combination.workload.iter());
    all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// Copies the files that an experiment reads into its folder, and has it read the copies.
fn copy_files(experiment: &mut Experiment, folder: &Path) -> Result<(), RecordError> {
    let is_file = |parameter: &Parameter| parameter.name == "trace" || matches!(parameter.kind, Kind::File);
    let varied = experiment.variables.iter_mut().filter(|variable| is_file(variable.parameter));
    let varied = varied.flat_map(|variable| &mut variable.values);
    let of_cases = experiment.cases.iter_mut().flat_map(|case| &mut case.values);
    let of_cases = of_cases.filter(|(_, parameter, _)| is_file(parameter)).map(|(.., value)| value);
    for (i, value) in varied.chain(of_cases).enumerate() {
        let Value::Word(file) = value else { continue };
        let from = experiment.folder.join(&*file);
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let copy = format!("file-{}-{name}", i + 1);
        fs::copy(&from, folder.join(&copy)).map_err(|source| RecordError::Read { path: from, source })?;
        *file = copy;
    }
    experiment.folder = folder.into();
    Ok(())
}
