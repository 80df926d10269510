//! Watching the server and the generator during a trial, as `[probe]` says.

use std::path::Path;
use std::time::Duration;

use kendall_analysis::Resources;
use kendall_archive::series::Series;
use kendall_load::RunSummary;
use kendall_probe::{
    Bottleneck, Children, Config, DEFAULT_HZ, LoadSeen, ProbeError, Profile, Role, Summary, Target, Watch,
    bottleneck,
};
use kendall_record::RecordError;
use serde::{Deserialize, Serialize};

use kendall_analysis::generator::GeneratorVerdict;

/// The readings of a trial, in its folder.
const TABLE: &str = "resources.parquet";
/// The stacks of a trial, in its folder.
const STACKS: &str = "profile.folded";
/// The usual interval.
const EVERY: Duration = Duration::from_millis(10);

/// How trials are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The interval between two readings; `None` for no watching.
    pub every: Option<Duration>,
    /// How often a second of CPU time the stacks of the server are sampled, if they are.
    pub profile_hz: Option<u32>,
}

impl Default for Probing {
    fn default() -> Self {
        Self { every: Some(EVERY), profile_hz: None }
    }
}

impl Probing {
    /// Nothing is watched.
    pub const OFF: Self = Self { every: None, profile_hz: None };

    /// With stacks sampled, at the usual rate where none is asked for.
    #[must_use]
    pub fn with_profile(self) -> Self {
        let profile_hz = Some(self.profile_hz.unwrap_or(DEFAULT_HZ));
        Self { every: Some(self.every.unwrap_or(EVERY)), profile_hz }
    }

    /// Begins to watch a server, if one is known, and this process, which sends; keeps every reading in a folder, if one is
    /// given.
    ///
    /// # Errors
    /// Fails where the server is not there, or the readings cannot be written.
    pub fn watch(&self, server: Option<u32>, folder: Option<&Path>) -> Result<Watching, ProbeError> {
        let Some(every) = self.every else { return Ok(Watching(None)) };
        let process = server;
        let record = folder.map(|folder| folder.join(TABLE));
        let config = Config { every, record: record.as_deref(), profile_hz: self.profile_hz };
        let server = server.map(|pid| Target { role: Role::Server, pid, children: Children::Watched });
        let own = Target { role: Role::Generator, pid: std::process::id(), children: Children::Left };
        let targets: Vec<Target> = server.into_iter().chain([own]).collect();
        Watch::start(&config, &targets).map(|watch| Watching(Some((watch, process))))
    }
}

/// What was read in a trial, from its folder.
pub(crate) fn readings(folder: &Path) -> Result<Series, RecordError> {
    Series::read(&folder.join(TABLE))
}

/// A watch over a run, if it is watched.
#[derive(Debug)]
pub struct Watching(Option<(Watch, Option<u32>)>);

impl Watching {
    /// Ends it. `origin_ns` is the start of the run, from which its readings count.
    ///
    /// # Errors
    /// Fails where the readings cannot be written.
    pub fn end(self, origin_ns: i64) -> Result<Option<Seen>, ProbeError> {
        let Some((watch, process)) = self.0 else { return Ok(None) };
        let watched = watch.end(origin_ns)?;
        Ok(Some(Seen { process, summary: watched.summary, limit: None, profile: watched.profile }))
    }
}

/// What was seen of the resources in a run, as its `answer.json` has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The process that was taken for the server, if one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What server, generator and machine used.
    pub summary: Summary,
    /// What limited the server, where that is judged with the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bottleneck>,
    /// Stacks, if they were sampled; in a record they are beside it, and here is how they were.
    pub profile: Option<Profile>,
}

impl Seen {
    /// The same with its stacks in a file of the record's folder.
    ///
    /// # Errors
    /// Fails where that cannot be written.
    pub fn keep(mut self, folder: &Path) -> Result<Self, RecordError> {
        if let Some(profile) = &mut self.profile {
            let path = folder.join(STACKS);
            std::fs::write(&path, profile.to_text()).map_err(|source| RecordError::Write { path, source })?;
            *profile = profile.without_stacks();
        }
        Ok(self)
    }

    /// The same with the stacks that lie in the record's folder.
    #[must_use]
    pub fn kept(mut self, folder: &Path) -> Self {
        let stacks = || std::fs::read_to_string(folder.join(STACKS)).unwrap_or_default();
        self.profile = self.profile.map(|profile| profile.with_stacks(&stacks()));
        self
    }

    /// The same, with what limited the server.
    #[must_use]
    pub(crate) fn limited_by(self, limit: Option<Bottleneck>) -> Self {
        Self { limit, ..self }
    }

    /// What limited the server in a run with this verdict on its generator and this mean response time, in s, if any request
    /// was answered.
    pub(crate) fn limit(
        &self,
        run: &RunSummary,
        verdict: &GeneratorVerdict,
        response_s: Option<f64>,
    ) -> Option<Bottleneck> {
        let load = response_s.map(|response_s| LoadSeen {
            response_s,
            send_lag_p99_s: run.lag.p99_ns as f64 / 1e9,
            generator: verdict.as_judged(),
        });
        bottleneck(&self.summary, load.as_ref())
    }

    /// For a report: with the stacks that lie in the trial's folder.
    pub(crate) fn resources(
        &self,
        trial: &str,
        point: Option<usize>,
        folder: &Path,
        limit: Option<Bottleneck>,
    ) -> Resources {
        let Self { summary, profile, .. } = self.clone().kept(folder);
        Resources { trial: trial.into(), point, summary, limit, profile }
    }
}
