//! Finds the highest rate at which a running system meets an objective, by probes of a server that runs already.
//!
//! First, closed populations of one user, two, four and so on measure the response time of a lone request and the throughput
//! limit. From these the search makes the model with which [`search`] starts. Each probe is an open load at a fixed rate. Between
//! probes the search waits until a single user gets the response time of the start again. A probe counts as disturbed if other
//! programs or the host used the machine, or if the machine stalled; it is repeated unless it passes.

mod driver;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kendall_analysis::Surroundings;
use kendall_evidence::peak::{
    Aim, Ask, Curve, Outcome, PeakResult, Probe, Sighting, Why, requests_needed, search,
};
use kendall_experiment::Threads;
use kendall_load::Workload;
use kendall_theory::scalability::{Peak as UslPeak, Point, fit_usl};
use serde::Serialize;

use crate::surroundings::LoadedServers;
use crate::trial_error::TrialError;
use driver::Driver;

/// The number of answers that determine the response time of a lone request.
const LIGHT_ANSWERS: usize = 40;
/// Throughput that grows by less than this share, for twice as many users, counts as constant.
const GROWS: f64 = 1.05;
/// The share of a probe in which the system reaches its steady state.
const WARMUP: f64 = 0.15;
/// A search typically takes this many times the length of a probe: seven probes towards the answer, one of them repeated for longer, and
/// three confirmations of double length.
const TYPICAL: u32 = 17;
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

impl UnfinishedBy {
    /// The reason, where the probes that finished are an answer; the error where they are not.
    fn of(ended: PeakError, found: &PeakResult) -> Result<Self, PeakError> {
        let passed = || found.probes.iter().any(|probe| probe.outcome == Outcome::Pass);
        match ended {
            PeakError::Interrupted if !found.probes.is_empty() => Ok(Self::Interrupt),
            PeakError::OutOfTime { .. } if !found.probes.is_empty() => Ok(Self::Budget),
            PeakError::Generator { rate_per_s, why } if passed() => Ok(Self::Generator { rate_per_s, why }),
            ended => Err(ended),
        }
    }
}

/// Probes during which other programs or the host used a significant part of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DisturbedProbes {
    /// The number of such probes.
    pub probes: usize,
    /// The measurement of the most disturbed probe.
    pub worst: Surroundings,
}

impl DisturbedProbes {
    /// A further probe, with these surroundings.
    fn with(before: Option<Self>, seen: Surroundings) -> Self {
        let share = |seen: &Surroundings| seen.disturbance.share();
        match before {
            None => Self { probes: 1, worst: seen },
            Some(Self { probes, worst }) => {
                let worst = if share(&worst) >= share(&seen) { worst } else { seen };
                Self { probes: probes + 1, worst }
            }
        }
    }
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
            disturbed = Some(DisturbedProbes::with(disturbed.take(), seen));
        }
        Ok::<_, PeakError>(sighting)
    };
    let (found, unfinished) = match search(&plan.aim, curve, light_per_s, plan.setting.seed, &mut probe) {
        Ok(found) => (found, None),
        Err(ended) => {
            let unfinished = UnfinishedBy::of(ended.why, &ended.found)?;
            (ended.found, Some(unfinished))
        }
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

#[cfg(test)]
mod tests {
    use std::iter;

    use kendall_station::Estimate;

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

    #[test]
    fn a_search_that_the_generator_ends_keeps_a_rate_that_passed() {
        let after = |passes: usize| {
            let aim = Aim { slo: "p99<50ms".parse().unwrap(), errors_at_most: 0.01 };
            let passed = Sighting {
                achieved_share: 1.0,
                value_s: Some(Estimate::within(0.01, 0.001)),
                errors: Estimate::exact(0.0),
                grows: false,
                disturbed: false,
            };
            let mut left = iter::repeat_n(passed, passes);
            let mut probe = |ask: &Ask| {
                let why = "requests were sent late".into();
                left.next().ok_or(PeakError::Generator { rate_per_s: ask.rate_per_s, why })
            };
            let ended = search(&aim, Curve::new(1, 0.005, 0.0), 1.0, 1, &mut probe).unwrap_err();
            (UnfinishedBy::of(ended.why, &ended.found), ended.found.probes.len())
        };
        assert!(matches!(after(0), (Err(PeakError::Generator { .. }), 0)));
        assert!(matches!(after(2), (Ok(UnfinishedBy::Generator { .. }), 2)));
    }
}
