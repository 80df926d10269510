//! Checks the laboratory against servers with a known law: whether it finds the right station, and whether its intervals cover
//! the truth.
//!
//! A case is a system with a known station. The check serves, loads and stamps it once for each seed, and asks of each run what a
//! user would ask. First: which station is behind the run, from its rows alone? The replay finds servers, order and room; it gets
//! a wrong number of servers as the system's own, so that it cannot rely on the truth. The laws of arrivals (by due times) and of
//! service are the closest ones. Second: what is the mean response time, with a 95 % interval?
//!
//! The true mean is that of the station, by an exact formula or simulated. It uses the requested rate and the law of all service
//! times that the server stamped in all runs of the case. (Service times are drawn and then slept; a late wake-up is part of
//! them.) To this is added the mean delay outside the station over all runs: the measured responses minus those of the replay
//! through the true station, for the admitted requests. So a single run hardly moves the number that its interval is compared
//! with.
//!
//! A run that was generator-limited, or during which other programs used the machine, is repeated with another seed, in all at
//! most as often as there are seeds. Further disturbed runs count, and their number is reported.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kendall_analysis::Disturbance;
use kendall_analysis::thin::thinned;
use kendall_archive::read_trial;
use kendall_evidence::Trial as SolveTrial;
use kendall_evidence::check::closest_law;
use kendall_evidence::{ReplayVerdict, Rules, candidates, measured, replay};
use kendall_experiment::{Combination, DISTURBED_OVER, Load, Probing, Trial};
use kendall_load::Progress;
use kendall_record::RequestRow;
use kendall_simulation::{StopRule, simulate};
use kendall_station::{Arrivals, By, Discipline, Kind, Law, Notation, Servers};
use kendall_stats::mean;
use kendall_stats::random::{Purpose, derive};
use kendall_theory::formula;
use serde::Serialize;

use crate::trial::{Bench, Task};
use crate::trial_error::TrialError;
use kendall_analysis::generator::Trust;
use kendall_system::{Settings, System};

/// The number of servers that the replay gets as the system's own. No case has this many.
const GIVEN_SERVERS: Servers = Servers::new(3).expect("not zero");
/// The most service times that the law of a case keeps; more are thinned evenly.
const KEPT_SERVICES: usize = 200_000;
/// The precision of the simulated true mean, and the most customers simulated for it.
const TRUE_WITHIN: f64 = 0.003;
const SIMULATED: u64 = 40_000_000;

/// A system with a known station.
#[derive(Clone, Debug)]
pub struct KnownStation {
    /// The station, in Kendall's notation.
    pub station: Notation,
    /// The settings of its server.
    pub server: Settings,
    /// The station's load.
    pub load: Settings,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// The station that the laboratory found.
    pub named: String,
    /// Whether the replay found the right servers, order and room.
    pub right: bool,
    /// Whether both laws are right, too.
    pub right_laws: bool,
    /// Whether other programs or the generator affected the run.
    pub disturbed: bool,
    /// The mean response time, in seconds.
    pub mean_s: f64,
    /// The 95 % interval of the run with this seed, if there is one.
    pub interval_s: Option<(f64, f64)>,
    /// Whether the true mean lies within the interval; `None` without an interval.
    pub covers: Option<bool>,
    /// Requests that were answered or rejected after the warm-up.
    pub requests: u64,
}

/// The results of all runs of a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// The true station.
    pub station: String,
    /// The mean of the stamped service times, in seconds.
    pub service_s: f64,
    /// The squared coefficient of variation of the service times.
    pub service_scv: f64,
    /// The mean delay outside the station, in seconds.
    pub delay_s: f64,
    /// The true mean response time, that delay included, in seconds.
    pub true_mean_s: f64,
    /// The mean over all runs, in seconds.
    pub mean_s: f64,
    /// The result of each run.
    pub seeds: Vec<SeedResult>,
}

impl CaseResult {
    /// How many runs found the right laws, too.
    pub fn laws_right(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.right && seed.right_laws).count()
    }

    /// The number of runs that counted although they were disturbed.
    pub fn disturbed(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.disturbed).count()
    }

    /// How many runs found the right servers, order and room.
    pub fn named_right(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.right).count()
    }

    /// How many intervals cover the true mean.
    pub fn covering(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.covers == Some(true)).count()
    }
}

/// The reason why the laboratory could not be checked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum SelfcheckError {
    #[error("{station}, seed {seed}: {source}")]
    Trial { station: String, seed: u64, source: Box<TrialError> },
    #[error("{station}, seed {seed}: {why}")]
    NoAnswer { station: String, seed: u64, why: String },
    #[error("{station}: the true mean cannot be known: {why}")]
    NoTruth { station: String, why: String },
    #[error("{station}: --{name}: {why}")]
    Load { station: String, name: &'static str, why: String },
}

/// The cases and the number of runs.
#[derive(Clone, Copy, Debug)]
pub struct Selfcheck<'a> {
    /// The program that serves the system.
    pub program: &'a Path,
    /// The system.
    pub system: &'static System,
    /// The folder for records while they are needed.
    pub folder: &'a Path,
    /// Runs of each case.
    pub seeds: u64,
    /// The seed of everything.
    pub seed: u64,
    /// How many cases run at once.
    pub at_a_time: usize,
}

impl Selfcheck<'_> {
    /// Runs all seeds of all cases. `cancel` ends the current runs; the check then returns the results so far, without the cases
    /// that have no run.
    ///
    /// # Errors
    /// Fails where a server or the generator cannot run, or where a run gives no answer.
    pub fn run(
        &self,
        cases: &[KnownStation],
        cancel: &AtomicBool,
        ended: &(dyn Fn(&str, &SeedResult) + Sync),
    ) -> Result<Vec<CaseResult>, SelfcheckError> {
        let next = AtomicUsize::new(0);
        let mut found: Vec<(usize, Result<Option<CaseResult>, SelfcheckError>)> = thread::scope(|scope| {
            let work = || {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < cases.len());
                std::iter::from_fn(take)
                    .map(|at| (at, self.case(&cases[at], cancel, ended)))
                    .collect::<Vec<_>>()
            };
            let workers: Vec<_> =
                (0..self.at_a_time.clamp(1, cases.len())).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("a case does not panic")).collect()
        });
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().filter_map(|(_, result)| result.transpose()).collect()
    }

    fn case(
        &self,
        case: &KnownStation,
        cancel: &AtomicBool,
        ended: &(dyn Fn(&str, &SeedResult) + Sync),
    ) -> Result<Option<CaseResult>, SelfcheckError> {
        let station = case.station.to_string();
        let load = Load::new(&case.load, self.folder).map_err(|(name, why)| SelfcheckError::Load {
            station: station.clone(),
            name,
            why,
        })?;
        let mut runs: Vec<(SeedResult, TruthSample)> = Vec::new();
        for repeat in 0..2 * self.seeds {
            if runs.len() as u64 == self.seeds {
                break;
            }
            let seed = derive(self.seed, Purpose::Trial, repeat);
            let made = self.rows(case, &load, seed, cancel);
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let (rows, warmup_ns, disturbed) = made.map_err(|source| SelfcheckError::Trial {
                station: station.clone(),
                seed,
                source: source.into(),
            })?;
            let trial = SolveTrial { rows: &rows, warmup_ns };
            if disturbed && repeat < self.seeds + runs.len() as u64 {
                continue;
            }
            let run = judge(&trial, case, seed, disturbed).map_err(|why| SelfcheckError::NoAnswer {
                station: station.clone(),
                seed,
                why,
            })?;
            ended(&station, &run.0);
            runs.push(run);
        }
        if runs.is_empty() && cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        conclude(case, &load, runs).map(Some).map_err(|why| SelfcheckError::NoTruth { station, why })
    }

    /// The rows of one run, the end of its warm-up, and whether it was disturbed.
    fn rows(
        &self,
        case: &KnownStation,
        load: &Load,
        seed: u64,
        cancel: &AtomicBool,
    ) -> Result<(Vec<RequestRow>, i64, bool), TrialError> {
        let combination = Combination {
            server: case.server.clone(),
            workload: Settings::defaults(self.system.workload),
            load: case.load.clone(),
            ..Combination::default()
        };
        let trial = Trial { number: 1, combination: 0, repeat: 0, attempt: 0, seed };
        let folder = self.folder.join(format!("{}-{seed:x}", case.station.to_string().replace('/', "-")));
        let task = Task {
            trial: &trial,
            combination: &combination,
            load,
            link: None,
            capacity_per_s: None,
            unstamped: None,
            folder: &folder,
            expected: Vec::new(),
            probing: Probing::OFF,
            live: None,
        };
        let bench =
            Bench { program: self.program, system: self.system, bed: None, files: self.folder, fleet: None };
        let result = bench.trial_as_it_is(&task, None, &Progress::default(), cancel)?;
        let foreign = |seen: &Disturbance| seen.share() > DISTURBED_OVER + seen.resolution_share;
        let disturbed = result.verdict.trust == Trust::GeneratorLimited
            || result.disturbance.as_ref().is_some_and(foreign);
        let rows = read_trial(&folder)?;
        // A leftover would only take space on the disk.
        let _ = std::fs::remove_dir_all(&folder);
        Ok((rows, result.warmup_ns(load), disturbed))
    }
}

/// What one run contributes to the estimate of the true parameters.
struct TruthSample {
    services_s: Vec<f64>,
    /// By how much each response took longer than in the true station.
    delays_s: Vec<f64>,
}

/// The result of a run, and its contribution to the truth.
fn judge(
    trial: &SolveTrial<'_>,
    case: &KnownStation,
    seed: u64,
    disturbed: bool,
) -> Result<(SeedResult, TruthSample), String> {
    let Notation { servers, discipline, .. } = case.station;
    let discipline = discipline.unwrap_or(Discipline::Fifo);
    let answer = measured(&[*trial], servers, &[]).map_err(|why| why.to_string())?;
    let (named, sure) = named(trial)?;
    let mean_s = answer.response.mean_s;
    let By::Measurement { requests, .. } = answer.by else { unreachable!("it was measured") };
    // Replayed without the room, so that the same requests are rejected as in the run. A replay that decides anew could differ
    // once, and the queue would then hold other requests from there on.
    let truth = Rules::new(servers, discipline, &[]);
    let through = replay(&[*trial], &truth).map_err(|why| why.to_string())?;
    let delay_s = through.delay_s;
    let delays_s = through.pairs.iter().map(|pair| pair.measured_s - pair.predicted_s + delay_s).collect();
    let services_s = trial.rows.iter().filter_map(|row| Some(row.service?.max(0) as f64 / 1e9)).collect();
    let result = SeedResult {
        seed,
        right: sure && same_but_laws(&named, &case.station),
        right_laws: (named.arrivals, named.service) == (case.station.arrivals, case.station.service),
        named: format!("{named}{}", if sure { "" } else { "?" }),
        disturbed,
        mean_s: mean_s.value,
        interval_s: mean_s.interval,
        covers: None,
        requests,
    };
    Ok((result, TruthSample { services_s, delays_s }))
}

fn same_but_laws(a: &Notation, b: &Notation) -> bool {
    (a.servers, a.capacity, a.discipline) == (b.servers, b.capacity, b.discipline)
}

/// The station behind a run, from its rows alone, and whether no other station explains it as well.
fn named(trial: &SolveTrial<'_>) -> Result<(Notation, bool), String> {
    let found = candidates(&[*trial], &Rules::new(GIVEN_SERVERS, Discipline::Fifo, &[]))
        .map_err(|why| why.to_string())?;
    let best = &found.ranked[0];
    let mut due: Vec<i64> = trial.rows.iter().map(|row| row.scheduled).collect();
    due.sort_unstable();
    let gaps_s: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
    let services_s: Vec<f64> = trial.rows.iter().filter_map(|row| Some(row.service? as f64 / 1e9)).collect();
    let kind = |times_s: &[f64]| {
        let law = closest_law(times_s).map(|closest| closest.law);
        law.and_then(|law| law.letter().parse().ok()).unwrap_or(Kind::General)
    };
    let notation = Notation {
        arrivals: kind(&gaps_s),
        service: kind(&services_s),
        servers: best.servers,
        capacity: best.capacity,
        population: None,
        discipline: Some(best.discipline).filter(|&discipline| discipline != Discipline::Fifo),
    };
    Ok((notation, found.verdict == ReplayVerdict::Explained))
}

/// Combines the truth from all runs, and compares each interval with it.
fn conclude(
    case: &KnownStation,
    load: &Load,
    runs: Vec<(SeedResult, TruthSample)>,
) -> Result<CaseResult, String> {
    let mut services_s: Vec<f64> = runs.iter().flat_map(|(_, seen)| &seen.services_s).copied().collect();
    services_s.sort_by(f64::total_cmp);
    let delays_s: Vec<f64> = runs.iter().flat_map(|(_, seen)| &seen.delays_s).copied().collect();
    if services_s.is_empty() || delays_s.is_empty() {
        return Err("no run was made".into());
    }
    let law = Law::empirical(thinned(&services_s, KEPT_SERVICES)).map_err(|why| why.to_string())?;
    let (service_s, service_scv, delay_s) = (law.mean_s(), law.scv(), mean(&delays_s));
    let true_mean_s = delay_s + station_mean_s(case, load.arrivals(None), law)?;
    let mut seeds: Vec<SeedResult> = runs.into_iter().map(|(result, _)| result).collect();
    for seed in &mut seeds {
        seed.covers = seed.interval_s.map(|(low_s, high_s)| (low_s..=high_s).contains(&true_mean_s));
    }
    let mean_s = mean(&seeds.iter().map(|seed| seed.mean_s).collect::<Vec<_>>());
    Ok(CaseResult {
        station: case.station.to_string(),
        service_s,
        service_scv,
        delay_s,
        true_mean_s,
        mean_s,
        seeds,
    })
}

/// The mean response time at the station with this law of service.
fn station_mean_s(case: &KnownStation, arrivals: Arrivals, law: Law) -> Result<f64, String> {
    let mut station = case.station.station(Law::Constant { mean_s: 1.0 }, law);
    station.arrivals = arrivals;
    match formula(&station) {
        Ok(answer) if matches!(answer.by, By::Formula { approximate: None, .. }) => {
            Ok(answer.response.mean_s.value)
        }
        _ => {
            let stop = StopRule::Steady { max_customers: SIMULATED, relative_half_width: Some(TRUE_WITHIN) };
            simulate(&station, stop, 1)
                .map(|answer| answer.response.mean_s.value)
                .map_err(|why| why.to_string())
        }
    }
}
