//! A run of an experiment: its folder, its trials in order, what is done and what is left.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_archive::live::LiveState;
use kendall_archive::{Manifest, folder_stamp, read_json, trial_folder, utc_now, write_json};
use kendall_link::{Asked, LinkError};
use kendall_load::Progress;
use kendall_record::RecordError;
use kendall_stats::random::{Purpose, derive};
use serde::{Deserialize, Serialize};

use crate::experiment::{Calibration, Combination, Experiment};
use crate::file::{ExperimentError, read};
use crate::link::Bed;
use crate::live::Live;
use crate::load::{Load, Schedule};
use crate::parameter::{Kind, Parameter, Value};
use crate::schedule::{Trial, block, schedule};
use crate::sequence::Next;
use crate::system::{Home, System};
use crate::trial::{Bench, Task};
use crate::trial_error::TrialError;
use crate::unstamped::Unstamped;
use crate::view::View;

/// What a trial takes beside its load: the server's start and stop, the record.
const AROUND: Duration = Duration::from_millis(250);
/// What finding the capacity takes.
const CALIBRATION: Duration = Duration::from_millis(2300);

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
    settings: String,
    /// Requests per second.
    pub(crate) capacity_per_s: f64,
}

/// What was found out of a server that stamps nothing, for one way of serving and asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Beforehand {
    /// The settings of server and workload.
    settings: String,
    found: Unstamped,
}

/// A run of an experiment in its folder.
#[derive(Debug)]
pub struct Lab {
    experiment: Experiment,
    folder: PathBuf,
    combinations: Vec<Combination>,
    /// For each combination the first one that is asked the same.
    asks: Vec<usize>,
    /// The load of each combination.
    loads: Vec<Load>,
    /// The link of each combination that has one.
    links: Vec<Option<Asked>>,
    trials: Vec<Trial>,
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
    fn next_block(&self) -> Vec<Trial> {
        let blocks = self.trials.len() / self.combinations.len();
        block(&self.asks, blocks as u32, self.experiment.seed.unwrap_or_default())
    }

    fn is_done(&self, trial: &Trial) -> bool {
        self.trial_folder(trial).join("answer.json").exists()
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

    /// Runs every trial that is not done, then more blocks while intervals are too wide, and again what was disturbed.
    /// `program` is what serves the system; setting `cancel` stops at once; the trial at hand is then not done.
    ///
    /// # Errors
    /// Fails where a server or the record fails; what is done is kept.
    pub fn run(&mut self, program: &Path, cancel: &AtomicBool) -> Result<Ended, LabError> {
        let _alone = self.alone()?;
        // Before there is a second thread.
        let bed = self.lay(program)?;
        let mut view = View::new(Live::start(self.folder.clone(), self.trials_done()));
        let ended = self.run_on(program, bed.as_ref(), &view, cancel);
        view.live.end(match &ended {
            Ok(Ended::Complete) => LiveState::Done,
            Ok(Ended::Interrupted) => LiveState::Interrupted,
            Err(why) => LiveState::Failed(why.to_string()),
        });
        ended
    }

    /// Runs what is not done, until nothing is left.
    fn run_on(
        &mut self,
        program: &Path,
        bed: Option<&Bed>,
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Ended, LabError> {
        let (system, files) = (self.experiment.system, self.experiment.folder.clone());
        let bench = Bench { program, system, bed, files: &files };
        let began = Instant::now();
        if let Some(relay) = bed.filter(|bed| bed.is_relay()) {
            view.line(&format!("The link is a {}.", relay.described()));
        }
        let mut left: Vec<Trial> = self.trials.iter().filter(|trial| !self.is_done(trial)).copied().collect();
        loop {
            if self.run_all(bench, &left, view, cancel)? == Ended::Interrupted {
                return Ok(Ended::Interrupted);
            }
            left = match self.next(began.elapsed())? {
                Next::Block { wide } => {
                    let points = if wide == 1 { "point is" } else { "points are" };
                    view.line(&format!("{wide} {points} not as precise as asked; another block"));
                    let block = self.next_block();
                    self.trials.extend(&block);
                    block
                }
                Next::Again(trials) => {
                    let them = if trials.len() == 1 { "trial was" } else { "trials were" };
                    view.line(&format!("{} {them} disturbed by other load; once more", trials.len()));
                    trials
                }
                Next::Nothing => break,
            };
        }
        let mut manifest = Manifest::read(&self.folder)?;
        manifest.ended_utc = Some(utc_now());
        manifest.write(&self.folder)?;
        Ok(Ended::Complete)
    }

    /// Runs these trials.
    fn run_all(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Ended, LabError> {
        let capacities = self.calibrate(bench, left, view, cancel)?;
        let unstamped = self.look_beforehand(bench, left, &capacities, view, cancel)?;
        let expected = left.iter().map(|trial| self.expected(trial, &capacities));
        view.plan(self.trials.len(), left.len(), expected.fold(Duration::ZERO, Duration::saturating_add));
        for trial in left {
            if cancel.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            let folder = self.trial_folder(trial);
            let combination = &self.combinations[trial.combination];
            let capacity_per_s = self.capacity_of(combination, &capacities);
            // What an interrupted trial left behind.
            drop(fs::remove_dir_all(&folder));
            let progress = Arc::new(Progress::default());
            let load = self.load(trial.combination);
            let aims = self.experiment.expected.iter().filter(|aim| aim.holds_for(combination));
            let expected = aims.map(|aim| aim.expectation).collect();
            let link = self.links[trial.combination].as_ref();
            let probing = self.experiment.probing;
            let unstamped = self.beforehand(combination, &unstamped);
            let folder = folder.as_path();
            let live = Some(&view.live);
            let task = Task {
                trial,
                combination,
                load,
                link,
                capacity_per_s,
                unstamped,
                folder,
                expected,
                probing,
                live,
            };
            let takes = self.expected(trial, &capacities);
            let result = view.watch(trial, &name(&combination.levels), takes, &progress, || {
                bench.trial(&task, &progress, cancel)
            });
            let result = result.map_err(|source| self.failed(folder, source))?;
            if cancel.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            write_json(&folder.join("answer.json"), &result)?;
            view.done(&result, folder, takes);
        }
        Ok(Ended::Complete)
    }

    /// Whether any of its trials crosses an emulated link.
    pub fn crosses_link(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// Lays the link that its trials cross, if any does, and moves this process to the client's end of it.
    fn lay(&self, program: &Path) -> Result<Option<Bed>, LabError> {
        if !self.crosses_link() {
            return Ok(None);
        }
        let combinations = self.combinations.iter().zip(&self.links);
        let transport = self.experiment.system.transport;
        let asked = combinations.filter_map(|(of, link)| Some((transport(&of.workload), link.as_ref()?)));
        let bed = Bed::lay(program, &self.combinations[0].link, &asked.collect::<Vec<_>>())?;
        let mut manifest = Manifest::read(&self.folder)?;
        manifest.link = bed.described();
        manifest.write(&self.folder)?;
        Ok(Some(bed))
    }

    /// Holds the run's folder for this process, until the file is closed.
    fn alone(&self) -> Result<File, LabError> {
        let path = self.folder.join(".lock");
        let file = File::create(&path).map_err(|source| RecordError::Write { path, source })?;
        file.try_lock().map_err(|_| LabError::Busy(self.folder.clone()))?;
        Ok(file)
    }

    /// Finds the capacity for each way of serving and asking whose rate is a share of it, once a run.
    fn calibrate(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Vec<Capacity>, LabError> {
        let file = self.folder.join("calibration.json");
        let mut capacities = self.capacities()?;
        for trial in left {
            let combination = &self.combinations[trial.combination];
            let asks = matches!(self.load(trial.combination).schedule, Schedule::Share(..));
            if !asks || self.capacity_of(combination, &capacities).is_some() || cancel.load(Ordering::Relaxed)
            {
                continue;
            }
            view.say("finding what the machine can do …");
            let folder = self.folder.join(format!("calibration-{}", capacities.len() + 1));
            let seed = derive(self.experiment.seed.unwrap_or_default(), Purpose::Trial, u64::MAX);
            let calibrated = self.calibrated(combination);
            let found = bench.off_link(|| bench.capacity_per_s(calibrated, &folder, seed, cancel));
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let capacity_per_s = found.map_err(|source| self.failed(&folder, source))?;
            drop(fs::remove_dir_all(&folder));
            view.line(&format!("The machine can do {capacity_per_s:.0} requests per second; that is 100 %."));
            capacities.push(Capacity { settings: settings(calibrated), capacity_per_s });
            write_json(&file, &capacities)?;
        }
        Ok(capacities)
    }

    /// Finds out what can be found out of a server that stamps nothing, once a run for each way of serving and asking.
    fn look_beforehand(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        capacities: &[Capacity],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Vec<Beforehand>, LabError> {
        let mut known = self.known_beforehand()?;
        if let Home::Here = self.experiment.system.home {
            return Ok(known);
        }
        for trial in left {
            let combination = &self.combinations[trial.combination];
            if self.beforehand(combination, &known).is_some() || cancel.load(Ordering::Relaxed) {
                continue;
            }
            view.say("finding out how long a lone request takes …");
            let folder = self.folder.join(format!("beforehand-{}", known.len() + 1));
            let seed = derive(self.experiment.seed.unwrap_or_default(), Purpose::Trial, u64::MAX - 1);
            // Of this combination itself: that of another is what 100 % is, and not what this one can do.
            let own = capacities.iter().find(|capacity| capacity.settings == settings(combination));
            let full_per_s =
                combination.load.number("capacity").or_else(|| own.map(|capacity| capacity.capacity_per_s));
            let found = bench.unstamped(combination, full_per_s, &folder, seed, cancel);
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let found = found.map_err(|source| self.failed(&folder, source))?;
            drop(fs::remove_dir_all(&folder));
            known.push(Beforehand { settings: settings(combination), found });
            write_json(&self.folder.join("beforehand.json"), &known)?;
        }
        Ok(known)
    }

    fn known_beforehand(&self) -> Result<Vec<Beforehand>, RecordError> {
        let file = self.folder.join("beforehand.json");
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    fn beforehand<'k>(&self, combination: &Combination, known: &'k [Beforehand]) -> Option<&'k Unstamped> {
        let settings = settings(combination);
        known.iter().find(|known| known.settings == settings).map(|known| &known.found)
    }

    /// What was found out of the server of a combination, where it stamps nothing.
    pub(crate) fn unstamped(&self, combination: &Combination) -> Result<Option<Unstamped>, RecordError> {
        Ok(self.beforehand(combination, &self.known_beforehand()?).cloned())
    }

    /// The combination whose capacity is 100 % for another.
    fn calibrated<'a>(&'a self, combination: &'a Combination) -> &'a Combination {
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

    fn expected(&self, trial: &Trial, capacities: &[Capacity]) -> Duration {
        let combination = &self.combinations[trial.combination];
        let load = self.load(trial.combination);
        let capacity = self.capacity_of(combination, capacities);
        let known = capacity.is_some() || !matches!(load.schedule, Schedule::Share(..));
        let sending = if known { load.expected(capacity) } else { load.duration.unwrap_or(CALIBRATION) };
        sending.saturating_add(AROUND)
    }

    fn failed(&self, folder: &Path, source: TrialError) -> LabError {
        let trial = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        LabError::Trial { trial, folder: self.folder.clone(), source }
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
fn settings(combination: &Combination) -> String {
    let all = combination.server.iter().chain(combination.workload.iter());
    all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn name(levels: &[(&'static str, Value)]) -> String {
    levels.iter().map(|(name, value)| format!(" {name}={value}")).collect::<Vec<_>>().join(",")
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
