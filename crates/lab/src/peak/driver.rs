//! The single loads of a search: closed populations, probes, and the wait between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_analysis::Surroundings;
use kendall_analysis::generator::GeneratorVerdict;
use kendall_evidence::Trial;
use kendall_evidence::expect::{Expectation, Measure, Side};
use kendall_evidence::fit::SloMeasure;
use kendall_evidence::peak::{Aim, Ask, Sighting};
use kendall_experiment::Probing;
use kendall_load::{Plan, Progress, RunSummary, Workload};
use kendall_record::RequestRow;
use kendall_station::{Arrivals, Law};
use kendall_stats::median;
use kendall_stats::random::{Purpose, derive};

use super::{Event, GROWS, LightLoad, PeakError, PeakSetting, WARMUP};
use crate::collect::RowSinks;
use crate::cores::beside_loaded;
use crate::loading::{Loaded, Loading};
use crate::stop::StopRule;

/// The time for which each closed population loads the system.
const LIGHT: Duration = Duration::from_secs(1);
/// The longest duration, where requests are few.
const LIGHT_AT_MOST: Duration = Duration::from_secs(16);
/// The largest closed population.
const MOST_USERS: u32 = 64;
/// A population of this many times the users at which throughput stopped growing makes a queue.
const QUEUED: u32 = 8;
/// A server that is still slow this long after a probe will not recover.
const SETTLE_AT_MOST: Duration = Duration::from_secs(20);
/// The system has recovered when a request takes at most this many times the response time at the start.
const SETTLED: f64 = 2.0;

/// The result of one load of the system.
struct ProbeLoad {
    rows: Vec<RequestRow>,
    run: RunSummary,
    verdict: GeneratorVerdict,
    surroundings: Option<Surroundings>,
}

/// Loads the system for a search.
pub(super) struct Driver<'a> {
    pub(super) workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    pub(super) setting: &'a PeakSetting,
    pub(super) cancel: &'a AtomicBool,
    /// Numbers the runs: each run has its own requests and arrivals.
    pub(super) runs: u64,
}

impl Driver<'_> {
    /// Loads the system and returns the rows. Stops early where the system can no longer meet the objective.
    fn run(
        &mut self,
        arrivals: Arrivals,
        duration: Duration,
        warmup: Duration,
        expected: &[Expectation],
    ) -> Result<ProbeLoad, PeakError> {
        self.runs += 1;
        let seed = derive(self.setting.seed, Purpose::Trial, self.runs);
        let workload = (self.workload)(seed).map_err(PeakError::Workload)?;
        let most = match &arrivals {
            Arrivals::Closed { population, .. } => self.setting.connections.min(*population),
            _ => self.setting.connections,
        };
        let plan = Plan {
            threads: self.setting.threads.number(beside_loaded(&self.setting.servers), most, &*workload),
            connections: self.setting.connections,
            timeout: self.setting.timeout,
            ..Plan::lasting(arrivals, duration, seed)
        };
        let loading = Loading {
            agents: None,
            workload: &*workload,
            plan: &plan,
            stop: StopRule { precision: None, expected, warmup, length: duration },
            probing: Probing::OFF,
            server: None,
            folder: None,
            alone: Some(&self.setting.servers),
        };
        let sinks = RowSinks { kept: Some(Vec::new()), ..RowSinks::default() };
        let Loaded { run, verdict, sinks, surroundings, .. } =
            loading.run(sinks, &Progress::default(), self.cancel)?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(PeakError::Interrupted);
        }
        Ok(ProbeLoad { rows: sinks.kept.unwrap_or_default(), run, verdict, surroundings })
    }

    /// Measures this many users without think time: the response times in seconds, and the requests per second after the first
    /// fifth.
    fn users(&mut self, users: u32, duration: Duration) -> Result<(Vec<f64>, f64), PeakError> {
        let arrivals = Arrivals::Closed { population: users, think: Law::Constant { mean_s: 0.0 } };
        let ProbeLoad { rows, .. } = self.run(arrivals, duration, Duration::ZERO, &[])?;
        let end_ns = duration.as_nanos() as i64;
        let counted = end_ns / 5..end_ns;
        let ended = |row: &&RequestRow| row.completed.is_some_and(|at| counted.contains(&at));
        let responses_s: Vec<f64> =
            rows.iter().filter(ended).filter_map(|row| Some(row.response_ns()? as f64 / 1e9)).collect();
        let per_s = responses_s.len() as f64 / (0.8 * duration.as_secs_f64());
        Ok((responses_s, per_s))
    }

    /// Measures closed populations of one user, two, four and so on, until the throughput stops growing.
    pub(super) fn light(
        &mut self,
        answers: usize,
        report: &mut dyn FnMut(&Event<'_>),
    ) -> Result<LightLoad, PeakError> {
        let mut length = LIGHT;
        let (responses_s, alone_per_s) = loop {
            let found = self.users(1, length)?;
            if found.0.len() >= answers || length >= LIGHT_AT_MOST {
                break found;
            }
            length *= 2;
        };
        if responses_s.is_empty() {
            return Err(PeakError::NoAnswer { seconds: length.as_secs_f64() });
        }
        report(&Event::Users(1, alone_per_s));
        let mut throughput_per_s = vec![(1, alone_per_s)];
        let (mut users, mut flat) = (2, 0);
        while users <= MOST_USERS.min(self.setting.connections) && flat < 2 {
            let (_, per_s) = self.users(users, length)?;
            report(&Event::Users(users, per_s));
            let before = throughput_per_s.iter().map(|point| point.1).fold(0.0, f64::max);
            flat = if per_s < GROWS * before { flat + 1 } else { 0 };
            throughput_per_s.push((users, per_s));
            users *= 2;
        }
        // Some servers lose capacity only to a long queue.
        let queued = (users / 2 * QUEUED).min(MOST_USERS).min(self.setting.connections);
        if queued >= users {
            let (_, per_s) = self.users(queued, length)?;
            report(&Event::Users(queued, per_s));
            throughput_per_s.push((queued, per_s));
        }
        let response_s = median(&responses_s);
        let most_per_s = throughput_per_s.iter().map(|point| point.1).fold(0.0, f64::max);
        let servers = (most_per_s * response_s).round().clamp(1.0, f64::from(MOST_USERS)) as u32;
        Ok(LightLoad { response_s, throughput_per_s, servers })
    }

    /// Waits until a single user gets the response time of the start again. A server that was overloaded first works off the
    /// requests that it has accepted, even those whose clients have given up.
    pub(super) fn settle(&mut self, response_s: f64) -> Result<(), PeakError> {
        let deadline = Instant::now() + SETTLE_AT_MOST;
        let look = Duration::from_secs_f64((5.0 * response_s).clamp(0.1, 2.0));
        loop {
            let (responses_s, _) = self.users(1, look)?;
            let settled = !responses_s.is_empty() && median(&responses_s) <= SETTLED * response_s;
            if settled || Instant::now() > deadline {
                return Ok(());
            }
        }
    }

    /// Loads the system at a rate, until it is clear whether it meets the objective.
    pub(super) fn probe(
        &mut self,
        aim: &Aim,
        ask: &Ask,
        length: Duration,
    ) -> Result<(Sighting, Option<Surroundings>), PeakError> {
        let Aim { slo, errors_at_most } = *aim;
        let below = |measure, limit| Expectation { measure, side: Side::Below, limit };
        let mut expected = vec![below(Measure::Errors, errors_at_most)];
        if let SloMeasure::Quantile(p) = slo.measure {
            expected.push(below(Measure::Quantile(p), slo.at_most_s));
        }
        let warmup = length.mul_f64(WARMUP);
        let arrivals = Arrivals::poisson(ask.rate_per_s);
        let ProbeLoad { rows, run, verdict, surroundings } = self.run(arrivals, length, warmup, &expected)?;
        let sighting = Sighting::of(&Trial { rows: &rows, warmup_ns: warmup.as_nanos() as i64 }, slo);
        match verdict.decided(run.lag.p99_ns as f64 / 1e9, &sighting, aim) {
            Some(why) => {
                // Of the reasons that delay the generator, the user can do something about this one.
                let cause = surroundings.filter(Surroundings::is_noticeable);
                let why = cause.map_or_else(|| why.clone(), |cause| format!("{cause}: {why}"));
                Err(PeakError::Generator { rate_per_s: ask.rate_per_s, why })
            }
            None => Ok((sighting, surroundings)),
        }
    }
}
