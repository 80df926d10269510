//! Reads the data that a prediction starts from: the requests of single loads, and the capacity where it was measured.

use std::path::Path;

use kendall_archive::read_trial;
use kendall_evidence::RowClass;
use kendall_experiment::{Combination, RunError, RunFolder};
use kendall_prediction::{Block, Capacity, KnownStation, NothingObserved, Observed};
use kendall_stats::{mean, variance};
use kendall_system::{Home, System};

use crate::analyse::group_of;
use crate::attempts::{done, is_disturbed, usual};
use crate::axis::Axis;
use crate::trial_result::TrialResult;
use crate::unstamped::Beforehand;

/// The capacity of a server differs by this share from one minute to the next, where it was measured only once: what other programs, the
/// host and the temperature of the processor do.
const CAPACITY_SD: f64 = 0.01;
/// A few measurements may agree by accident; no capacity is steadier than this.
const LEAST_CAPACITY_SD: f64 = 0.003;
/// Users without think time are out for at least this share of the time.
const BUSY: f64 = 0.95;

/// The requests of a run that differ in their load only.
#[derive(Clone, Debug)]
pub struct LowLoads {
    /// The values of the other factors, as "length 3, workers 2"; empty where only the load varies.
    pub group: String,
    /// The classes of the requests by number.
    pub classes: Vec<String>,
    /// The measurements, or the reason why nothing can be predicted from them.
    pub observed: Result<Observed, NothingObserved>,
    /// Loads that were left out, each with the reason.
    pub left_out: Vec<String>,
}

impl LowLoads {
    /// The capacity, if it was measured.
    pub fn capacity_per_s(&self) -> Option<f64> {
        Some(self.observed.as_ref().ok()?.capacity()?.per_s)
    }
}

/// What was read of the loads of one group.
#[derive(Default)]
struct Gathered {
    blocks: Vec<(f64, Block)>,
    /// Throughputs of closed populations that do not think, by the number of users.
    closed_per_s: Vec<(u32, f64)>,
    capacity_per_s: Option<f64>,
    known: Option<KnownStation>,
    classes: Vec<String>,
    left_out: Vec<String>,
}

/// Reads the trials of a run that are done.
///
/// # Errors
/// Fails where the folder holds no run.
pub fn low_loads(folder: &Path, systems: &'static [System]) -> Result<Vec<LowLoads>, RunError> {
    let run = RunFolder::open(folder, systems)?;
    let capacities = run.capacities()?;
    let all = done(&run)?;
    let axis = Axis::of(&run, &capacities);
    let usual = usual(&run, &all);
    let mut groups: Vec<(String, Gathered)> = Vec::new();
    for (trial, result) in &all {
        let combination = &run.combinations()[trial.combination];
        let group = group_of(&axis, combination);
        let place = groups.iter().position(|known| known.0 == group).unwrap_or_else(|| {
            groups.push((group, Gathered::default()));
            groups.len() - 1
        });
        let gathered = &mut groups[place].1;
        if is_disturbed(result, &usual) {
            gathered.left_out.push(format!("trial {}: it was disturbed", trial.number));
            continue;
        }
        let beforehand = Beforehand::found(&run, combination)?.and_then(|found| found.full_per_s);
        gathered.capacity_per_s = run.capacity_of(combination, &capacities).or(beforehand);
        gathered.known = known(&run, combination, result);
        gathered.add(&run.trial_folder(trial), result, result.warmup_ns(run.load(trial.combination)))?;
    }
    Ok(groups.into_iter().map(|(group, gathered)| gathered.end(group)).collect())
}

/// Reads the folders of recorded loads, all of one server.
///
/// # Errors
/// Fails where a folder is not a record of a load.
pub fn recorded_loads(folders: &[&Path]) -> Result<LowLoads, RunError> {
    let mut gathered = Gathered::default();
    for folder in folders {
        let result = TrialResult::of_load(folder)?.ok_or_else(|| RunError::NoRun((*folder).into()))?;
        gathered.add(folder, &result, result.left_out_ns().unwrap_or_default())?;
    }
    Ok(gathered.end(String::new()))
}

/// The station of one of kendall's own servers, whose timestamps report service times.
fn known(run: &RunFolder, combination: &Combination, result: &TrialResult) -> Option<KnownStation> {
    let Home::Here = run.experiment().system.home else { return None };
    let (servers, discipline) = (run.experiment().system.station)(&combination.server);
    let class =
        |class: &kendall_load::RequestClass| RowClass { name: class.name.clone(), weight: class.weight };
    Some(KnownStation { servers, discipline, classes: result.classes.iter().map(class).collect() })
}

impl Gathered {
    fn add(&mut self, folder: &Path, result: &TrialResult, warmup_ns: i64) -> Result<(), RunError> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        self.classes = result.classes.iter().map(|class| class.name.clone()).collect();
        if let Some(rate_per_s) = result.offered_per_s {
            if result.grows {
                self.left_out
                    .push(format!("{name}: the number of requests grew, so its rate exceeds the capacity"));
            } else {
                self.blocks.push((rate_per_s, Block::of(&read_trial(folder)?, warmup_ns)));
            }
            return Ok(());
        }
        match full_load(result) {
            Some(point) => self.closed_per_s.push(point),
            None => self
                .left_out
                .push(format!("{name}: its users think, so its rate depends on the response times")),
        }
        Ok(())
    }

    fn end(self, group: String) -> LowLoads {
        let capacity = capacity(&self.closed_per_s).or(self.capacity_per_s.map(|per_s| Capacity {
            per_s,
            relative_sd: CAPACITY_SD,
            blocks: 1,
        }));
        LowLoads {
            group,
            classes: self.classes,
            observed: Observed::new(self.blocks, capacity, self.known),
            left_out: self.left_out,
        }
    }
}

/// Users that are never without a request, and how many requests per second they got answered.
fn full_load(result: &TrialResult) -> Option<(u32, f64)> {
    let of_clients = || Some((result.clients.as_ref()?.throughput_per_s, result.clients.as_ref()?.in_system));
    let of_stream = || Some((result.seen.as_ref()?.throughput_per_s?, result.seen.as_ref()?.in_flight?));
    let (throughput_per_s, in_flight) = of_stream().or_else(of_clients)?;
    let users = result.run.max_in_flight;
    (in_flight.value >= BUSY * users as f64)
        .then_some((users.min(u64::from(u32::MAX)) as u32, throughput_per_s.value))
}

/// The most that closed populations got, over those of one size.
fn capacity(closed_per_s: &[(u32, f64)]) -> Option<Capacity> {
    let of = |users: u32| {
        let all: Vec<f64> =
            closed_per_s.iter().filter(|point| point.0 == users).map(|point| point.1).collect();
        let per_s = mean(&all);
        let relative_sd = if all.len() > 1 { variance(&all).sqrt() / per_s } else { CAPACITY_SD };
        Capacity { per_s, relative_sd: relative_sd.max(LEAST_CAPACITY_SD), blocks: all.len() as u32 }
    };
    closed_per_s.iter().map(|point| of(point.0)).max_by(|a, b| a.per_s.total_cmp(&b.per_s))
}
