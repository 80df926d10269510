//! The file `answer.json` of a trial: one schema for the trials of an experiment and for a single load, and the one reader of it. `lab`
//! fills it in and writes it.
//!
//! What a trial does not have is absent. Records of older versions are read: what they lack has a default.

use std::collections::BTreeMap;
use std::path::Path;

use kendall_archive::read_json;
use kendall_evidence::Score;
use kendall_evidence::expect::{Judged, Measure};
use kendall_evidence::streamed::{Streamed, Warmup};
use kendall_experiment::{ANSWER, Load};
use kendall_link::Outcome;
use kendall_link::calibrate::Calibration;
use kendall_load::{RequestClass, RunSummary};
use kendall_record::RecordError;
use kendall_station::Answer;
use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbance;
use crate::generator::GeneratorVerdict;
use crate::report::trial::LeftOut;
use crate::resource_record::ResourceRecord;

/// The version of the schema. Fields may be added; it increases where a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// The schema of the records that do not name one.
fn schema() -> u32 {
    SCHEMA
}

/// The number of a trial that is alone.
fn first() -> usize {
    1
}

/// The file `answer.json` of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialResult {
    /// The version of the schema.
    #[serde(default = "schema")]
    pub schema: u32,
    /// The target of the load, where it is a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// When a single load began, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_utc: Option<String>,
    /// The command that makes the same load again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The trial's number in the order of running.
    #[serde(default = "first")]
    pub number: usize,
    /// The trial's combination, as an index in the order of the experiment file.
    #[serde(default)]
    pub combination: usize,
    /// The factors' values.
    #[serde(default)]
    pub levels: Vec<(String, String)>,
    /// The repeat of the combination, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The seed of its requests and arrivals.
    pub seed: u64,
    /// The classes of the trial's requests.
    #[serde(default)]
    pub classes: Vec<RequestClass>,
    /// The rate it was to be loaded at; `None` for a closed population.
    pub offered_per_s: Option<f64>,
    /// The generator's summary of the run.
    pub run: RunSummary,
    /// The verdict on what limited the trial: the server, or the generator.
    #[serde(default)]
    pub verdict: GeneratorVerdict,
    /// The use of resources by the server under load; unknown of a server that was running already.
    #[serde(default)]
    pub server: Option<ServerUsage>,
    /// The server's counts from its start to its end, by name, if it counts anything.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// The emulated link that it crossed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// The measurement by the server's stamps, or the reason for its absence.
    #[serde(default, skip_serializing_if = "Measured::is_absent")]
    pub measured: Measured,
    /// The measurement of the clients alone, whatever the server reported.
    #[serde(default)]
    pub clients: Option<kendall_evidence::ClientSide>,
    /// Whether the number of requests in the station grew through the trial: then it is unstable at this rate.
    #[serde(default)]
    pub grows: bool,
    /// The warm-up that its answer excludes; absent in records of older versions, where the load gives it.
    #[serde(default)]
    pub left_out: Option<LeftOut>,
    /// Where MSER-5 ends the warm-up, in seconds since the start; `None` if there are too few data.
    #[serde(default)]
    pub warmup_suggested_s: Option<f64>,
    /// Other work of the machine during the trial, where the machine reports it.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    /// The reason why the trial was stopped early: it could no longer meet its expectations.
    #[serde(default)]
    pub hopeless: Option<String>,
    /// The use of resources by server, generator and machine, if it was watched.
    #[serde(default)]
    pub resources: Option<ResourceRecord>,
    /// The streamed measurement of the clients, of a single load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Streamed>,
    /// The reason why the clients have no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_seen: Option<String>,
    /// The expectations of a single load, judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Judged>,
    /// The requested precision, and the one reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<PrecisionReached>,
    /// The cost of the requests, by class and in all, if any was due after the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
}

/// The resources that a server has used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// CPU time of all its threads and of the processes that it has started, in seconds.
    pub cpu_s: f64,
    /// The most memory it held at once, in bytes; of several processes the sum.
    pub peak_memory_bytes: u64,
}

/// The emulated link that a trial crossed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// How the link was emulated.
    pub emulated: String,
    /// The difference between the emulation and a real link, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// The requested hops from client to server.
    pub up: Vec<String>,
    /// The requested hops from server to client.
    pub down: Vec<String>,
    /// The calibration of the link before the first trial that crossed it.
    pub measured: Option<Calibration>,
    /// The link's counts during the trial.
    pub outcome: Outcome,
}

/// The requested precision, and the one reached.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PrecisionReached {
    /// Half the interval over the value.
    pub wanted: f64,
    /// The measure that the precision is for.
    pub of: Measure,
    /// `None` where there are too few requests to say.
    pub reached: Option<f64>,
    /// About how many requests more it would take; 0 where it is reached.
    pub missing: Option<u64>,
}

impl TrialResult {
    /// The answer as JSON, for programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an answer has only text keys")
    }

    /// Requests that were due before this are in no number, in nanoseconds since the start; `None` where the record does not say.
    pub fn left_out_ns(&self) -> Option<i64> {
        let streamed = || Some((self.seen.as_ref()?.warmup.used_s * 1e9).round() as i64);
        self.left_out.map(|left_out| left_out.until_ns).or_else(streamed)
    }

    /// The answer in a trial's folder; `None` where the trial was cut off before there was one. Sampled stacks stay in their
    /// file.
    ///
    /// # Errors
    /// Fails where the answer cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, RecordError> {
        let file = folder.join(ANSWER);
        if file.exists() { read_json(&file).map(Some) } else { Ok(None) }
    }

    /// The trial of a load, with its sampled stacks, if a folder is the record of one.
    ///
    /// # Errors
    /// Fails where its answer cannot be read.
    pub fn of_load(folder: &Path) -> Result<Option<Self>, RecordError> {
        let holds = |file: &str| folder.join(file).exists();
        if !holds("manifest.json") || !holds(ANSWER) || holds("experiment.toml") {
            return Ok(None);
        }
        let mut result: Self = read_json(&folder.join(ANSWER))?;
        result.resources = result.resources.map(|seen| seen.with_stacks_of(folder));
        Ok(Some(result))
    }

    /// Requests that were due before this are not in its answer, in nanoseconds since its start.
    pub fn warmup_ns(&self, load: &Load) -> i64 {
        match (self.left_out_ns(), load.warmup) {
            (Some(until_ns), _) => until_ns,
            (None, Warmup::Until(until_ns)) => until_ns,
            (None, Warmup::Auto) => 0,
        }
    }
}

/// The measurement of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// The answer, its intervals by batch means.
    Answer(Box<Answer>),
    /// The reason why there is no measurement.
    NoAnswer(String),
}

/// Nothing can be measured of a server that is not ours to start: no stamps, and no number of its servers.
impl Default for Measured {
    fn default() -> Self {
        Self::NoAnswer(String::new())
    }
}

impl Measured {
    fn is_absent(&self) -> bool {
        matches!(self, Self::NoAnswer(why) if why.is_empty())
    }
}

/// The classes as the rows name them.
pub fn row_classes(classes: &[RequestClass]) -> Vec<kendall_evidence::RowClass> {
    let class =
        |class: &RequestClass| kendall_evidence::RowClass { name: class.name.clone(), weight: class.weight };
    classes.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn read(text: &str) -> TrialResult {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_load_that_an_earlier_version_recorded_is_read() {
        let load = read(include_str!("../testdata/answer-of-load.json"));
        assert_eq!((load.number, load.seed, load.offered_per_s), (1, 3, Some(200.0)));
        assert!(load.target.unwrap().starts_with("hold://") && load.again.unwrap().contains("--seed 3"));
        assert!(load.seen.is_some() && load.score.is_some() && load.expectations.len() == 1);
        assert!(load.measured.is_absent());
    }

    #[test]
    fn a_trial_that_an_earlier_version_recorded_is_read() {
        let trial = read(include_str!("../testdata/answer-of-trial.json"));
        assert_eq!((trial.schema, trial.number, trial.repeat), (SCHEMA, 1, 0));
        assert_eq!(trial.levels, [("rate".to_owned(), "200".to_owned())]);
        assert!(matches!(trial.measured, Measured::Answer(_)) && trial.clients.is_some());
        assert_eq!(trial.left_out_ns(), Some(0));
        assert!(trial.target.is_none() && trial.seen.is_none());
    }

    /// Reports, comparisons and exports all read answers here, of either kind and of either version.
    #[test]
    fn the_one_reader_reads_both_kinds_and_tells_a_trial_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let read = || TrialResult::read(folder.path());
        assert!(read().unwrap().is_none());
        for text in [
            include_str!("../testdata/answer-of-load.json"),
            include_str!("../testdata/answer-of-trial.json"),
        ] {
            std::fs::write(folder.path().join(ANSWER), text).unwrap();
            let result = read().unwrap().expect("there is an answer");
            assert_eq!(result.left_out_ns(), Some(0));
            let again: TrialResult = serde_json::from_str(&result.to_json()).unwrap();
            assert_eq!(again.to_json(), result.to_json());
        }
        std::fs::write(folder.path().join(ANSWER), "{").unwrap();
        assert!(read().is_err());
    }

    /// What one kind of trial has, the other does not write as nothing.
    #[test]
    fn what_a_trial_does_not_have_is_absent() {
        let written = |text: &str| serde_json::to_value(read(text)).unwrap();
        let load = written(include_str!("../testdata/answer-of-load.json"));
        let trial = written(include_str!("../testdata/answer-of-trial.json"));
        let has = |value: &Value, name: &str| value.get(name).is_some();
        for name in ["target", "again", "started_utc", "seen", "score"] {
            assert!(has(&load, name) && !has(&trial, name), "{name}");
        }
        assert!(has(&trial, "measured") && !has(&load, "measured"));
    }
}
