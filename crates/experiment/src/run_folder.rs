//! The folder of a run: its combinations, its trials in order, which are done and which are left.

use std::path::{Path, PathBuf};

use kendall_archive::{read_json, trial_folder};
use kendall_link::LinkSettings;
use kendall_record::RecordError;
use kendall_system::System;
use serde::{Deserialize, Serialize};

use crate::experiment::{Calibration, Combination, Experiment, Level};
use crate::file::{ExperimentError, read_with_text};
use crate::load::Load;
use crate::schedule::{Trial, block, schedule};

/// The file of a trial's answer, in its folder. It exists once the trial is done.
pub const ANSWER: &str = "answer.json";
/// The most attempts at a trial.
pub const MOST_ATTEMPTS: u32 = 2;

/// The reason why a folder cannot be read as a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RunError {
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{name}: {why}")]
    Setting { name: &'static str, why: String },
    #[error("{} holds no run: it has no experiment.toml", .0.display())]
    NoRun(PathBuf),
}

/// The capacity found for one combination of server and workload settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The settings of server and workload.
    pub settings: String,
    /// Requests per second.
    pub capacity_per_s: f64,
}

/// A run of an experiment in its folder.
#[derive(Debug)]
pub struct RunFolder {
    experiment: Experiment,
    text: String,
    folder: PathBuf,
    combinations: Vec<Combination>,
    /// For each combination the first one with the same workload and load.
    asks: Vec<usize>,
    loads: Vec<Load>,
    links: Vec<Option<LinkSettings>>,
    trials: Vec<Trial>,
}

impl RunFolder {
    /// Opens the run in a folder, whether it is done or was interrupted.
    ///
    /// # Errors
    /// Fails where the folder holds no run, or its experiment file has a fault.
    pub fn open(folder: &Path, systems: &'static [System]) -> Result<Self, RunError> {
        let file = folder.join("experiment.toml");
        if !file.exists() {
            return Err(RunError::NoRun(folder.into()));
        }
        let (experiment, text) = read_with_text(&file, systems)?;
        Ok(Self { text, ..Self::new(experiment, folder.into())? })
    }

    /// A run of an experiment in a folder, with the trials that are done.
    ///
    /// # Errors
    /// Fails where a combination has inconsistent settings.
    pub fn new(experiment: Experiment, folder: PathBuf) -> Result<Self, RunError> {
        let combinations = experiment.combinations();
        let at_fault = |(name, why)| RunError::Setting { name, why };
        let load = |combination| experiment.load(combination);
        let loads = combinations.iter().map(load).collect::<Result<_, _>>().map_err(at_fault)?;
        let link = |combination| experiment.link(combination);
        let links = combinations.iter().map(link).collect::<Result<_, _>>().map_err(at_fault)?;
        let seed = experiment.seed.unwrap_or_default();
        let asks = asks(&combinations);
        let trials = schedule(&asks, experiment.repeats, seed);
        let text = experiment.to_toml();
        let mut run = Self { experiment, text, folder, combinations, asks, loads, links, trials };
        // A resumed run may have more blocks than the planned ones.
        while run.experiment.precision.is_some()
            && run.next_block().iter().any(|trial| run.trial_folder(trial).exists())
        {
            run.plan_block();
        }
        Ok(run)
    }

    /// The folder of its results.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The text of the experiment, as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Every combination of its factors' values, in the order of the file.
    pub fn combinations(&self) -> &[Combination] {
        &self.combinations
    }

    /// The first combination with the same workload and load as this one.
    pub fn asks(&self, combination: usize) -> usize {
        self.asks[combination]
    }

    /// The load of a combination.
    pub fn load(&self, combination: usize) -> &Load {
        &self.loads[combination]
    }

    /// The link of a combination, if it has one.
    pub fn link(&self, combination: usize) -> Option<&LinkSettings> {
        self.links[combination].as_ref()
    }

    /// Whether any of its trials crosses an emulated link.
    pub fn crosses_link(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// The planned trials, all of them first attempts.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Plans another block, which repeats every combination, and returns its trials.
    pub fn plan_block(&mut self) -> Vec<Trial> {
        let block = self.next_block();
        self.trials.extend(&block);
        block
    }

    /// The block after those that are planned.
    fn next_block(&self) -> Vec<Trial> {
        let blocks = self.trials.len() / self.combinations.len();
        block(&self.asks, blocks as u32, self.experiment.seed.unwrap_or_default())
    }

    /// Whether a trial has an answer.
    pub fn is_done(&self, trial: &Trial) -> bool {
        self.trial_folder(trial).join(ANSWER).exists()
    }

    /// How many trials are done.
    pub fn trials_done(&self) -> usize {
        self.trials.iter().filter(|trial| self.is_done(trial)).count()
    }

    /// The folder of one attempt at a trial.
    pub fn trial_folder(&self, trial: &Trial) -> PathBuf {
        let combination = &self.combinations[trial.combination];
        let folder = |level: &dyn Fn(&Level) -> String| {
            let levels: Vec<(&str, String)> =
                combination.levels.iter().map(|own| (own.0, level(own))).collect();
            let mut name = trial_folder(trial.number, &levels);
            if trial.attempt > 0 {
                name += &format!("+again-{}", trial.attempt);
            }
            self.folder.join("trials").join(name)
        };
        let named = folder(&|(_, level)| level.to_string());
        // In records from before long values had letters, the folder's name contained the values.
        let former = folder(&|(name, level)| combination.value(name).unwrap_or(level).to_string());
        if former.exists() { former } else { named }
    }

    /// Every recorded attempt at every planned trial, complete or not, with its folder.
    pub fn begun(&self) -> impl Iterator<Item = (PathBuf, Trial)> {
        let attempts = |trial: &Trial| {
            let trial = *trial;
            (0..=MOST_ATTEMPTS).map(move |attempt| Trial { attempt, ..trial })
        };
        let folders = self.trials.iter().flat_map(attempts).map(|trial| (self.trial_folder(&trial), trial));
        folders.filter(|(folder, _)| folder.exists())
    }

    /// The combination whose capacity is 100 % for another.
    pub fn calibrated<'a>(&'a self, combination: &'a Combination) -> &'a Combination {
        match self.experiment.calibration {
            Calibration::Each => combination,
            Calibration::Once => &self.combinations[0],
        }
    }

    /// The capacities found so far.
    ///
    /// # Errors
    /// Fails where their file cannot be read.
    pub fn capacities(&self) -> Result<Vec<Capacity>, RecordError> {
        let file = self.folder.join("calibration.json");
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    /// The rate of 100 % for a combination, in requests per second: from the experiment, or as measured.
    pub fn capacity_of(&self, combination: &Combination, capacities: &[Capacity]) -> Option<f64> {
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

/// The settings of server and workload, as the text that identifies them.
pub fn settings(combination: &Combination) -> String {
    let all = combination.server.iter().chain(combination.workload.iter());
    all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}
