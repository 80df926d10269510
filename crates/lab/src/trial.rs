//! Runs one trial: starts a server, loads it, stops it, and writes the record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_agents::{Fleet, Target};
use kendall_analysis::trial_result::SCHEMA;
use kendall_analysis::unstamped::Unstamped;
use kendall_analysis::{Disturbance, ServerUsage, TrialAnswer, TrialResult, TrialSetting, warmup};
use kendall_archive::TrialWriter;
use kendall_experiment::{Combination, Load, Probing, Schedule, Threads, Trial};
use kendall_link::LinkSettings;
use kendall_load::{Plan, Progress, RowBatches, Workload, run};
use kendall_record::{RecordError, RequestRow, counts, stamps};
use kendall_station::{Arrivals, Law};

use crate::collect::RowSinks;
use crate::cores::beside_trial;
use crate::disturbance::Look;
use crate::link::{Bed, Crossing};
use crate::live::Live;
use crate::loading::{Loaded, Loading, SentByAgents};
use crate::server::Server;
use crate::serving::Serving;
use crate::stop::StopRule;
use crate::trial_error::TrialError;
use crate::unstamped::lone_s;
use crate::watching::{keep, readings};
use kendall_system::{Home, Settings, System};

/// The time for which the capacity measurement loads the server: at first, and at most where requests are few.
const CALIBRATE: Duration = Duration::from_secs(2);
const CALIBRATE_AT_MOST: Duration = Duration::from_secs(32);
/// The number of answers that gives the capacity to about 2 %, if service times vary no more than exponential ones. At 95 % of
/// capacity, an error of 2 % moves the mean waiting time by 40 %.
const ENOUGH: u64 = 2000;
/// Throughput that grows by less than this share, for twice as many users, grows no more; that must show this many times in a row.
const GROWS: f64 = 1.02;
const ENOUGH_FLAT: u32 = 2;
/// No more users than this send requests while the capacity is measured.
const MOST_USERS: u32 = 512;

/// The settings of one trial.
pub(crate) struct Task<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) combination: &'a Combination,
    pub(crate) load: &'a Load,
    /// The settings of the link, if it crosses one.
    pub(crate) link: Option<&'a LinkSettings>,
    /// The rate of 100 %, for a rate that is a share of the capacity.
    pub(crate) capacity_per_s: Option<f64>,
    /// The calibration of its server, where it writes no stamps.
    pub(crate) unstamped: Option<&'a Unstamped>,
    pub(crate) folder: &'a Path,
    /// The expectations that can stop it early.
    pub(crate) expected: Vec<kendall_evidence::expect::Expectation>,
    /// The settings by which the trial is watched.
    pub(crate) probing: Probing,
    /// The published state of its run, if there is one.
    pub(crate) live: Option<&'a Live>,
}

/// The environment of the trials: program, system, and link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench<'a> {
    /// The program that serves the system.
    pub(crate) program: &'a Path,
    /// The system.
    pub(crate) system: &'static System,
    /// The link of the run, if any of its trials crosses one.
    pub(crate) bed: Option<&'a Bed>,
    /// The folder that the files of a workload are relative to.
    pub(crate) files: &'a Path,
    /// The agents that send the requests of trials, if this process does not.
    pub(crate) fleet: Option<&'a Fleet>,
}

impl Bench<'_> {
    /// Finds or starts the server of a combination, with its log and stamps in a folder: at the server's end of a link, or here.
    pub(crate) fn serve(
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

    pub(crate) fn workload(
        &self,
        server: SocketAddr,
        combination: &Combination,
        seed: u64,
    ) -> Result<Box<dyn kendall_load::Workload>, TrialError> {
        let settings: Settings = combination.workload.rooted(self.system.workload, self.files);
        (self.system.load)(server, &settings, seed)
            .map_err(|why| TrialError::Workload { system: self.system.name, why })
    }

    /// Measures the capacity of the system: the requests per second that it answers when it always has one to serve. Four users
    /// for each of its servers send the next request as soon as they have an answer.
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
        let servers = (self.system.station)(&combination.server).servers;
        // As in the trials, where real-time threads of the generator take processor time from the server.
        let goes_first = combination.load.word("arrivals") != Some("closed");
        let cores = beside_trial(self.system, combination, &server);
        let threads = Threads::of(&combination.load).number(cores, u32::MAX, &*workload);
        let full = FullLoad { workload: &*workload, goes_first, threads, seed, cancel };
        let mut population = servers.get().saturating_mul(4);
        let mut length = CALIBRATE;
        let mut most_per_s = full.answered_per_s(population, &mut length)?;
        // Users wait for much else than another program's server: for the network, for timers, for a second program behind it. So
        // their number grows until throughput does not.
        let mut flat = if let Home::Here = self.system.home { ENOUGH_FLAT } else { 0 };
        while flat < ENOUGH_FLAT && population < MOST_USERS && !cancel.load(Ordering::Relaxed) {
            population *= 2;
            let per_s = full.answered_per_s(population, &mut length)?;
            flat = if per_s < GROWS * most_per_s { flat + 1 } else { 0 };
            most_per_s = most_per_s.max(per_s);
        }
        server.stop()?;
        Ok(most_per_s)
    }

    /// Calibrates a server that writes no stamps. Its rate at full load is known already, or is measured now if the laboratory
    /// started the server; a server that ran already may have other work to do.
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
        Ok(Unstamped::new(&lone_s, full_per_s, (self.system.station)(&combination.server).servers))
    }

    /// Runs one trial with what is set up, and writes its record, except for `answer.json`.
    pub(crate) fn trial_as_it_is(
        &self,
        task: &Task<'_>,
        crossing: Option<&mut Crossing<'_>>,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<TrialResult, TrialError> {
        let &Task { trial, combination, load, folder, .. } = task;
        let writer = TrialWriter::create(folder)?;
        let server = self.serve(combination, folder, task.link.and(self.bed))?;
        let address = match crossing {
            Some(crossing) => crossing.reach(server.address())?,
            None => server.address(),
        };
        let workload = self.workload(address, combination, trial.seed)?;
        let mut ready = Ready { server, address, workload };
        let made = self.load_of_trial(task, &mut ready, writer, progress, cancel)?;
        let Ready { server, workload, .. } = ready;
        let Loaded { run, verdict, sinks, hopeless, resources, .. } = made.loaded;
        let resources = resources.map(|seen| keep(seen, folder)).transpose()?;
        let stamped = match (&server, self.system.home) {
            (Serving::Started(_, path), Home::Here) => Some(path.clone()),
            _ => None,
        };
        // The server writes its last stamps when it stops.
        server.stop()?;
        let stamped_by = stamped.as_deref().map(stamps::read).transpose()?.unwrap_or_default();
        let writer = sinks.writer.expect("it was handed in");
        let rows = writer.finish(&stamped_by, run.start_ns)?;
        let counted = stamped.as_deref().map(taken_in).transpose()?.unwrap_or_default();
        let readings = resources.is_some().then(|| readings(folder)).transpose()?;
        let classes = workload.classes();
        let setting = TrialSetting {
            warmup: load.warmup,
            readings: readings.as_ref(),
            servers: (self.system.station)(&combination.server).servers,
            classes: &classes,
            unstamped: task.unstamped,
        };
        let TrialAnswer { measured, clients, grows, left_out, warmup_suggested_s } =
            TrialAnswer::of(&rows, setting);
        let levels = combination.levels.iter().map(|(name, value)| ((*name).into(), value.to_string()));
        Ok(TrialResult {
            schema: SCHEMA,
            target: None,
            started_utc: None,
            again: None,
            number: trial.number,
            combination: trial.combination,
            levels: levels.collect(),
            repeat: trial.repeat,
            seed: trial.seed,
            classes,
            offered_per_s: made.offered_per_s,
            verdict,
            run,
            server: made.usage,
            counted,
            link: None,
            measured,
            clients,
            grows,
            left_out: Some(left_out),
            warmup_suggested_s,
            disturbance: made.disturbance,
            hopeless,
            resources,
            seen: None,
            nothing_seen: None,
            expectations: Vec::new(),
            precision: None,
            score: None,
        })
    }

    /// Loads the server of a trial, and observes what it and other programs use meanwhile.
    fn load_of_trial(
        &self,
        task: &Task<'_>,
        ready: &mut Ready,
        writer: TrialWriter,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<MadeLoad, TrialError> {
        let &Task { trial, combination, load, capacity_per_s, folder, probing, .. } = task;
        let Ready { server, address, workload } = ready;
        let cores = beside_trial(self.system, combination, server);
        let plan = load.plan(capacity_per_s, trial.seed, load.threads(cores, &**workload));
        let offered_per_s = plan.arrivals.rate_per_s();
        if let Some(live) = task.live {
            live.loaded(server.pid(), offered_per_s);
        }
        let before = server.usage()?;
        // A server that ran already may be on this machine; its CPU time is not that of another program.
        let look = server.pid().and_then(|_| Look::now());
        let known = capacity_per_s.is_some() || !matches!(load.schedule, Schedule::Share(..));
        let length = if known { load.expected(capacity_per_s) } else { Duration::ZERO };
        let stop = StopRule {
            precision: None,
            expected: &task.expected,
            warmup: warmup::at_most(load.warmup, length),
            length,
        };
        let agents = self.fleet.map(|fleet| {
            let settings = combination.workload.rooted(self.system.workload, self.files);
            SentByAgents::new(fleet, Target::new(self.system, *address, &settings, trial.seed), load)
        });
        let loading = Loading {
            agents: agents.as_ref(),
            workload: &**workload,
            plan: &plan,
            stop,
            probing,
            server: server.pid(),
            folder: Some(folder),
            alone: None,
        };
        let sinks = RowSinks { writer: Some(writer), ..RowSinks::default() };
        let loaded = loading.run(sinks, progress, cancel)?;
        let disturbance = look.zip(Look::now()).and_then(|(before, after)| after.since(&before));
        let usage = before.zip(server.usage()?);
        let usage = usage.map(|(before, after)| ServerUsage { cpu_s: after.cpu_s - before.cpu_s, ..after });
        Ok(MadeLoad { offered_per_s, loaded, disturbance, usage })
    }
}

/// A server, the address at which clients reach it, and their requests.
struct Ready {
    server: Serving,
    address: SocketAddr,
    workload: Box<dyn Workload>,
}

/// The load of a trial, as it was made.
struct MadeLoad {
    offered_per_s: Option<f64>,
    loaded: Loaded,
    /// What other programs used meanwhile, where the server is on this machine.
    disturbance: Option<Disturbance>,
    /// What the server used meanwhile, where it is known.
    usage: Option<ServerUsage>,
}

/// Reads the counts of a server once its stamps are in the record, and removes its files.
fn taken_in(stamps: &Path) -> Result<BTreeMap<String, u64>, RecordError> {
    std::fs::remove_file(stamps).map_err(RecordError::write(stamps))?;
    let file = counts::beside(stamps);
    let counted = counts::read(&file)?;
    match std::fs::remove_file(&file) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(RecordError::Write { path: file, source }),
        _ => Ok(counted.into_iter().collect()),
    }
}

/// Users without think time, whose throughput is measured.
struct FullLoad<'a> {
    workload: &'a dyn Workload,
    goes_first: bool,
    threads: u32,
    seed: u64,
    cancel: &'a AtomicBool,
}

impl FullLoad<'_> {
    /// The requests per second that these users get answered. Makes `length` as long as enough answers need: so much time need not be
    /// found again for more users.
    fn answered_per_s(&self, population: u32, length: &mut Duration) -> Result<f64, TrialError> {
        let arrivals = Arrivals::Closed { population, think: Law::Constant { mean_s: 0.0 } };
        loop {
            let plan = Plan {
                connections: population,
                goes_first: self.goes_first,
                threads: self.threads.min(population),
                ..Plan::lasting(arrivals.clone(), *length, self.seed)
            };
            // The system reaches its steady state during the first fifth.
            let end_ns = length.as_nanos() as i64;
            let counted = end_ns / 5..end_ns;
            let is_counted = |row: &RequestRow| {
                row.response_ns().and(row.completed).is_some_and(|completed| counted.contains(&completed))
            };
            let count = |rows: RowBatches| rows.flatten().filter(is_counted).count() as u64;
            let (_, answered) = run(&plan, self.workload, &Progress::default(), self.cancel, count)?;
            if answered >= ENOUGH || *length >= CALIBRATE_AT_MOST || self.cancel.load(Ordering::Relaxed) {
                let seconds = (counted.end - counted.start) as f64 / 1e9;
                return if answered == 0 {
                    Err(TrialError::NoCapacity { seconds })
                } else {
                    Ok(answered as f64 / seconds)
                };
            }
            *length *= 2;
        }
    }
}
