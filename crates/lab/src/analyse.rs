//! From records to the data of a report: what was measured in each combination, and what its models say of it.

use std::path::Path;

use kendall_record::{Manifest, RequestRow, read_json, read_trial};
use kendall_report::{Counts, Curve, Growth, Modelled, Modelling, Point, Report, ServiceSeen, TrialLine};
use kendall_solve::{self as solve, StopRule, formula, simulate};
use kendall_station::random::{Purpose, derive};
use kendall_station::{Answer, Arrivals, Kind, Law, Notation, Station};

use crate::axis::Axis;
use crate::experiment::Combination;
use crate::lab::{Capacity, Lab, LabError};
use crate::system::System;
use crate::trial::TrialResult;

/// Response times that a report draws for each point; more are thinned evenly.
const DRAWN_RESPONSES: usize = 2_000;
/// Service times that a model's empirical law keeps; more are thinned evenly.
const KEPT_SERVICES: usize = 20_000;
/// Places on a formula's curve.
const CURVE_STEPS: u32 = 60;

/// Reads a run and lays measurement, formula and simulation side by side, for the trials that are done.
///
/// # Errors
/// Fails where the folder holds no run or a record cannot be read.
pub fn analyse(folder: &Path, systems: &'static [System]) -> Result<Report, LabError> {
    let lab = Lab::resume(folder, systems)?;
    let manifest = Manifest::read(folder)?;
    let capacities = lab.capacities()?;
    let axis = Axis::of(&lab, &capacities);
    let seed = lab.experiment().seed.unwrap_or_default();
    let mut points = Vec::new();
    let mut trials = Vec::new();
    let mut measurements = Vec::new();
    for (index, combination) in lab.combinations().iter().enumerate() {
        let sample = Sample::read(&lab, index)?;
        let measurement = Measurement::of(&lab, combination, &capacities, &sample);
        let point = measurement.as_ref().map(|_| points.len());
        trials.extend(sample.trials.iter().map(|trial| trial.line(point)));
        if let Some(measurement) = measurement {
            let seed = derive(seed, Purpose::Trial, index as u64);
            points.push(measurement.point(&lab, &axis, combination, &sample, index, seed));
            measurements.push((combination, measurement));
        }
    }
    trials.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Report {
        name: lab.experiment().name.clone(),
        question: lab.experiment().question.clone(),
        started_utc: manifest.started_utc.replace('T', " ").replace('Z', ""),
        command: format!("kendall run {}", folder.join("experiment.toml").display()),
        machine: machine(&manifest),
        factors: axis.factors(&lab),
        points,
        trials,
        planned_trials: lab.trials_planned(),
        curves: curves(&lab, &axis, &measurements),
        experiment_toml: lab.experiment().to_toml(),
    })
}

/// A trial, read back.
struct Tried {
    id: String,
    result: TrialResult,
    rows: Vec<RequestRow>,
}

impl Tried {
    fn line(&self, point: Option<usize>) -> TrialLine {
        let Self { id, result, rows } = self;
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(row.outcome));
        TrialLine {
            id: id.clone(),
            point,
            seed: result.seed,
            counts,
            little_gap: solve::little(rows).map(|check| check.relative_gap),
            send_lag_p99_s: Some(result.run.lag.p99_ns as f64 / 1e9),
            server_cpu_cores: Some(result.server.cpu_s / result.run.wall_s),
            // The report judges the send lag itself.
            doubts: result
                .run
                .doubts
                .iter()
                .filter(|doubt| !doubt.is_late())
                .map(ToString::to_string)
                .collect(),
        }
    }
}

/// The trials of one combination that are done.
struct Sample {
    trials: Vec<Tried>,
    warmup_ns: i64,
}

impl Sample {
    fn read(lab: &Lab, combination: usize) -> Result<Self, LabError> {
        let mut trials = Vec::new();
        for (folder, _) in lab.done().filter(|(_, trial)| trial.combination == combination) {
            let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let result = read_json(&folder.join("answer.json"))?;
            trials.push(Tried { id, result, rows: read_trial(&folder)? });
        }
        let warmup = lab.load(&lab.combinations()[combination]).warmup;
        Ok(Self { trials, warmup_ns: warmup.as_nanos() as i64 })
    }

    /// The rows after the warm-up.
    fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        let after = |row: &&RequestRow| row.scheduled >= self.warmup_ns;
        self.trials.iter().flat_map(move |trial| trial.rows.iter().filter(after))
    }
}

/// What was measured in one combination, over all its trials.
struct Measurement {
    answer: Answer,
    /// Ascending.
    services_s: Vec<f64>,
    delay_s: f64,
    arrivals: Arrivals,
}

impl Measurement {
    /// `None` where no trial is done, or none has an answer.
    fn of(lab: &Lab, combination: &Combination, capacities: &[Capacity], sample: &Sample) -> Option<Self> {
        let system = lab.experiment().system;
        let (servers, _) = (system.station)(&combination.server);
        let views: Vec<solve::Trial<'_>> = sample
            .trials
            .iter()
            .map(|trial| solve::Trial { rows: &trial.rows, warmup_ns: sample.warmup_ns })
            .collect();
        let classes = &sample.trials.first()?.result.classes;
        let answer = solve::measured(&views, servers, classes).ok()?;
        let services_s = sorted(sample.rows().filter_map(|row| Some(row.service? as f64 / 1e9)));
        let outside =
            |row: &RequestRow| Some((row.response_ns()? - (row.finished? - row.queued?)) as f64 / 1e9);
        let (sum, n) = sample.rows().filter_map(outside).fold((0.0, 0u64), |(sum, n), s| (sum + s, n + 1));
        let arrivals = lab.load(combination).arrivals(lab.capacity_of(combination, capacities));
        Some(Self { answer, services_s, delay_s: if n == 0 { 0.0 } else { sum / n as f64 }, arrivals })
    }

    fn point(
        &self,
        lab: &Lab,
        axis: &Axis,
        combination: &Combination,
        sample: &Sample,
        index: usize,
        seed: u64,
    ) -> Point {
        let service = self.service();
        let (servers, _) = (lab.experiment().system.station)(&combination.server);
        let offered_per_s = self.arrivals.rate_per_s();
        Point {
            settings: axis.settings(combination),
            x: axis.x(combination, index as f64),
            offered_per_s,
            measured: self.answer.clone(),
            delay_s: self.delay_s,
            models: self.models(lab, combination, seed),
            responses_s: thinned(
                &sorted(sample.rows().filter_map(|row| Some(row.response_ns()? as f64 / 1e9))),
                DRAWN_RESPONSES,
            ),
            service,
            utilisation_offered: offered_per_s
                .zip(service)
                .map(|(rate_per_s, service)| rate_per_s * service.mean_s / f64::from(servers.get())),
            growing: growth(sample),
        }
    }

    fn service(&self) -> Option<ServiceSeen> {
        let n = self.services_s.len();
        if n == 0 {
            return None;
        }
        let mean_s = self.services_s.iter().sum::<f64>() / n as f64;
        let variance = self.services_s.iter().map(|s| (s - mean_s).powi(2)).sum::<f64>() / n as f64;
        Some(ServiceSeen { mean_s, scv: variance / (mean_s * mean_s), n: n as u64 })
    }

    fn models(&self, lab: &Lab, combination: &Combination, seed: u64) -> Vec<Modelled> {
        let answer_of = |notation: &Notation| {
            let station = self.station(lab, combination, notation, Precision::Full);
            let ask = |way: &dyn Fn(&Station) -> Modelling| match &station {
                Ok(station) => delayed(way(station), self.delay_s),
                Err(why) => Modelling::NoAnswer(why.clone()),
            };
            Modelled {
                notation: notation.to_string(),
                formula: ask(&|station| formula(station).into()),
                simulation: ask(&|station| simulate(station, StopRule::default(), seed).into()),
            }
        };
        notations(lab, combination, &self.arrivals).iter().map(answer_of).collect()
    }

    /// The station that a notation means here: arrivals as they were set, service times as they were measured.
    fn station(
        &self,
        lab: &Lab,
        combination: &Combination,
        notation: &Notation,
        precision: Precision,
    ) -> Result<Station, String> {
        let service = self.service().ok_or("the server did not tell its service times")?;
        let (mean_s, scv) = (service.mean_s, service.scv);
        let service = match (notation.service, precision) {
            (Kind::General, Precision::Full) => {
                Law::empirical(thinned(&self.services_s, KEPT_SERVICES)).map_err(|error| error.to_string())?
            }
            (kind, _) => kind.law(mean_s, needed(kind, scv)).map_err(|error| error.to_string())?,
        };
        let gap = match (&self.arrivals, notation.population) {
            (Arrivals::Closed { think, .. }, Some(_)) => think.clone(),
            (Arrivals::Closed { .. }, None) => {
                return Err(format!("{notation} is an open station, and the load was a closed population"));
            }
            (_, Some(_)) => {
                return Err(format!("{notation} has a population, and the load was an open stream"));
            }
            (Arrivals::Open { gap }, None) => {
                let gap_scv = gap.scv();
                let kind = notation.arrivals;
                kind.law(gap.mean_s(), needed(kind, gap_scv)).map_err(|error| error.to_string())?
            }
            (Arrivals::Trace { .. }, None) => Law::Constant { mean_s: 1.0 },
        };
        let mut station = notation.station(gap, service);
        if let Arrivals::Trace { .. } = self.arrivals {
            station.arrivals = self.arrivals.clone();
        }
        // A notation that names no order is of the order in which the system serves.
        let (_, discipline) = (lab.experiment().system.station)(&combination.server);
        if notation.discipline == kendall_station::Discipline::Fifo {
            station.discipline = discipline;
        }
        Ok(station)
    }
}

/// How closely a model's service law follows the measured one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// The samples themselves.
    Full,
    /// A law with their mean and variance, for formulas that need no more.
    TwoMoments,
}

/// The squared coefficient of variation, for kinds that do not imply one.
fn needed(kind: Kind, scv: f64) -> Option<f64> {
    match kind {
        Kind::Exponential | Kind::Constant | Kind::Erlang(_) => None,
        Kind::Uniform | Kind::General | Kind::Hyperexponential | Kind::LogNormal | Kind::Pareto => Some(scv),
    }
}

/// The stations to compare with: those of the file, or the one that the settings describe.
fn notations(lab: &Lab, combination: &Combination, arrivals: &Arrivals) -> Vec<Notation> {
    let population = match arrivals {
        Arrivals::Closed { population, .. } => Some(*population),
        Arrivals::Open { .. } | Arrivals::Trace { .. } => None,
    };
    let named = &lab.experiment().models;
    if !named.is_empty() {
        let fill = |notation: &Notation| Notation {
            population: notation.population.or(population),
            ..notation.clone()
        };
        return named.iter().map(|model| fill(&model.station)).collect();
    }
    let (servers, discipline) = (lab.experiment().system.station)(&combination.server);
    let arrivals = arrivals.letter().parse().unwrap_or(Kind::General);
    vec![Notation { arrivals, service: Kind::General, servers, capacity: None, population, discipline }]
}

/// A model's answer with the delay outside the station added to its response times.
fn delayed(modelling: Modelling, delay_s: f64) -> Modelling {
    match modelling {
        Modelling::Answer(mut answer) => {
            answer.response = answer.response.shifted(delay_s);
            Modelling::Answer(answer)
        }
        Modelling::NoAnswer(why) => Modelling::NoAnswer(why),
    }
}

/// How response times grew, if they did in most trials.
fn growth(sample: &Sample) -> Option<Growth> {
    let grows = |trial: &&Tried| solve::trend(&trial.rows).is_some_and(|trend| trend.grows);
    let growing = sample.trials.iter().filter(grows).count();
    if 2 * growing <= sample.trials.len() {
        return None;
    }
    let mut halves = [(0.0, 0u64); 2];
    for trial in &sample.trials {
        let last = trial.rows.iter().map(|row| row.scheduled).max().unwrap_or(0);
        let counted = trial.rows.iter().filter(|row| row.scheduled >= sample.warmup_ns);
        for (row, response_ns) in counted.filter_map(|row| Some((row, row.response_ns()?))) {
            let half = &mut halves[usize::from(row.scheduled > (sample.warmup_ns + last) / 2)];
            *half = (half.0 + response_ns as f64 / 1e9, half.1 + 1);
        }
    }
    let [first, second] = halves.map(|(sum, n)| sum / n.max(1) as f64);
    Some(Growth { first_half_s: first, second_half_s: second })
}

/// The later factors' values, and the points that have them.
type Group<'a> = (Vec<(String, String)>, Vec<&'a (&'a Combination, Measurement)>);

/// The formulas' lines along the rate, up to where they have no answer. For a group of points whose service
/// times differ a little, the line takes their mean.
fn curves(lab: &Lab, axis: &Axis, measured: &[(&Combination, Measurement)]) -> Vec<Curve> {
    if !axis.is_rate() {
        return Vec::new();
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in measured {
        let group = axis.settings(point.0).split_off(1);
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, points)) => points.push(point),
            None => groups.push((group, vec![point])),
        }
    }
    let mut curves = Vec::new();
    for (group, points) in groups {
        let (combination, first) = points[0];
        for notation in notations(lab, combination, &first.arrivals) {
            let Ok(station) = pooled(&points).station(lab, combination, &notation, Precision::TwoMoments)
            else {
                continue;
            };
            let delay_s = points.iter().map(|(_, point)| point.delay_s).sum::<f64>() / points.len() as f64;
            let most = points.iter().filter_map(|(_, point)| point.arrivals.rate_per_s()).fold(0.0, f64::max);
            let mean_response_s = line(&station, most * 1.05, delay_s);
            curves.push(Curve { notation: notation.to_string(), group: group.clone(), mean_response_s });
        }
    }
    curves
}

/// One measurement from all of a group, for its service times.
fn pooled(points: &[&(&Combination, Measurement)]) -> Measurement {
    let (_, first) = points[0];
    Measurement {
        answer: first.answer.clone(),
        services_s: sorted(points.iter().flat_map(|(_, point)| point.services_s.iter().copied())),
        delay_s: first.delay_s,
        arrivals: first.arrivals.clone(),
    }
}

/// Rate and mean response time of a station, from a fiftieth of `most_per_s` to there.
fn line(station: &Station, most_per_s: f64, delay_s: f64) -> Vec<(f64, f64)> {
    let Arrivals::Open { gap } = &station.arrivals else { return Vec::new() };
    let at = |step: u32| {
        let rate_per_s = most_per_s * f64::from(step) / f64::from(CURVE_STEPS);
        let station =
            Station { arrivals: Arrivals::Open { gap: gap.with_mean(1.0 / rate_per_s) }, ..station.clone() };
        Some((rate_per_s, formula(&station).ok()?.response.mean_s.value + delay_s))
    };
    (1..=CURVE_STEPS).map_while(at).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// At most `most` of the values, evenly by rank, with both extremes.
fn thinned(sorted: &[f64], most: usize) -> Vec<f64> {
    if sorted.len() <= most {
        return sorted.to_vec();
    }
    (0..most).map(|i| sorted[i * (sorted.len() - 1) / (most - 1)]).collect()
}

fn machine(manifest: &Manifest) -> Vec<(String, String)> {
    let Manifest { kendall, machine, git_revision, link, .. } = manifest;
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let mut lines = vec![
        ("processor", format!("{} × {}", machine.cores, machine.cpu)),
        ("memory", format!("{gib:.1} GiB")),
        ("system", format!("{}, kernel {}", machine.os, machine.kernel)),
        ("link", link.clone()),
        ("kendall", kendall.clone()),
        ("seed", manifest.seed.to_string()),
    ];
    lines.extend(git_revision.clone().map(|revision| ("revision", revision)));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_and_the_order() {
        let values: Vec<f64> = (0..1001).map(f64::from).collect();
        let few = thinned(&values, 11);
        assert_eq!(few, [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0]);
        assert_eq!(thinned(&values[..5], 11).len(), 5);
    }
}
