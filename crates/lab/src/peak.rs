//! Finds the highest rate at which a running system meets an objective, by probes of a server that runs already.
//!
//! First, closed populations of one user, two, four and so on measure the response time of a lone request and the throughput
//! limit. From these the search makes the model with which [`search`] starts. Each probe is an open load at a fixed rate. Between
//! probes the search waits until a single user gets the response time of the start again. A probe counts as disturbed if other
//! programs or the host used the machine, or if the machine stalled; it is repeated unless it passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_analysis::Surroundings;
use kendall_analysis::generator::GeneratorVerdict;
use kendall_evidence::Trial;
use kendall_evidence::expect::{Expectation, Measure, Side};
use kendall_evidence::fit::SloMeasure;
use kendall_evidence::peak::{
    Aim, Ask, Curve, Outcome, PeakResult, Probe, Sighting, Why, requests_needed, search,
};
use kendall_experiment::{Probing, Threads};
use kendall_load::{Plan, Progress, RunSummary, Workload};
use kendall_record::RequestRow;
use kendall_station::{Arrivals, Law};
use kendall_stats::median;
use kendall_stats::random::{Purpose, derive};
use kendall_theory::scalability::{Peak as UslPeak, Point, fit_usl};
use serde::Serialize;

use crate::collect::RowSinks;
use crate::cores::beside_loaded;
use crate::loading::{Loaded, Loading};
use crate::stop::StopRule;
use crate::surroundings::LoadedServers;
use crate::trial_error::TrialError;

/// The time for which each closed population loads the system.
const LIGHT: Duration = Duration::from_secs(1);
/// The longest duration, where requests are few.
const LIGHT_AT_MOST: Duration = Duration::from_secs(16);
/// The number of answers that determine the response time of a lone request.
const LIGHT_ANSWERS: usize = 40;
/// The largest closed population.
const MOST_USERS: u32 = 64;
/// A population of this many times the users at which throughput stopped growing makes a queue.
const QUEUED: u32 = 8;
/// Throughput that grows by less than this share, for twice as many users, counts as constant.
const GROWS: f64 = 1.05;
/// The share of a probe in which the system reaches its steady state.
const WARMUP: f64 = 0.15;
/// A search typically takes this many times the length of a probe: seven probes towards the answer, one of them repeated for longer, and
/// three confirmations of double length.
const TYPICAL: u32 = 17;
/// A server that is still slow this long after a probe will not recover.
const SETTLE_AT_MOST: Duration = Duration::from_secs(20);
/// The system has recovered when a request takes at most this many times the response time at the start.
const SETTLED: f64 = 2.0;
/// The longest probe, however low the rate.
const LONGEST_PROBE: Duration = Duration::from_secs(600);
/// The number of attempts at a generator-limited probe before the search ends.
const GENERATOR_TRIES: u32 = 3;
/// The rate of a light load, as a share of one server's rate.
const LIGHT_SHARE: f64 = 0.05;

/// The reason why no highest rate was found.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PeakError {
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error("the workload cannot be made: {0}")]
    Workload(String),
    #[error(
        "one user had no answer in {seconds:.0} s, so there is nothing to search from; is this the right server?"
    )]
    NoAnswer { seconds: f64 },
    #[error(
        "at {rate_per_s:.0}/s the generator is the limit and not the system ({why}); give it its own core, or another \
         machine"
    )]
    Generator { rate_per_s: f64, why: String },
    #[error("interrupted")]
    Interrupted,
    #[error(
        "the budget of {:.0} s does not suffice for a first probe, which takes {:.0} s; give a larger --budget",
        budget.as_secs_f64(), probe.as_secs_f64()
    )]
    OutOfTime { budget: Duration, probe: Duration },
}

/// The aim and the settings of a search.
#[derive(Clone, Debug)]
pub struct PeakPlan {
    /// The objective.
    pub aim: Aim,
    /// The shortest probe.
    pub probe: Duration,
    /// The longest duration of the search; it then ends with the current result.
    pub budget: Duration,
    /// How to load the system.
    pub setting: PeakSetting,
}

/// How to load a system to find its limit.
#[derive(Clone, Debug)]
pub struct PeakSetting {
    /// The most connections.
    pub connections: u32,
    /// The time-out of a request.
    pub timeout: Duration,
    /// The threads that send, as far as there are users for them.
    pub threads: Threads,
    /// The seed of requests, arrivals and the order of confirmations.
    pub seed: u64,
    /// The processes whose CPU time does not count as that of other programs.
    pub servers: LoadedServers,
}

/// The measurements of a system under closed populations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LightLoad {
    /// The median response time of one user alone, in seconds.
    pub response_s: f64,
    /// Users and requests per second.
    pub throughput_per_s: Vec<(u32, f64)>,
    /// The number of servers that it behaves like.
    pub servers: u32,
}

/// An event of a search, for progress reports.
#[derive(Debug)]
pub enum Event<'a> {
    /// A closed population was measured.
    Users(u32, f64),
    /// The light load is measured, and this is the initial model.
    Light(&'a LightLoad, &'a Curve),
    /// The search is expected to take this long.
    Expected(Duration),
    /// A probe starts, of this length.
    Asking(&'a Ask, Duration),
    /// A probe is done, with what other work the machine did, where that may have affected it.
    Probed(&'a Probe, Option<&'a Surroundings>),
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Peak {
    /// The objective.
    pub aim: Aim,
    /// The search.
    pub found: PeakResult,
    /// The measurements from which the search started.
    pub light: LightLoad,
    /// The peak of the universal scalability law through the closed populations, if it can be fitted: users and requests per
    /// second.
    pub usl_peak: Option<(f64, f64)>,
    /// The seed.
    pub seed: u64,
    /// The disturbance of the probes by other programs, if there was any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<DisturbedProbes>,
    /// The reason why the search ended before its answer was confirmed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedBy>,
}

/// The reason why a search for a peak ended early.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnfinishedBy {
    /// The user interrupted it.
    Interrupt,
    /// Another probe would not fit into the budget.
    Budget,
    /// The generator could not send at this rate.
    Generator {
        /// Requests per second.
        rate_per_s: f64,
        /// What limited the generator.
        why: String,
    },
}

/// Probes during which other programs or the host used a significant part of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DisturbedProbes {
    /// The number of such probes.
    pub probes: usize,
    /// The measurement of the most disturbed probe.
    pub worst: Surroundings,
}

/// Finds the highest rate. `workload` makes the requests from a seed; `report` receives the events.
///
/// # Errors
/// Fails where the generator cannot be set up, where it is the limit before any rate is known to meet the objective, where the server
/// answers no request, and when `cancel` is set before the first probe is done.
pub fn peak(
    workload: &dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    plan: &PeakPlan,
    report: &mut dyn FnMut(&Event<'_>),
    cancel: &AtomicBool,
) -> Result<Peak, PeakError> {
    let mut driver = Driver { workload, setting: &plan.setting, cancel, runs: 0 };
    let mut disturbed: Option<DisturbedProbes> = None;
    let began = Instant::now();
    let light = driver.light(LIGHT_ANSWERS, report)?;
    let curve = light.curve();
    report(&Event::Light(&light, &curve));
    let guess_per_s = curve.highest_per_s(plan.aim.slo).unwrap_or_else(|| light.most_per_s());
    let guess = Ask { rate_per_s: guess_per_s, length: 1, why: Why::Search };
    report(&Event::Expected(length(plan, &guess) * TYPICAL));
    let light_per_s = LIGHT_SHARE / light.response_s;
    let mut probe = |ask: &Ask| {
        let length = length(plan, ask);
        if began.elapsed() + length > plan.budget {
            return Err(PeakError::OutOfTime { budget: plan.budget, probe: length });
        }
        driver.settle(light.response_s)?;
        report(&Event::Asking(ask, length));
        // A disturbance may pass, but a generator that is too slow stays so.
        let mut tries = GENERATOR_TRIES;
        let (sighting, surroundings) = loop {
            tries -= 1;
            match driver.probe(&plan.aim, ask, length) {
                Err(PeakError::Generator { .. }) if tries > 0 => driver.settle(light.response_s)?,
                probed => break probed?,
            }
        };
        let outcome = sighting.outcome(&plan.aim);
        let stalled = surroundings.as_ref().is_some_and(|seen| seen.noticeable_stalls().is_some());
        let surroundings = surroundings.filter(Surroundings::is_noticeable);
        let sighting = Sighting { disturbed: stalled || surroundings.is_some(), ..sighting };
        report(&Event::Probed(
            &Probe { ask: *ask, sighting: sighting.clone(), outcome },
            surroundings.as_ref(),
        ));
        if let Some(seen) = surroundings {
            let before = disturbed.take();
            let probes = before.as_ref().map_or(0, |before| before.probes) + 1;
            let share = |seen: &Surroundings| seen.disturbance.share();
            let worst = before
                .map(|before| before.worst)
                .filter(|worst| share(worst) >= share(&seen))
                .unwrap_or(seen);
            disturbed = Some(DisturbedProbes { probes, worst });
        }
        Ok::<_, PeakError>(sighting)
    };
    let (found, unfinished) = match search(&plan.aim, curve, light_per_s, plan.setting.seed, &mut probe) {
        Ok(found) => (found, None),
        Err(ended) => match (ended.why, ended.found) {
            (PeakError::Interrupted, found) if !found.probes.is_empty() => {
                (found, Some(UnfinishedBy::Interrupt))
            }
            (PeakError::OutOfTime { .. }, found) if !found.probes.is_empty() => {
                (found, Some(UnfinishedBy::Budget))
            }
            (PeakError::Generator { rate_per_s, why }, found)
                if found.probes.iter().any(|probe| probe.outcome == Outcome::Pass) =>
            {
                (found, Some(UnfinishedBy::Generator { rate_per_s, why }))
            }
            (why, _) => return Err(why),
        },
    };
    let usl_peak = light.usl_peak().map(|peak| (peak.users, peak.throughput_per_s));
    Ok(Peak { aim: plan.aim, found, usl_peak, light, seed: plan.setting.seed, disturbed, unfinished })
}

/// Measures the throughput limit of a system by closed populations of one user, two, four and so on, each for a second. Returns
/// the number of users and the requests per second at which throughput stops growing.
///
/// # Errors
/// Fails where the generator cannot be set up, where the server answers no request, and when `cancel` is set.
pub fn capacity(
    workload: &dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    setting: &PeakSetting,
    cancel: &AtomicBool,
) -> Result<(u32, f64), PeakError> {
    let light = light_load(workload, setting, LIGHT_ANSWERS, cancel)?;
    let most = light.throughput_per_s.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(most.expect("one user was tried"))
}

/// Measures the throughput of closed populations of one user, two, four and so on, until it stops growing: each for a second, and longer
/// where one user gets fewer than this many answers.
///
/// # Errors
/// As [`capacity`].
pub(crate) fn light_load(
    workload: &dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    setting: &PeakSetting,
    answers: usize,
    cancel: &AtomicBool,
) -> Result<LightLoad, PeakError> {
    Driver { workload, setting, cancel, runs: 0 }.light(answers, &mut |_| {})
}

/// The length of a probe: as given, and long enough for the number of requests that the objective needs.
fn length(plan: &PeakPlan, ask: &Ask) -> Duration {
    let needed = requests_needed(plan.aim.slo) as f64 / (1.0 - WARMUP) / ask.rate_per_s * 1.1;
    let least = Duration::try_from_secs_f64(needed).unwrap_or(LONGEST_PROBE);
    (plan.probe.max(least) * ask.length).min(LONGEST_PROBE)
}

impl LightLoad {
    /// The station that the system resembles: with as many servers as it serves requests at once.
    fn curve(&self) -> Curve {
        let service_s = f64::from(self.servers) / self.most_per_s();
        Curve::new(self.servers, service_s, (self.response_s - service_s).max(0.0))
    }

    /// The fewest users whose throughput counts as the highest: among populations that differ by noise, the highest is a matter of luck.
    pub(crate) fn busy_users(&self) -> u32 {
        let most_per_s = self.most_per_s();
        let busy = self.throughput_per_s.iter().find(|point| GROWS * point.1 >= most_per_s);
        busy.map_or(1, |point| point.0)
    }

    fn most_per_s(&self) -> f64 {
        self.throughput_per_s.iter().map(|point| point.1).fold(0.0, f64::max)
    }

    fn usl_peak(&self) -> Option<UslPeak> {
        let points: Vec<Point> =
            self.throughput_per_s.iter().map(|&(users, per_s)| Point::new(f64::from(users), per_s)).collect();
        fit_usl(&points).ok().map(|usl| usl.peak).filter(|peak| peak.users.is_finite())
    }
}

/// The result of one load of the system.
struct ProbeLoad {
    rows: Vec<RequestRow>,
    run: RunSummary,
    verdict: GeneratorVerdict,
    surroundings: Option<Surroundings>,
}

struct Driver<'a> {
    workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    setting: &'a PeakSetting,
    cancel: &'a AtomicBool,
    /// Numbers the runs: each run has its own requests and arrivals.
    runs: u64,
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

    fn light(&mut self, answers: usize, report: &mut dyn FnMut(&Event<'_>)) -> Result<LightLoad, PeakError> {
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
    fn settle(&mut self, response_s: f64) -> Result<(), PeakError> {
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

    fn probe(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_decide_how_many_users_keep_a_server_busy() {
        let busy = |throughput_per_s: &[(u32, f64)]| {
            LightLoad { response_s: 0.01, throughput_per_s: throughput_per_s.to_vec(), servers: 1 }
                .busy_users()
        };
        assert_eq!(busy(&[(1, 90.0), (2, 98.0), (4, 99.0), (8, 97.0), (64, 101.0)]), 2);
        assert_eq!(busy(&[(1, 37.0), (2, 61.0), (4, 102.0), (8, 149.0), (16, 162.0), (32, 149.0)]), 16);
        assert_eq!(busy(&[(1, 5.0)]), 1);
    }
}
