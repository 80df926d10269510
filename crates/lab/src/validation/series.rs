//! The loads of a validation: made in rounds, repeated where something disturbed them, predicted before they are made.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_analysis::generator::Trust;
use kendall_analysis::{COMPUTATION, LowLoad, LowLoads, Predicted, TrialResult, Validated, recorded_loads};
use kendall_archive::utc_now;
use kendall_experiment::{LOAD, Load, Probing};
use kendall_load::Progress;
use kendall_prediction::{NoPrediction, Prediction, Predictor, Question};
use kendall_record::RecordError;
use kendall_station::Estimate;
use kendall_stats::mean;
use kendall_stats::random::{Purpose, derive, shuffle, stream};
use kendall_system::{Settings, Value};

use super::compare::{AnsweredQuestion, compared, low_load};
use super::{Validation, ValidationError, ValidationEvent, listen_queue};
use crate::load_trial::LoadTrial;
use crate::peak::{LightLoad, PeakError};
use crate::processor::{ProcessorTimes, ProcessorWatch};
use crate::trial_error::TrialError;

/// The first part of a load, which fills the server.
const WARMUP: f64 = 0.1;
/// A disturbed load is repeated this many times at most.
const REPEATS: u32 = 2;
/// A predicted load is repeated if work took longer than in the full loads, or less time, by more than this share, which makes a mean at
/// 93 % of the capacity wrong by 14 %.
const OTHER_SPEED: f64 = 0.01;
/// The speed changes within minutes, so a further repetition would have about that of the first.
const REPEATS_FOR_SPEED: u32 = 1;
/// A burst or a slow spell leaves as many requests as arrive in this time, in seconds; whether the server then recovers depends on what it
/// still sustains.
const QUEUE_S: f64 = 0.5;
/// No longer queue than this.
const MOST_QUEUED: u32 = 512;
/// The closed populations have the numbers below this, so that no load repeats their requests: a name can be registered only once.
const AFTER_LIGHT: u64 = 1 << 32;

/// The arrivals of one load.
#[derive(Clone, Copy)]
enum Arriving {
    AtRate(f64),
    Users(u32),
}

/// The loads of a validation, as they are made.
pub(super) struct Series<'a> {
    of: &'a Validation<'a>,
    /// Whether a computation shows how fast the machine is: on a processor that is slower after a sleep it would show the load.
    is_timed: bool,
    cancel: &'a AtomicBool,
    /// The records that predictions are made from.
    folders: Vec<PathBuf>,
    made: u32,
    pub(super) repeated: u32,
    /// The capacity as each full load measured it.
    pub(super) full_per_s: Vec<Estimate>,
    /// The median time of a fixed computation during each load.
    pub(super) computation_s: Vec<f64>,
    pub(super) low: Vec<LowLoad>,
    /// How many connections found no room in a listen queue, by load.
    pub(super) no_room: Vec<(String, u64)>,
}

impl<'a> Series<'a> {
    pub(super) fn new(of: &'a Validation<'a>, is_timed: bool, cancel: &'a AtomicBool) -> Self {
        let (folders, full_per_s, computation_s) = (Vec::new(), Vec::new(), Vec::new());
        let (low, no_room) = (Vec::new(), Vec::new());
        Self { of, is_timed, cancel, folders, made: 0, repeated: 0, full_per_s, computation_s, low, no_room }
    }

    /// All rounds of the low loads and the full load.
    pub(super) fn rounds(
        &mut self,
        users: u32,
        light: &LightLoad,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<(), ValidationError> {
        let most_per_s = light.throughput_per_s.iter().map(|point| point.1).fold(0.0, f64::max);
        let queue = ((QUEUE_S * most_per_s) as u32).min(MOST_QUEUED).min(self.of.setting.connections);
        let queue = (queue >= 2 * users).then_some(queue);
        // The same rates in every round, so that the rounds of one rate are one load.
        for round in 0..self.of.rounds {
            tell(&ValidationEvent::Round(round + 1));
            self.round(round, most_per_s, users, queue, tell)?;
        }
        Ok(())
    }

    /// The high loads, each predicted and then measured, and the reasons why some cannot be predicted.
    pub(super) fn high_loads(
        &mut self,
        users: u32,
        light: &LightLoad,
        tell: &mut dyn FnMut(&ValidationEvent<'_>),
    ) -> Result<(Vec<Validated>, Vec<String>), ValidationError> {
        let (mut loads, mut no_prediction) = (Vec::new(), Vec::new());
        for (at, share) in self.of.high.iter().enumerate() {
            // The capacity of this minute.
            self.full(&format!("full-{}", at + 1), users, tell)?;
            match self.validate(*share, light, tell)? {
                Ok(validated) => {
                    tell(&ValidationEvent::Measured(&validated));
                    loads.push(validated);
                }
                Err(why) => no_prediction.push(why.to_string()),
            }
        }
        Ok((loads, no_prediction))
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
    pub(super) fn observed(&self) -> Result<LowLoads, ValidationError> {
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
        let load = self.load(arriving, duration)?;
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
                (false, other) if other > OTHER_SPEED && attempt < REPEATS_FOR_SPEED => {
                    "the processors had another speed"
                }
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
        settings.set("connections", Value::Whole(self.of.setting.connections.into()));
        settings.set("timeout", Value::Time(self.of.setting.timeout));
        Load::new(&settings, Path::new("."))
            .map_err(|(name, why)| TrialError::Workload { system: "a load", why: format!("{name}: {why}") })
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
