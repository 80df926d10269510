//! A separate load: a trial of a server that runs already, outside of any experiment. `kendall load` makes one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kendall_agents::{Fleet, Target};
use kendall_analysis::trial_result::SCHEMA;
use kendall_analysis::{AnswersSeen, Measured, PrecisionReached, TrialResult, warmup};
use kendall_archive::{Manifest, TrialWriter, utc_now, write_json};
use kendall_evidence::expect::{Expectation, Figure};
use kendall_evidence::streamed::{Stream, Streamed};
use kendall_experiment::{ANSWER, Load, Probing};
use kendall_load::{Progress, Workload};

use crate::collect::RowSinks;
use crate::cores::beside_loaded;
use crate::live::Live;
use crate::loading::{Loaded, Loading, SentByAgents};
use crate::stop::{StopRule, TrialPrecision};
use crate::surroundings::LoadedServers;
use crate::trial_error::TrialError;
use crate::watching::keep;

/// The target and the load, with its measurements and expectations.
#[derive(Clone, Copy)]
pub struct LoadTrial<'a> {
    /// The target, as a URL.
    pub target: &'a str,
    /// The command that repeats the load.
    pub again: &'a str,
    /// The requests.
    pub workload: &'a dyn Workload,
    /// The schedule of the requests.
    pub load: &'a Load,
    /// The rate of 100 %, in requests per second.
    pub capacity_per_s: Option<f64>,
    /// The seed of requests and arrivals.
    pub seed: u64,
    /// The wanted precision; the load ends once it is reached.
    pub precision: Option<TrialPrecision>,
    /// The expectations; the load ends early where they can no longer be met.
    pub expected: &'a [Expectation],
    /// The process of the server, if it is on this machine and is watched.
    pub server: Option<u32>,
    /// How the server is watched.
    pub probing: Probing,
    /// The processes whose CPU time does not count as that of other programs.
    pub servers: &'a LoadedServers,
    /// The agents that send, and their target; `None` to send from this process.
    pub agents: Option<(&'a Fleet, &'a Target)>,
    /// The new folder for the record, if one is kept.
    pub record: Option<&'a Path>,
}

impl LoadTrial<'_> {
    /// Runs the load and writes its record.
    ///
    /// # Errors
    /// Fails where the generator or the watching cannot be set up, or where the record cannot be written.
    pub fn run(&self, progress: &Progress, cancel: &AtomicBool) -> Result<TrialResult, TrialError> {
        let started_utc = utc_now();
        let threads = self.load.threads(beside_loaded(self.servers), self.workload);
        let plan = self.load.plan(self.capacity_per_s, self.seed, threads);
        let length = self.load.expected(self.capacity_per_s);
        let stop = StopRule {
            precision: self.precision,
            expected: self.expected,
            warmup: warmup::at_most(self.load.warmup, length),
            length,
        };
        let sinks = RowSinks {
            writer: self.record.map(TrialWriter::create).transpose()?,
            stream: Some(Stream::new(self.load.warmup)),
            kept: None,
        };
        let agents = self.agents.map(|(fleet, target)| SentByAgents::new(fleet, target.clone(), self.load));
        let loading = Loading {
            agents: agents.as_ref(),
            workload: self.workload,
            plan: &plan,
            stop,
            probing: self.probing,
            server: self.server,
            folder: self.record,
            alone: Some(self.servers),
        };
        let loaded = loading.run(sinks, progress, cancel)?;
        self.result(loaded, started_utc, plan.arrivals.rate_per_s())
    }

    /// The state of the load in a folder while it is under way, as a run of one trial. Its length counts as unknown where only
    /// the number of requests ends it.
    pub fn live(&self, folder: &Path, progress: &Arc<Progress>) -> Live {
        let live = Live::start(folder.into(), 0);
        live.begin(1, self.target, self.load.duration.unwrap_or_default(), progress);
        live.loaded(self.server, self.load.arrivals(self.capacity_per_s).rate_per_s());
        live
    }

    /// Completes the record and computes the answer.
    fn result(
        &self,
        loaded: Loaded,
        started_utc: String,
        offered_per_s: Option<f64>,
    ) -> Result<TrialResult, TrialError> {
        let Loaded { run, verdict, sinks, hopeless, resources, surroundings } = loaded;
        if let Some(writer) = sinks.writer {
            writer.finish_without_stamps(run.start_ns)?;
        }
        let mut stream = sinks.stream.expect("it was handed in");
        stream.end((run.wall_s * 1e9) as i64);
        let classes = self.workload.classes();
        let score = stream.score(classes.iter().map(|class| (class.name.as_str(), class.weight)));
        let precision = self.precision.map(|wanted| reached(&stream, wanted));
        let (seen, nothing_seen) = match stream.seen() {
            Ok(seen) => (Some(seen), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let figure = |measure| match &seen {
            Some(seen) => seen.figure(measure),
            None => Figure::Unknown { why: nothing_seen.clone().unwrap_or_default(), least: None },
        };
        let judge = |expected: &Expectation| expected.judge(figure(expected.measure));
        let expectations = self.expected.iter().map(judge).collect();
        let answers = seen.as_ref().map(answers).unwrap_or_default();
        let resources = resources.map(|seen| seen.judged(&run, &verdict, answers));
        let mut result = TrialResult {
            schema: SCHEMA,
            target: Some(self.target.into()),
            started_utc: Some(started_utc),
            again: Some(self.again.into()),
            number: 1,
            combination: 0,
            levels: Vec::new(),
            repeat: 0,
            seed: self.seed,
            classes,
            offered_per_s,
            run,
            verdict,
            server: None,
            counted: BTreeMap::new(),
            link: None,
            measured: Measured::default(),
            clients: None,
            grows: seen.as_ref().and_then(|seen| seen.growth).is_some_and(|growth| growth.unstable),
            left_out: None,
            warmup_suggested_s: seen.as_ref().and_then(|seen| seen.warmup.suggested_s),
            // The CPU time of a server of unknown process cannot be separated from that of other programs.
            disturbance: surroundings
                .filter(|_| *self.servers != LoadedServers::Unknown)
                .map(|seen| seen.disturbance),
            hopeless,
            resources,
            seen,
            nothing_seen,
            expectations,
            precision,
            score,
        };
        if let Some(folder) = self.record {
            Manifest { ended_utc: Some(utc_now()), ..Manifest::here(self.target, self.seed) }
                .write(folder)?;
            result.resources = result.resources.map(|seen| keep(seen, folder)).transpose()?;
            write_json(&folder.join(ANSWER), &result)?;
            result.resources = result.resources.map(|seen| seen.with_stacks_of(folder));
        }
        Ok(result)
    }
}

/// Judges the server by its answers.
fn answers(seen: &Streamed) -> AnswersSeen {
    AnswersSeen {
        response_s: Some(seen.response.mean_s.value),
        request_s: seen.service.as_ref().map(|service| service.mean_s.value),
        throughput_per_s: seen.throughput_per_s.map(|per_s| per_s.value),
        pauses: seen.pauses,
    }
}

/// The precision that a trial reached.
fn reached(stream: &Stream, wanted: TrialPrecision) -> PrecisionReached {
    let found = stream.precision(wanted.of);
    PrecisionReached {
        wanted: wanted.relative,
        of: wanted.of,
        reached: found.map(|found| found.relative),
        missing: found.map(|found| found.missing(wanted.relative)),
    }
}
