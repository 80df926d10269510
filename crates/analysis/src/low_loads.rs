//! Reads the data that a prediction starts from: the requests of single loads, and the capacity where it was measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kendall_archive::{read_json, read_trial};
use kendall_evidence::RowClass;
use kendall_experiment::{Combination, RunError, RunFolder};
use kendall_load::RequestClass;
use kendall_prediction::{Block, Capacity, KnownStation, NothingObserved, Observed};
use kendall_record::RecordError;
use kendall_stats::number::{counted, significant};
use kendall_stats::{mean, variance};
use kendall_system::{Home, StationShape, System};
use serde::Serialize;

use crate::analyse::group_of;
use crate::attempts::{done, is_disturbed, usual};
use crate::axis::Axis;
use crate::trial_result::TrialResult;
use crate::unstamped::ServerCalibration;

/// The capacity of a server differs by this share from one minute to the next, where it was measured only once: what other programs, the
/// host and the temperature of the processor do.
const CAPACITY_SD: f64 = 0.01;
/// Throughput that is a smaller share than this of the highest has fallen, beyond the noise of a few seconds.
const FALLS: f64 = 0.9;
/// No full load has fewer users: a user who has an answer does not ask again at the same instant.
pub const LEAST_FULL: u32 = 8;
/// Throughputs that differ by less than this many standard deviations of equal loads may differ by noise.
const NOISE: f64 = 2.0;
/// A JSON file beside a record: the mean processor time of a fixed computation in each second after the warm-up, in seconds.
pub const COMPUTATION: &str = "computation.json";
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
    /// Closed populations without think time, ascending: users and requests per second. The throughput of more users than at full load
    /// is relative to the full load just before.
    pub closed: Vec<(u32, f64)>,
    /// Loads that were left out, each with the reason.
    pub left_out: Vec<String>,
    /// Reasons to doubt any prediction, as sentences.
    pub doubts: Vec<String>,
    /// The response times of each load, also of those that were left out.
    pub measured: Vec<MeasuredLoad>,
}

/// The response times that one load measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredLoad {
    /// The folder of its trial, or of its record.
    pub name: String,
    /// Requests per second: as offered, or as completed if a closed population sent them.
    pub rate_per_s: f64,
    /// The users of a closed population.
    pub users: Option<u64>,
    /// The mean response time, in seconds.
    pub mean_s: f64,
    /// Shares of the requests, ascending, and the response times that they do not exceed, in seconds.
    pub quantiles: Vec<(f64, f64)>,
}

impl MeasuredLoad {
    /// `None` where no request was answered.
    fn of(name: String, result: &TrialResult) -> Option<Self> {
        let of_clients = || {
            let clients = result.clients.as_ref()?;
            let known = clients.response.quantiles.iter();
            let quantiles = known.map(|quantile| (quantile.p, quantile.value_s.value)).collect();
            Some((clients.throughput_per_s.value, clients.response.mean_s.value, quantiles))
        };
        let of_stream = || {
            let seen = result.seen.as_ref()?;
            let known = seen.response.quantiles.iter();
            let quantiles = known.filter_map(|quantile| Some((quantile.p, quantile.value_s?))).collect();
            Some((seen.throughput_per_s?.value, seen.response.mean_s.value, quantiles))
        };
        let (throughput_per_s, mean_s, quantiles) = of_clients().or_else(of_stream)?;
        let users = result.offered_per_s.is_none().then_some(result.run.max_in_flight);
        Some(Self {
            name,
            rate_per_s: result.offered_per_s.unwrap_or(throughput_per_s),
            users,
            mean_s,
            quantiles,
        })
    }
}

/// What was read of the loads of one group.
#[derive(Default)]
struct Gathered {
    blocks: Vec<(f64, Block)>,
    /// Closed populations that do not think.
    closed: Vec<FullLoad>,
    /// Of each of these its users, and where its requests are, with the end of the warm-up.
    full: Vec<(u32, PathBuf, i64)>,
    capacity_per_s: Option<f64>,
    known: Option<KnownStation>,
    classes: Vec<String>,
    left_out: Vec<String>,
    measured: Vec<MeasuredLoad>,
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
        gathered.note(&run.trial_folder(trial), result);
        if is_disturbed(result, &usual) {
            gathered.left_out.push(format!("trial {}: it was disturbed", trial.number));
            continue;
        }
        let calibrated_per_s =
            ServerCalibration::found(&run, combination)?.and_then(|found| found.full_per_s);
        gathered.capacity_per_s = run.capacity_of(combination, &capacities).or(calibrated_per_s);
        gathered.known = known(&run, combination, result);
        gathered.add(&run.trial_folder(trial), result, result.warmup_ns(run.load(trial.combination)))?;
    }
    groups.into_iter().map(|(group, gathered)| gathered.end(group)).collect()
}

/// Reads the folders of recorded loads, all of one server, whose station may be known.
///
/// # Errors
/// Fails where a folder is not a record of a load.
pub fn recorded_loads(folders: &[&Path], known: Option<KnownStation>) -> Result<LowLoads, RunError> {
    let mut gathered = Gathered { known, ..Gathered::default() };
    for folder in folders {
        let result = TrialResult::of_load(folder)?.ok_or_else(|| RunError::NoRun((*folder).into()))?;
        gathered.note(folder, &result);
        gathered.add(folder, &result, result.left_out_ns().unwrap_or_default())?;
    }
    gathered.end(String::new())
}

/// The station of a trial's server, where it is one of kendall's own.
fn known(run: &RunFolder, combination: &Combination, result: &TrialResult) -> Option<KnownStation> {
    let system = run.experiment().system;
    matches!(system.home, Home::Here).then(|| known_station(system, combination, &result.classes))
}

/// The station of one of kendall's own servers, whose timestamps report service times.
pub fn known_station(system: &System, combination: &Combination, classes: &[RequestClass]) -> KnownStation {
    let StationShape { servers, discipline, .. } = (system.station)(&combination.server);
    let class = |class: &RequestClass| RowClass { name: class.name.clone(), weight: class.weight };
    KnownStation { servers, discipline, classes: classes.iter().map(class).collect() }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The requests of a load, with the computations that were timed beside it.
fn block(folder: &Path, warmup_ns: i64) -> Result<Block, RunError> {
    let block = Block::of(&read_trial(folder)?, warmup_ns);
    let path = folder.join(COMPUTATION);
    if !path.exists() {
        return Ok(block);
    }
    let times_s: Vec<f64> = read_json(&path)?;
    if times_s.iter().any(|time_s| !time_s.is_finite() || *time_s <= 0.0) {
        let (what, why) = ("the times of a computation", "a time is not positive".into());
        return Err(RecordError::Format { path, what, why }.into());
    }
    Ok(block.with_computation(times_s))
}

impl Gathered {
    fn note(&mut self, folder: &Path, result: &TrialResult) {
        self.measured.extend(MeasuredLoad::of(name_of(folder), result));
    }

    fn add(&mut self, folder: &Path, result: &TrialResult, warmup_ns: i64) -> Result<(), RunError> {
        let name = name_of(folder);
        self.classes = result.classes.iter().map(|class| class.name.clone()).collect();
        if let Some(rate_per_s) = result.offered_per_s {
            if result.grows {
                self.left_out
                    .push(format!("{name}: the number of requests grew, so its rate exceeds the capacity"));
            } else {
                self.blocks.push((rate_per_s, block(folder, warmup_ns)?));
            }
            return Ok(());
        }
        match full_load(result) {
            Some(load) => {
                self.full.push((load.users, folder.into(), warmup_ns));
                self.closed.push(load);
            }
            None => self
                .left_out
                .push(format!("{name}: its users think, so its rate depends on the response times")),
        }
        Ok(())
    }

    fn end(self, group: String) -> Result<LowLoads, RunError> {
        let mut loads: Vec<_> = std::iter::zip(self.closed, self.full).collect();
        loads.sort_by(|a, b| a.0.order.cmp(&b.0.order));
        let (loads, full): (Vec<FullLoad>, Vec<_>) = loads.into_iter().unzip();
        let fullest = fullest(&loads);
        let closed = populations(&loads, fullest);
        let points: Vec<(u32, f64)> =
            closed.iter().map(|population| (population.users, population.per_s)).collect();
        let relative_sd = fullest.map_or(CAPACITY_SD, |fullest| fullest.1.relative_sd);
        let doubts = falling_throughput(&points, relative_sd).into_iter().collect();
        let calibrated =
            |per_s| Capacity { per_s, relative_sd: CAPACITY_SD, blocks: 1, requests: f64::INFINITY };
        let capacity = fullest.map(|fullest| fullest.1).or_else(|| self.capacity_per_s.map(calibrated));
        let mut observed = Observed::new(self.blocks, capacity, self.known);
        // The last ones are nearest to the prediction.
        let full = full.iter().rev().filter(|load| fullest.is_some_and(|fullest| fullest.0 == load.0));
        for (users, folder, warmup_ns) in full {
            let block = block(folder, *warmup_ns)?;
            observed = observed.map(|observed| observed.with_full_load(*users, &block));
        }
        for population in &closed {
            observed = observed.map(|observed| population.added_to(observed));
        }
        Ok(LowLoads {
            group,
            classes: self.classes,
            observed,
            closed: points,
            left_out: self.left_out,
            doubts,
            measured: self.measured,
        })
    }
}

/// The throughput of closed populations of one size.
struct Population {
    users: u32,
    per_s: f64,
    /// How many times as long service took as in the full loads, where there are fewer users in those.
    longer: Vec<f64>,
    /// The answers that each measurement counted.
    requests: f64,
}

impl Population {
    fn added_to(&self, observed: Observed) -> Observed {
        let observed = observed.with_populations(&[(self.users, self.per_s)]);
        if self.longer.is_empty() {
            observed
        } else {
            observed.with_queue(self.users, &self.longer, self.requests)
        }
    }
}

/// The sizes of closed populations, in the order of measuring, with these users and this capacity at full load. The throughput of more
/// users is compared with that of the full load just before, or after, because machines drift within minutes.
fn populations(closed: &[FullLoad], full: Option<(u32, Capacity)>) -> Vec<Population> {
    let Some((full_users, capacity)) = full else { return Vec::new() };
    let is_full = |load: &&FullLoad| load.users == full_users;
    let longer = |at: usize| {
        let beside = closed[..at].iter().rfind(is_full).or_else(|| closed[at..].iter().find(is_full));
        beside.map_or(1.0, |beside| beside.throughput_per_s / closed[at].throughput_per_s)
    };
    let sizes: BTreeSet<u32> = closed.iter().map(|load| load.users).collect();
    let of_size = |users: u32| {
        let same = || closed.iter().enumerate().filter(move |(_, load)| load.users == users);
        let requests = mean(&same().map(|(_, load)| load.answered as f64).collect::<Vec<_>>());
        if users > full_users {
            let longer: Vec<f64> = same().map(|(at, _)| longer(at)).collect();
            Population { users, per_s: capacity.per_s / mean(&longer), longer, requests }
        } else {
            let measured_per_s: Vec<f64> = same().map(|(_, load)| load.throughput_per_s).collect();
            Population { users, per_s: mean(&measured_per_s), longer: Vec::new(), requests }
        }
    };
    sizes.into_iter().map(of_size).collect()
}

/// Whether throughput falls as users are added, as a sentence: a burst may then become an overload that does not end, which no station
/// with a fixed capacity does. `relative_sd` is by how much equal loads differ, as a standard deviation over their mean.
pub fn falling_throughput(points: &[(u32, f64)], relative_sd: f64) -> Option<String> {
    let most = points.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let beyond = points.iter().filter(|point| point.0 > most.0);
    let falls = FALLS.min((-NOISE * relative_sd).exp());
    let least = beyond.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|least| least.1 < falls * most.1)?;
    Some(format!(
        "throughput falls from {}/s with {} to {}/s with {}: the server loses capacity as its queue grows, so at high load a burst may \
         become an overload that does not end. Limit the number of requests that the server works on at once",
        significant(most.1, 3),
        counted(most.0.into(), "user"),
        significant(least.1, 3),
        least.0
    ))
}

/// A closed population that is never without a request.
struct FullLoad {
    /// The start in UTC, and the number among the trials of a run.
    order: (Option<String>, usize),
    users: u32,
    throughput_per_s: f64,
    answered: u64,
}

/// What a load says of the capacity; `None` where its users think.
fn full_load(result: &TrialResult) -> Option<FullLoad> {
    let of_clients = || Some((result.clients.as_ref()?.throughput_per_s, result.clients.as_ref()?.in_system));
    let of_stream = || Some((result.seen.as_ref()?.throughput_per_s?, result.seen.as_ref()?.in_flight?));
    let (throughput_per_s, in_flight) = of_stream().or_else(of_clients)?;
    let users = u32::try_from(result.run.max_in_flight).ok()?;
    let is_full = in_flight.value >= BUSY * f64::from(users) && throughput_per_s.value > 0.0;
    is_full.then(|| FullLoad {
        order: (result.started_utc.clone(), result.number),
        users,
        throughput_per_s: throughput_per_s.value,
        answered: result.run.ended[0],
    })
}

/// The users who got most, and how much: the mean over populations of one size, in the order of measuring. Where sizes hardly differ, it
/// is the one that was measured most often. A population that was measured less often than a smaller full load shows what a long queue
/// changes.
fn fullest(closed: &[FullLoad]) -> Option<(u32, Capacity)> {
    let of = |users: u32| {
        let same = || closed.iter().filter(move |load| load.users == users);
        let all: Vec<f64> = same().map(|load| load.throughput_per_s).collect();
        let relative_sd = if all.len() > 1 { variance(&all).sqrt() / mean(&all) } else { CAPACITY_SD };
        let requests = same().map(|load| load.answered as f64).sum::<f64>() / all.len() as f64;
        (users, Capacity { per_s: recent(&all), relative_sd, blocks: all.len() as u32, requests })
    };
    let sizes: Vec<(u32, Capacity)> = closed.iter().map(|load| of(load.users)).collect();
    let is_queue = |queue: &(u32, Capacity)| {
        let mut fewer = sizes.iter().filter(|size| (LEAST_FULL..queue.0).contains(&size.0));
        fewer.any(|size| {
            let gained = queue.1.per_s / size.1.per_s;
            // Where throughput grows with the users, the fewer ones do not keep the server busy.
            let is_busy = gained < 0.5 * f64::from(queue.0) / f64::from(size.0);
            is_busy && size.1.blocks > queue.1.blocks
        })
    };
    let without_queues = || sizes.iter().filter(|size| !is_queue(size));
    let most_per_s = without_queues().map(|size| size.1.per_s).fold(0.0, f64::max);
    let busy = without_queues().copied().filter(|size| size.1.per_s >= FALLS * most_per_s);
    busy.max_by(|a, b| a.1.blocks.cmp(&b.1.blocks).then(a.1.per_s.total_cmp(&b.1.per_s)))
}

/// The mean, in which each measurement weighs half as much as the next: machines drift within minutes, and what comes is likest to what
/// was last.
fn recent(measured: &[f64]) -> f64 {
    let halved = |level: f64, measured: &f64| f64::midpoint(level, *measured);
    measured.iter().skip(1).fold(measured.first().copied().unwrap_or_default(), halved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_capacity_counts_most() {
        assert_eq!(recent(&[400.0]), 400.0);
        assert_eq!(recent(&[400.0, 500.0, 460.0]), 0.25 * 400.0 + 0.25 * 500.0 + 0.5 * 460.0);
    }

    fn loads(measured: &[(u32, f64)]) -> Vec<FullLoad> {
        let load = |(number, &(users, throughput_per_s)): (usize, &(u32, f64))| FullLoad {
            order: (None, number),
            users,
            throughput_per_s,
            answered: 1_000,
        };
        measured.iter().enumerate().map(load).collect()
    }

    #[test]
    fn a_queue_is_compared_with_the_full_load_of_its_own_minute() {
        let drifting = loads(&[(8, 400.0), (256, 320.0), (8, 500.0), (256, 400.0)]);
        let full = fullest(&drifting).unwrap();
        assert_eq!((full.0, full.1.per_s), (8, 450.0));
        let [eight, queue] = &populations(&drifting, Some(full))[..] else { panic!("two sizes") };
        assert_eq!((eight.per_s, eight.longer.len()), (450.0, 0));
        assert_eq!((queue.per_s, &queue.longer), (360.0, &vec![1.25, 1.25]));
    }

    #[test]
    fn the_full_load_is_the_one_measured_most_often_among_those_that_hardly_differ() {
        assert_eq!(fullest(&loads(&[(8, 400.0), (8, 410.0), (256, 420.0)])).unwrap().0, 8);
        assert_eq!(fullest(&loads(&[(1, 400.0), (1, 410.0), (8, 520.0)])).unwrap().0, 8);
        assert_eq!(fullest(&loads(&[(8, 400.0), (8, 410.0), (256, 520.0)])).unwrap().0, 8, "a queue");
        assert_eq!(fullest(&loads(&[(8, 400.0), (8, 410.0), (64, 3_000.0)])).unwrap().0, 64, "not busy");
        assert_eq!(fullest(&loads(&[(8, 400.0), (256, 520.0)])).unwrap().0, 256);
        assert_eq!(fullest(&loads(&[(8, 400.0), (16, 410.0)])).unwrap().0, 16);
        assert!(fullest(&[]).is_none());
    }

    #[test]
    fn throughput_that_falls_with_more_users_is_a_reason_to_doubt() {
        let doubt = falling_throughput(&[(1, 270.0), (32, 892.0), (64, 741.0), (64, 760.0)], 0.02).unwrap();
        assert!(doubt.contains("from 892/s with 32 users to 741/s with 64"), "{doubt}");
        assert_eq!(falling_throughput(&[(1, 270.0), (32, 892.0), (64, 741.0)], 0.1), None, "noise");
        assert_eq!(falling_throughput(&[(1, 270.0), (32, 892.0), (64, 871.0)], 0.0), None);
        assert_eq!(falling_throughput(&[(8, 450.0), (8, 400.0)], 0.0), None);
        assert_eq!(falling_throughput(&[], 0.0), None);
    }
}
