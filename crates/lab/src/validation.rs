//! Validation of predictions: low loads are measured, higher ones predicted before they are measured, and then measured.
//!
//! Everything alternates in rounds, so that a drift of the machine falls on all loads alike. A prediction is on disk, with its time and
//! its hash, before the first request of the load that it is about. A load during which other programs disturbed the machine is
//! repeated, and so is a predicted load during which the processors had another speed than in the full loads; that decision does not
//! depend on any response time.

mod compare;
mod event;
mod listen_queue;
mod series;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_analysis::{
    LEAST_FULL, MachineDrift, VALIDATION, ValidationReport, falling_throughput, known_station,
};
use kendall_archive::{Build, Machine, utc_now};
use kendall_experiment::{Experiment, RunError};
use kendall_load::Workload;
use kendall_prediction::{KnownStation, NothingObserved};
use kendall_record::RecordError;
use kendall_system::Home;

pub use event::ValidationEvent;

use crate::cores::OnCores;
use crate::peak::{PeakError, PeakSetting, light_load};
use crate::processor::{Awake, longer_after_sleep};
use crate::surroundings::LoadedServers;
use crate::trial::Bench;
use crate::trial_error::TrialError;
use series::Series;

/// The full load has this many times the users that keep the server busy, so that requests wait: whether a queue ends depends on what the
/// server answers while there is one, which may be less.
const FULL: u32 = 4;
/// No more users than this at full load.
const MOST_USERS: u32 = 128;
/// The answers that one user gets while the throughput of closed populations is measured: with fewer, noise looks like a fall of the
/// throughput as users are added.
const LIGHT_ANSWERS: usize = 400;

/// The server to validate, and the loads.
pub struct Validation<'a> {
    /// The server, as a URL that may be shown.
    pub target: &'a str,
    /// Makes the requests from a seed.
    pub workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    /// The station of one of kendall's own servers.
    pub known: Option<KnownStation>,
    /// How the server is loaded.
    pub setting: &'a PeakSetting,
    /// The loads to predict from, as shares of the capacity.
    pub low: &'a [f64],
    /// The loads to predict, as shares of the capacity.
    pub high: &'a [f64],
    /// How often each low load and the full load are measured.
    pub rounds: u32,
    /// How long a low load or a full load takes.
    pub low_duration: Duration,
    /// How long a predicted load takes.
    pub high_duration: Duration,
    /// Whether the processors of this machine shall stay awake, where that is permitted.
    pub keep_awake: bool,
    /// The new folder for records and predictions.
    pub folder: &'a Path,
}

/// The reason why a validation ended.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ValidationError {
    #[error(transparent)]
    Load(#[from] PeakError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the low loads give no prediction: {0}")]
    Nothing(#[from] NothingObserved),
    #[error("interrupted; the measurements are in {}", .0.display())]
    Interrupted(PathBuf),
}

/// The server of an experiment, started for a validation.
pub struct ExperimentServer<'a> {
    /// The target, as shown to the user.
    pub target: &'a str,
    /// Makes its requests from a seed.
    pub workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    /// The processes of the server.
    pub servers: LoadedServers,
    /// Its station, of one of kendall's own.
    pub known: Option<KnownStation>,
}

/// Starts the server of an experiment's first combination, passes it to `use_it`, and stops it. `program` is the kendall program, which
/// serves it; its log goes to `folder`.
///
/// # Errors
/// Fails where the server cannot be started or stopped.
pub fn with_server<T>(
    experiment: &Experiment,
    program: &Path,
    folder: &Path,
    use_it: impl FnOnce(&ExperimentServer<'_>) -> T,
) -> Result<T, TrialError> {
    let system = experiment.system;
    let bench = Bench { program, system, bed: None, files: &experiment.folder, fleet: None };
    let combination = &experiment.combinations()[0];
    // Where they share a core, the generator lengthens the service of the server: in open loads, but hardly in those of closed users.
    let confined = match system.home {
        Home::Here => OnCores::as_many_as((system.station)(&combination.server).servers.get()),
        Home::Anywhere { .. } => None,
    };
    let server = bench.serve(combination, folder, None)?;
    drop(confined);
    let workload =
        |seed| bench.workload(server.address(), combination, seed).map_err(|error| error.to_string());
    let servers = server.pid().map_or(LoadedServers::Unknown, |pid| LoadedServers::Known(vec![pid]));
    let known = match system.home {
        Home::Here => {
            let classes = bench.workload(server.address(), combination, 0)?.classes();
            Some(known_station(system, combination, &classes))
        }
        Home::Anywhere { .. } => None,
    };
    let result = use_it(&ExperimentServer { target: &experiment.name, workload: &workload, servers, known });
    server.stop()?;
    Ok(result)
}

impl Validation<'_> {
    /// Measures, predicts and measures again.
    ///
    /// # Errors
    /// Fails where the server answers nothing, where a record cannot be written, and when `cancel` is set.
    pub fn run(
        &self,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
        cancel: &AtomicBool,
    ) -> Result<ValidationReport, ValidationError> {
        let started_utc = utc_now();
        let awake = self.keep_awake.then(Awake::keep).and_then(Result::ok);
        let light = light_load(self.workload, self.setting, LIGHT_ANSWERS, cancel)?;
        tell(&ValidationEvent::Light(&light));
        // A server that does not answer leaves no folder.
        fs::create_dir_all(self.folder)
            .map_err(|source| RecordError::Write { path: self.folder.into(), source })?;
        let is_timed = awake.is_some() || longer_after_sleep().is_none();
        let mut series = Series::new(self, is_timed, cancel);
        let users = (FULL * light.busy_users()).clamp(LEAST_FULL, MOST_USERS).min(self.setting.connections);
        series.rounds(users, &light, tell)?;
        let (loads, no_prediction) = series.high_loads(users, &light, tell)?;
        let recorded = series.observed()?;
        let drift = MachineDrift::of(&series.full_per_s, &series.computation_s);
        let mut doubts = recorded.doubts;
        if doubts.is_empty() {
            doubts.extend(falling_throughput(&light.throughput_per_s, drift.capacity_sd));
        }
        doubts.extend(listen_queue::doubt(&series.no_room));
        let closed = light.throughput_per_s.into_iter().chain(recorded.closed).collect();
        let Series { full_per_s, computation_s, low, .. } = series;
        let report = ValidationReport {
            target: self.target.into(),
            started_utc,
            machine: Machine::here(),
            kendall: env!("CARGO_PKG_VERSION").into(),
            build: Some(Build::here()),
            seed: self.setting.seed,
            rounds: self.rounds,
            low_duration_s: self.low_duration.as_secs_f64(),
            high_duration_s: self.high_duration.as_secs_f64(),
            alone_s: light.response_s,
            closed,
            drift,
            full_per_s,
            computation_s,
            awake: awake.is_some(),
            low,
            loads,
            no_prediction,
            repeated: series.repeated,
            doubts,
        };
        kendall_archive::write_json(&self.folder.join(VALIDATION), &report)?;
        Ok(report)
    }
}
