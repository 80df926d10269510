//! Validation of predictions: low loads are measured, higher ones predicted before they are measured, and then measured.
//!
//! Everything alternates in rounds, so that a drift of the machine falls on all loads alike. A prediction is on disk, with its time and
//! its hash, before the first request of the load that it is about. A load during which other programs disturbed the machine is
//! repeated, and so is a predicted load during which the processors had another speed than in the full loads; that decision does not
//! depend on any response time.

mod compare;
mod event;
mod listen_queue;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_analysis::generator::Trust;
use kendall_analysis::{
    COMPUTATION, LowLoad, LowLoads, MachineDrift, Predicted, TrialResult, VALIDATION, Validated,
    ValidationReport, falling_throughput, known_station, recorded_loads,
};
use kendall_archive::{Build, Machine, utc_now};
use kendall_experiment::{Experiment, LOAD, Load, Probing, RunError};
use kendall_load::{Progress, Workload};
use kendall_prediction::{KnownStation, NoPrediction, NothingObserved, Prediction, Predictor, Question};
use kendall_record::RecordError;
use kendall_station::Estimate;
use kendall_stats::mean;
use kendall_stats::random::{Purpose, derive, shuffle, stream};
use kendall_system::{Home, Settings, Value};

use compare::{AnsweredQuestion, compared, low_load};
pub use event::ValidationEvent;

use crate::cores::OnCores;
use crate::load_trial::LoadTrial;
use crate::peak::{LightLoad, PeakError, PeakSetting, light_load};
use crate::processor::{Awake, ProcessorTimes, ProcessorWatch, longer_after_sleep};
use crate::surroundings::LoadedServers;
use crate::trial::Bench;
use crate::trial_error::TrialError;

/// The first part of a load, which fills the server.
const WARMUP: f64 = 0.1;
/// A disturbed load is repeated this many times at most.
const REPEATS: u32 = 2;
/// A predicted load is repeated if work took longer than in the full loads, or less time, by more than this share, which makes a mean at
/// 93 % of the capacity wrong by 14 %.
const OTHER_SPEED: f64 = 0.01;
/// The full load has this many times the users that keep the server busy, so that requests wait: whether a queue ends depends on what the
/// server answers while there is one, which may be less.
const FULL: u32 = 4;
/// No fewer users than this: a user who has an answer does not ask again at the same instant.
const LEAST_USERS: u32 = 8;
/// No more users than this at full load.
const MOST_USERS: u32 = 128;
/// A burst or a slow spell leaves as many requests as arrive in this time, in seconds; whether the server then recovers depends on what it
/// still sustains.
const QUEUE_S: f64 = 0.5;
/// No longer queue than this.
const MOST_QUEUED: u32 = 512;
/// The answers that one user gets while the throughput of closed populations is measured: with fewer, noise looks like a fall of the
/// throughput as users are added.
const LIGHT_ANSWERS: usize = 400;
/// The closed populations have the numbers below this, so that no load repeats their requests: a name can be registered only once.
const AFTER_LIGHT: u64 = 1 << 32;

/// The server to validate, and the loads.
pub struct Validation<'a> {
    /// The server, as a URL that may be shown.
    pub target: &'a str,
    /// Makes the requests from a seed.
    pub workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    /// The station of one of kendall's own servers, whose timestamps report service times.
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

/// The arrivals of one load.
#[derive(Clone, Copy)]
enum Arriving {
    AtRate(f64),
    Users(u32),
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
        let users = (FULL * light.busy_users()).clamp(LEAST_USERS, MOST_USERS).min(self.setting.connections);
        let at_full: Vec<f64> = light.throughput_per_s.iter().map(|point| point.1).collect();
        let most_per_s = at_full.into_iter().fold(0.0, f64::max);
        let queue = ((QUEUE_S * most_per_s) as u32).min(MOST_QUEUED).min(self.setting.connections);
        let queue = (queue >= 2 * users).then_some(queue);
        // The same rates in every round, so that the rounds of one rate are one load.
        for round in 0..self.rounds {
            tell(&ValidationEvent::Round(round + 1));
            series.round(round, most_per_s, users, queue, tell)?;
        }
        let (mut loads, mut no_prediction) = (Vec::new(), Vec::new());
        for (at, share) in self.high.iter().enumerate() {
            // The capacity of this minute.
            series.full(&format!("full-{}", at + 1), users, tell)?;
            match series.validate(*share, &light, tell)? {
                Ok(validated) => {
                    tell(&ValidationEvent::Measured(&validated));
                    loads.push(validated);
                }
                Err(why) => no_prediction.push(why.to_string()),
            }
        }
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

    fn load(&self, arriving: Arriving, duration: Duration) -> Result<Load, TrialError> {
        let mut settings = Settings::defaults(LOAD);
        match arriving {
            Arriving::AtRate(rate_per_s) => settings.set("rate", Value::Number(rate_per_s)),
            Arriving::Users(users) => {
                settings.set("arrivals", Value::Word("closed".into()));
                settings.set("users", Value::Whole(users.into()));
            }
        }
        settings.set("duration", Value::Time(duration));
        settings.set("warmup", Value::Time(duration.mul_f64(WARMUP)));
        settings.set("connections", Value::Whole(self.setting.connections.into()));
        settings.set("timeout", Value::Time(self.setting.timeout));
        Load::new(&settings, Path::new("."))
            .map_err(|(name, why)| TrialError::Workload { system: "a load", why: format!("{name}: {why}") })
    }
}

/// The loads of a validation, as they are made.
struct Series<'a> {
    of: &'a Validation<'a>,
    /// Whether a computation shows how fast the machine is: on a processor that is slower after a sleep it would show the load.
    is_timed: bool,
    cancel: &'a AtomicBool,
    /// The records that predictions are made from.
    folders: Vec<PathBuf>,
    made: u32,
    repeated: u32,
    /// The capacity as each full load measured it.
    full_per_s: Vec<Estimate>,
    /// The median time of a fixed computation during each load.
    computation_s: Vec<f64>,
    low: Vec<LowLoad>,
    /// How many connections found no room in a listen queue, by load.
    no_room: Vec<(String, u64)>,
}

impl<'a> Series<'a> {
    fn new(of: &'a Validation<'a>, is_timed: bool, cancel: &'a AtomicBool) -> Self {
        let (folders, full_per_s, computation_s) = (Vec::new(), Vec::new(), Vec::new());
        let (low, no_room) = (Vec::new(), Vec::new());
        Self { of, is_timed, cancel, folders, made: 0, repeated: 0, full_per_s, computation_s, low, no_room }
    }

    /// The low loads and the full load once each, in an order that is drawn, and the queue just after the full load.
    fn round(
        &mut self,
        round: u32,
        capacity_per_s: f64,
        users: u32,
        queue: Option<u32>,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<(), ValidationError> {
        let mut order: Vec<Option<f64>> = self.of.low.iter().copied().map(Some).chain([None]).collect();
        let mut rng = stream(self.of.setting.seed, Purpose::Order, u64::from(round));
        shuffle(&mut rng, &mut order);
        for share in order {
            match share {
                None => {
                    self.full(&format!("full-round-{}", round + 1), users, tell)?;
                    if let Some(queue) = queue {
                        let name = format!("queue-round-{}", round + 1);
                        let arriving = Arriving::Users(queue);
                        let made = self.undisturbed(&name, arriving, self.of.low_duration, &|_| 0.0, tell)?;
                        self.folders.push(made.folder);
                    }
                }
                Some(share) => {
                    let name = format!("low-{:.0}-round-{}", share * 100.0, round + 1);
                    let rate_per_s = share * capacity_per_s;
                    let arriving = Arriving::AtRate(rate_per_s);
                    let made = self.undisturbed(&name, arriving, self.of.low_duration, &|_| 0.0, tell)?;
                    self.folders.push(made.folder);
                    self.low.extend(low_load(round + 1, rate_per_s, &made.result));
                }
            }
        }
        Ok(())
    }

    fn full(
        &mut self,
        name: &str,
        users: u32,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<(), ValidationError> {
        let made = self.undisturbed(name, Arriving::Users(users), self.of.low_duration, &|_| 0.0, tell)?;
        self.folders.push(made.folder);
        self.full_per_s.extend(made.result.seen.and_then(|seen| seen.throughput_per_s));
        Ok(())
    }

    /// What is known by now.
    fn observed(&self) -> Result<LowLoads, ValidationError> {
        let folders: Vec<&Path> = self.folders.iter().map(PathBuf::as_path).collect();
        Ok(recorded_loads(&folders, self.of.known.clone())?)
    }

    /// Predicts a load, writes the prediction, and makes the load.
    fn validate(
        &mut self,
        share: f64,
        light: &LightLoad,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<Result<Validated, NoPrediction>, ValidationError> {
        let observed = self.observed()?.observed?.with_populations(&light.throughput_per_s);
        let predictor = Predictor::new(&observed, self.of.setting.seed);
        let capacity_per_s = match predictor.capacity_per_s(&Question::at(1.0, 1)) {
            Ok(capacity_per_s) => capacity_per_s,
            Err(why) => return Ok(Err(why)),
        };
        let rate_per_s = share * capacity_per_s.value;
        let counted_s = self.of.high_duration.as_secs_f64() * (1.0 - WARMUP);
        let question = Question::at(rate_per_s, (rate_per_s * counted_s) as u64);
        let prediction = match predictor.predict(&question) {
            Ok(prediction) => prediction,
            Err(why) => return Ok(Err(why)),
        };
        let predicted = self.written(share, prediction)?;
        tell(&ValidationEvent::Predicted(&predicted));
        let name = format!("high-{:.0}", share * 100.0);
        let arriving = Arriving::AtRate(rate_per_s);
        let other_speed = |times: &ProcessorTimes| {
            let slower = observed.slower(&times.by_second(0.0));
            slower.map_or(0.0, |slower| (mean(&slower) - 1.0).abs())
        };
        let MadeLoad { result, times, .. } =
            self.undisturbed(&name, arriving, self.of.high_duration, &other_speed, tell)?;
        let closed = &light.throughput_per_s;
        let capacity_per_s = capacity_per_s.value;
        let answered = AnsweredQuestion {
            observed: &observed,
            closed,
            question,
            seed: self.of.setting.seed,
            capacity_per_s,
        };
        Ok(Ok(Validated {
            compared: compared(&predicted.prediction, &result),
            at_speed: answered.at_speed(&times.by_second(0.0), &result),
            curve: result.seen.as_ref().map(|seen| seen.response.curve.clone()).unwrap_or_default(),
            predicted,
            baselines: observed.baselines(rate_per_s, capacity_per_s, closed),
            generator_limited: result.verdict.trust == Trust::GeneratorLimited,
            disturbed: is_disturbed(&result),
            unstable: result.grows,
        }))
    }

    /// Puts a prediction on disk.
    fn written(&self, share: f64, prediction: Prediction) -> Result<Predicted, ValidationError> {
        let path = self.of.folder.join(format!("prediction-{:.0}.json", share * 100.0));
        kendall_archive::write_json(&path, &prediction)?;
        let bytes = fs::read(&path).map_err(|source| RecordError::Read { path, source })?;
        let blake3 = kendall_archive::origin::fingerprint(&bytes);
        Ok(Predicted { share, written_utc: utc_now(), blake3, prediction })
    }

    /// Makes a load, and again where it was disturbed or where the processors had another speed, by what share; the record is that of the
    /// least disturbed one.
    fn undisturbed(
        &mut self,
        name: &str,
        arriving: Arriving,
        duration: Duration,
        other_speed: &dyn Fn(&ProcessorTimes) -> f64,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<MadeLoad, ValidationError> {
        let load = self.of.load(arriving, duration)?;
        let mut least: Option<((bool, f64), MadeLoad)> = None;
        for attempt in 0..=REPEATS {
            let attempted = if attempt == 0 { String::new() } else { format!("-attempt-{}", attempt + 1) };
            let made = self.made(&format!("{name}{attempted}"), &load)?;
            let disturbance = (is_disturbed(&made.result), other_speed(&made.times));
            if least.as_ref().is_none_or(|least| disturbance < least.0) {
                least = Some((disturbance, made));
            }
            let why = match disturbance {
                (true, _) => "other programs disturbed it",
                (false, other) if other > OTHER_SPEED => "the processors had another speed",
                _ => break,
            };
            if attempt < REPEATS {
                self.repeated += 1;
                tell(&ValidationEvent::Repeated(name, why));
            }
        }
        let made = least.expect("there is one attempt").1;
        self.no_room.push((name.into(), made.no_room));
        Ok(made)
    }

    /// Makes a load once.
    fn made(&mut self, name: &str, load: &Load) -> Result<MadeLoad, ValidationError> {
        self.made += 1;
        let seed = derive(self.of.setting.seed, Purpose::Trial, AFTER_LIGHT + u64::from(self.made));
        let workload = (self.of.workload)(seed).map_err(PeakError::Workload)?;
        let folder = self.of.folder.join(format!("{:0>3}-{name}", self.made));
        let trial = LoadTrial {
            agents: None,
            target: self.of.target,
            again: "kendall validate",
            workload: &*workload,
            load,
            capacity_per_s: None,
            seed,
            precision: None,
            expected: &[],
            server: None,
            probing: Probing::OFF,
            servers: &self.of.setting.servers,
            record: Some(&folder),
        };
        let processor = self.is_timed.then(|| ProcessorWatch::start(&self.of.setting.servers));
        let before = listen_queue::overflows(&self.of.setting.servers);
        let result = trial.run(&Progress::default(), self.cancel);
        let no_room = listen_queue::overflows(&self.of.setting.servers).saturating_sub(before);
        let times = processor.map(ProcessorWatch::stop).unwrap_or_default();
        self.computation_s.extend(times.median_s());
        let result = result?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(ValidationError::Interrupted(self.of.folder.into()));
        }
        let warmup_s = result.left_out_ns().unwrap_or_default() as f64 / 1e9;
        let computation_s = times.by_second(warmup_s);
        if !computation_s.is_empty() {
            kendall_archive::write_json(&folder.join(COMPUTATION), &computation_s)?;
        }
        Ok(MadeLoad { folder, result, times, no_room })
    }
}

/// A load that was made, with its record.
struct MadeLoad {
    folder: PathBuf,
    result: TrialResult,
    times: ProcessorTimes,
    /// The connections that found no room in a listen queue.
    no_room: u64,
}

/// Whether other programs or the host took a noticeable part of the machine.
fn is_disturbed(result: &TrialResult) -> bool {
    result.disturbance.is_some_and(|disturbance| disturbance.is_noticeable())
}
