//! One trial: a server is started, loaded, and stopped, and its record written.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_analysis::LeftOut;
use kendall_archive::TrialWriter;
use kendall_evidence::streamed::Warmup;
use kendall_link::{Asked, LinkError};
use kendall_load::{LoadError, Plan, Progress, RequestClass, RowBatches, RunSummary, run};
use kendall_probe::ProbeError;
use kendall_record::{RecordError, RequestRow, stamps};
use kendall_station::{Answer, Arrivals, Law};
use serde::{Deserialize, Serialize};

use crate::disturbance::{Disturbance, Look};
use crate::experiment::Combination;
use crate::hopeless;
use crate::link::{Bed, Crossing, LinkRecord};
use crate::live::Live;
use crate::load::{Load, Schedule};
use crate::probe::{Probing, Seen, readings};
use crate::schedule::Trial;
use crate::server::{Server, ServerError, Usage};
use crate::serving::Serving;
use crate::unstamped::{Unstamped, lone_s};
use crate::warmup;
use kendall_analysis::generator::{GeneratorVerdict, judge};
use kendall_system::{Home, Settings, System};

/// How long the search for the capacity loads the server: at first, and at most where requests are few.
const CALIBRATE: Duration = Duration::from_secs(2);
const CALIBRATE_AT_MOST: Duration = Duration::from_secs(32);
/// So many answers tell the capacity to about 2 %, for service times that vary like exponential ones or less. At 95 %
/// of it, an error of 2 % moves the mean waiting time by 40 %.
const ENOUGH: u64 = 2000;

/// Why a trial could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TrialError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the trial cannot be watched: {0}; [probe] every = \"off\" does without")]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the relay that is the link: {0}")]
    Relay(Box<ServerError>),
    #[error("the workload of {system} cannot be made: {why}")]
    Workload { system: &'static str, why: String },
    #[error("the server answered nothing in {seconds} s under full load, so its capacity cannot be found")]
    NoCapacity { seconds: f64 },
    #[error("the server answered not one lone request rightly, so its service time cannot be found")]
    NothingAlone,
    #[error("the server cannot be found: {0}")]
    Nowhere(String),
}

/// What a trial leaves as `answer.json`, beside its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialResult {
    /// Its number in the order of running.
    pub number: usize,
    /// Its combination, as an index in the order of the experiment file.
    pub combination: usize,
    /// The factors' values.
    pub levels: Vec<(String, String)>,
    /// Which repeat of its combination it is, from 0.
    pub repeat: u32,
    /// The seed of its requests and arrivals.
    pub seed: u64,
    /// Its requests' classes.
    pub classes: Vec<RequestClass>,
    /// The rate it was to be loaded at; `None` for a closed population.
    pub offered_per_s: Option<f64>,
    /// What the generator says.
    pub run: RunSummary,
    /// Who limited it: the server, or the generator.
    #[serde(default)]
    pub verdict: GeneratorVerdict,
    /// What the server used while it was loaded; unknown of one that ran already.
    pub server: Option<Usage>,
    /// The emulated link that it crossed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// What was measured, or why that makes no answer.
    pub measured: Measured,
    /// What the clients alone saw, whatever the server told.
    #[serde(default)]
    pub clients: Option<kendall_evidence::ClientSide>,
    /// Whether the number of requests in the station grew through the trial: then it is unstable at this rate.
    #[serde(default)]
    pub grows: bool,
    /// What its answer leaves out at the front; not told in records of older versions, where it is as the load says.
    #[serde(default)]
    pub left_out: Option<LeftOut>,
    /// Where MSER-5 ends the warm-up, in seconds since the start; `None` where there is not enough data to tell.
    #[serde(default)]
    pub warmup_suggested_s: Option<f64>,
    /// What else the machine did meanwhile, where it tells.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    /// Why the trial was stopped early: it could no longer meet what is expected of it.
    #[serde(default)]
    pub hopeless: Option<String>,
    /// What server, generator and machine used, if it was watched.
    #[serde(default)]
    pub resources: Option<Seen>,
}

impl TrialResult {
    /// Requests that were due before this are not in its answer, in nanoseconds since its start.
    pub(crate) fn warmup_ns(&self, load: &Load) -> i64 {
        match (self.left_out, load.warmup) {
            (Some(left_out), _) => left_out.until_ns,
            (None, Warmup::Until(until_ns)) => until_ns,
            (None, Warmup::Auto) => 0,
        }
    }
}

/// What was measured in a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// The answer, its intervals by batch means.
    Answer(Box<Answer>),
    /// Why there is none.
    NoAnswer(String),
}

/// What one trial is to do.
pub(crate) struct Task<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) combination: &'a Combination,
    pub(crate) load: &'a Load,
    /// The link to cross, if there is one.
    pub(crate) link: Option<&'a Asked>,
    /// What 100 % is, where a share of it is asked for.
    pub(crate) capacity_per_s: Option<f64>,
    /// What is known of its server beforehand, where it stamps nothing.
    pub(crate) unstamped: Option<&'a Unstamped>,
    pub(crate) folder: &'a Path,
    /// What is expected of it, which it is watched for.
    pub(crate) expected: Vec<kendall_evidence::expect::Expectation>,
    /// How it is watched.
    pub(crate) probing: Probing,
    /// What its run says of itself meanwhile, if it does.
    pub(crate) live: Option<&'a Live>,
}

/// The way to the system under test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench<'a> {
    /// The program that serves it.
    pub(crate) program: &'a Path,
    /// The system.
    pub(crate) system: &'static System,
    /// The link of the run, if any of its trials crosses one.
    pub(crate) bed: Option<&'a Bed>,
    /// The folder that the files of a workload are relative to.
    pub(crate) files: &'a Path,
}

impl Bench<'_> {
    /// Finds or starts the server of a combination, with its log and stamps in a folder: at the far end of a link, or here.
    fn serve(
        &self,
        combination: &Combination,
        folder: &Path,
        far: Option<&Bed>,
    ) -> Result<Serving, TrialError> {
        let running = self.system.running(&combination.server, &combination.workload);
        if let Some(address) = running.map_err(TrialError::Nowhere)? {
            return Ok(Serving::Running(address));
        }
        let stamps = folder.join("stamps.bin");
        let listen = far.map_or_else(|| "127.0.0.1:0".to_owned(), |bed| bed.listen().to_string());
        let fixed = ["serve", self.system.name, "--listen", &listen, "--until-stdin-ends"];
        let mut arguments: Vec<OsString> = fixed.map(OsString::from).into();
        if let Home::Here = self.system.home {
            arguments.extend(["--stamps".into(), stamps.clone().into()]);
        }
        for (name, value) in combination.server.rooted(self.system.server, self.files).iter() {
            arguments.push(format!("--{name}={value}").into());
        }
        let start = || Server::start(self.program, &arguments, &folder.join("server.log"));
        let server = far.map_or_else(|| Ok(start()), |bed| bed.at_server(start))??;
        Ok(Serving::Started(server, stamps))
    }

    fn workload(
        &self,
        server: SocketAddr,
        combination: &Combination,
        seed: u64,
    ) -> Result<Box<dyn kendall_load::Workload>, TrialError> {
        let settings: Settings = combination.workload.rooted(self.system.workload, self.files);
        (self.system.load)(server, &settings, seed)
            .map_err(|why| TrialError::Workload { system: self.system.name, why })
    }

    /// The most that the system can do: the requests per second that it answers when it is never without one.
    /// Four users for each of its servers send the next request as soon as they have an answer.
    pub(crate) fn capacity_per_s(
        &self,
        combination: &Combination,
        folder: &Path,
        seed: u64,
        cancel: &AtomicBool,
    ) -> Result<f64, TrialError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| RecordError::Write { path: folder.into(), source })?;
        let server = self.serve(combination, folder, None)?;
        let workload = self.workload(server.address(), combination, seed)?;
        let (servers, _) = (self.system.station)(&combination.server);
        let population = servers.get().saturating_mul(4);
        let arrivals = Arrivals::Closed { population, think: Law::Constant { mean_s: 0.0 } };
        // As in the trials, whose server loses to the generator what a real-time thread takes.
        let goes_first = combination.load.word("arrivals") != Some("closed");
        let mut length = CALIBRATE;
        loop {
            let plan =
                Plan { connections: population, goes_first, ..Plan::lasting(arrivals.clone(), length, seed) };
            // The first fifth fills the server.
            let end_ns = length.as_nanos() as i64;
            let counted = end_ns / 5..end_ns;
            let is_counted = |row: &RequestRow| {
                row.response_ns().and(row.completed).is_some_and(|completed| counted.contains(&completed))
            };
            let count = |rows: RowBatches| rows.flatten().filter(is_counted).count() as u64;
            let (_, answered) = run(&plan, &*workload, &Progress::default(), cancel, count)?;
            length *= 2;
            if answered >= ENOUGH || length > CALIBRATE_AT_MOST || cancel.load(Ordering::Relaxed) {
                server.stop()?;
                let seconds = (counted.end - counted.start) as f64 / 1e9;
                let capacity_per_s = answered as f64 / seconds;
                return if answered == 0 {
                    Err(TrialError::NoCapacity { seconds })
                } else {
                    Ok(capacity_per_s)
                };
            }
        }
    }

    /// What can be found out of a server that stamps nothing. What it can do at full load is known already, or is found now if
    /// it is ours to start: one that runs already may have other things to do.
    pub(crate) fn unstamped(
        &self,
        combination: &Combination,
        full_per_s: Option<f64>,
        folder: &Path,
        seed: u64,
        cancel: &AtomicBool,
    ) -> Result<Unstamped, TrialError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| RecordError::Write { path: folder.into(), source })?;
        let running = self.system.running(&combination.server, &combination.workload);
        let full_per_s = match (running.map_err(TrialError::Nowhere)?, full_per_s) {
            (None, None) => Some(self.capacity_per_s(combination, folder, seed, cancel)?),
            (_, known) => known,
        };
        let server = self.serve(combination, folder, None)?;
        let lone_s = lone_s(&*self.workload(server.address(), combination, seed)?, seed, cancel)?;
        server.stop()?;
        Ok(Unstamped::new(&lone_s, full_per_s, (self.system.station)(&combination.server).0))
    }

    /// Runs one trial, over nothing but what is there and its link, and writes its record, but for `answer.json`.
    pub(crate) fn trial_as_it_is(
        &self,
        task: &Task<'_>,
        crossing: Option<&mut Crossing<'_>>,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<TrialResult, TrialError> {
        let &Task { trial, combination, load, link, capacity_per_s, unstamped, folder, probing, .. } = task;
        let mut writer = TrialWriter::create(folder)?;
        let mut server = self.serve(combination, folder, link.and(self.bed))?;
        let reached = match crossing {
            Some(crossing) => crossing.reach(server.address())?,
            None => server.address(),
        };
        let workload = self.workload(reached, combination, trial.seed)?;
        let plan = load.plan(capacity_per_s, trial.seed);
        let offered_per_s = plan.arrivals.rate_per_s();
        if let Some(live) = task.live {
            live.loaded(server.pid(), offered_per_s);
        }
        let before = server.usage()?;
        // A server that ran already may be on this machine, and its time is not another program's.
        let look = server.pid().and_then(|_| Look::now());
        let known = capacity_per_s.is_some() || !matches!(load.schedule, Schedule::Share(..));
        let length = if known { load.expected(capacity_per_s) } else { Duration::ZERO };
        let hopeless = AtomicBool::new(false);
        let longest_warmup = warmup::at_most(load.warmup, length);
        let mut watch = hopeless::Watch::new(&task.expected, longest_warmup, length, &hopeless);
        let watching = probing.watch(server.pid(), Some(folder))?;
        let record = |rows: RowBatches| {
            for row in rows.flatten() {
                watch.see(&row);
                if let Err(error) = writer.append(&row) {
                    hopeless.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok((writer, watch))
        };
        let (run, recorded) =
            hopeless::either(cancel, &hopeless, |stop| run(&plan, &*workload, progress, stop, record))?;
        let (writer, watch) = recorded?;
        let disturbance = look.zip(Look::now()).and_then(|(before, after)| after.since(&before));
        let resources = watching.end(run.start_ns)?.map(|seen| seen.keep(folder)).transpose()?;
        let after = server.usage()?;
        let stamped = match (&server, self.system.home) {
            (Serving::Started(_, path), Home::Here) => Some(path.clone()),
            _ => None,
        };
        // The server writes its last stamps when it stops.
        server.stop()?;
        let stamped_by = stamped.as_deref().map(stamps::read).transpose()?.unwrap_or_default();
        let rows = writer.finish(&stamped_by, run.start_ns)?;
        if let Some(path) = stamped {
            std::fs::remove_file(&path)
                .map_err(|source| RecordError::Write { path: path.clone(), source })?;
        }
        let (servers, _) = (self.system.station)(&combination.server);
        let readings = resources.is_some().then(|| readings(folder)).transpose()?;
        let suggested_ns = warmup::suggested_ns(&rows, readings.as_ref());
        let left_out = warmup::left_out(&rows, load.warmup, suggested_ns);
        let view = kendall_evidence::Trial { rows: &rows, warmup_ns: left_out.until_ns };
        let classes = workload.classes();
        let classes_of_rows = row_classes(&classes);
        let answer = match unstamped {
            Some(known) => {
                kendall_evidence::calibrated(&[view], servers, &classes_of_rows, known.calibrated())
            }
            None => kendall_evidence::measured(&[view], servers, &classes_of_rows),
        };
        let measured = match answer {
            Ok(answer) => Measured::Answer(Box::new(answer)),
            Err(why) => Measured::NoAnswer(why.to_string()),
        };
        Ok(TrialResult {
            number: trial.number,
            combination: trial.combination,
            levels: combination
                .levels
                .iter()
                .map(|(name, value)| ((*name).into(), value.to_string()))
                .collect(),
            repeat: trial.repeat,
            seed: trial.seed,
            classes,
            offered_per_s,
            verdict: judge(&run, &plan.arrivals),
            run,
            server: before
                .zip(after)
                .map(|(before, after)| Usage { cpu_s: after.cpu_s - before.cpu_s, ..after }),
            link: None,
            measured,
            clients: kendall_evidence::client_side(&[view]).ok(),
            grows: kendall_evidence::trend(&rows, view.warmup_ns).is_some_and(|trend| trend.grows),
            left_out: Some(left_out),
            warmup_suggested_s: suggested_ns.map(|cut_ns| cut_ns as f64 / 1e9),
            disturbance,
            hopeless: watch.why(),
            resources,
        })
    }
}

/// The classes as the rows name them.
pub(crate) fn row_classes(classes: &[RequestClass]) -> Vec<kendall_evidence::RowClass> {
    let class =
        |class: &RequestClass| kendall_evidence::RowClass { name: class.name.clone(), weight: class.weight };
    classes.iter().map(class).collect()
}
